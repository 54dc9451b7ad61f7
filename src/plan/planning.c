/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans a job: wisdom if there is any, else a race of the candidates, or the simulation alone; and tells how
 * it came about. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plan/plan.h"

/* What the simulation must promise over the shortest list, with speeds that nobody has measured; and lists
 * that are as fast. */
static const double estimated_gain = 0.03, as_fast = 1.01;
/* A step that the simulation thinks so many times as long as all of planning may take is not run. */
static const double out_of_time = 2;
enum { KEY_SIZE = 4096 };

typedef struct text {
    char *at;
    size_t size, length;
} text_t;

static void say(text_t *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(text_t *text, const char *format, ...)
{
    size_t used = text->length < text->size ? text->length : text->size;
    va_list arguments;

    va_start(arguments, format);
    text->length += (size_t)vsnprintf(text->at + used, text->size - used, format, arguments);
    va_end(arguments);
}

/* --- wisdom's key */

/* What the fastest list depends on, on this rank. */
static void describe(const starlin__job_t *job, text_t *key)
{
    const starlin_context_t *context = job->context;
    const starlin_context_info_t *info = &context->info;

    say(key, "m=%lld ranks=%d blocks=%u", (long long)job->m, context->bootstrap->nranks, job->nblocks);
    for (size_t i = 0; i < job->noperations; i++) {
        char operation[160];
        starlin__operation_text(&job->operations[i], true, operation, sizeof operation);
        say(key, " %s", operation);
    }
    say(key, " device=%s,%s compute=%s,%s comm=%s,%s,%s,ctas%u starlin=%s starpu=%s policy=%s", info->device,
        context->device != NULL ? context->device->versions : "", info->compute, context->compute->version,
        info->comm, context->comm->version, context->config.comm, context->config.max_ctas, starlin_version(),
        info->starpu_version, info->policy);
    say(key, " workers=%u threads=%u cores=%ld local=%d", info->nworkers, info->nblas_threads,
        sysconf(_SC_NPROCESSORS_ONLN), context->bootstrap->local_size);
}

typedef struct found {
    starlin__wisdom_t wisdom;
    char notice[224];
    bool is_found;
} found_t;

/* The text of this rank with a hash of all ranks' at its end. `room`: for all ranks. Collective. */
static starlin_status_t make_key(const starlin__job_t *job, found_t *room, char *key)
{
    starlin__bootstrap_t *bootstrap = job->context->bootstrap;
    size_t nranks = (size_t)bootstrap->nranks;
    text_t text = {.at = key, .size = KEY_SIZE - 32};
    uint64_t hash;

    describe(job, &text);
    for (char *c = key; *c != '\0'; c++)
        *c = *c < ' ' ? '_' : *c;
    hash = starlin__hash(STARLIN__HASH_INIT, key, strlen(key));
    STARLIN__FORWARD(
        bootstrap->ops->allgather(bootstrap, &hash, sizeof hash, room, job->context->config.timeout_ms));
    hash = starlin__hash(STARLIN__HASH_INIT, room, nranks * sizeof hash);
    snprintf(key + strlen(key), 32, " all=%016llx", (unsigned long long)hash);
    return STARLIN_SUCCESS;
}

/* Rank 0's file counts for all. Collective. */
static starlin_status_t look_up(const starlin__job_t *job, const char *key, found_t *room,
                                starlin__planning_t *planning)
{
    starlin__bootstrap_t *bootstrap = job->context->bootstrap;
    const char *path = job->context->config.wisdom;
    const starlin__wisdom_t *wisdom = &room->wisdom;
    found_t mine = {.is_found = false};
    int64_t sum = 0;

    if (bootstrap->rank == 0 && path[0] != '\0')
        mine.is_found = starlin__wisdom_load(path, key, &mine.wisdom, mine.notice, sizeof mine.notice);
    STARLIN__FORWARD(
        bootstrap->ops->allgather(bootstrap, &mine, sizeof mine, room, job->context->config.timeout_ms));
    memcpy(planning->notice, room->notice, sizeof room->notice);
    for (size_t i = 0; room->is_found && i < wisdom->nchunks; i++)
        sum = wisdom->rows[i] < 1 || wisdom->rows[i] > job->m ? -job->m : sum + wisdom->rows[i];
    if (sum != job->m)
        return STARLIN_SUCCESS;
    planning->nlists = 0;
    starlin__list_add(planning, "wisdom", wisdom->rows, wisdom->nchunks);
    planning->told = (starlin_plan_summary_t){.source = STARLIN_PLAN_WISDOM,
                                              .ncandidates = 1,
                                              .measured_us = 1e-3 * (double)wisdom->measured_ns,
                                              .serial_us = 1e-3 * (double)wisdom->serial_ns};
    snprintf(planning->reason, sizeof planning->reason, "it was measured before");
    return STARLIN_SUCCESS;
}

static void keep(const starlin__job_t *job, const char *key, starlin__planning_t *planning)
{
    const char *path = job->context->config.wisdom;
    const starlin__candidate_t *chosen = &planning->lists[planning->chosen];
    starlin__wisdom_t wisdom = {.nchunks = chosen->told.nchunks,
                                .measured_ns = (uint64_t)(1e3 * planning->told.measured_us),
                                .serial_ns = (uint64_t)(1e3 * planning->told.serial_us)};
    char notice[224] = "";

    memcpy(wisdom.rows, chosen->rows, chosen->told.nchunks * sizeof *chosen->rows);
    if (job->context->bootstrap->rank == 0 && path[0] != '\0')
        starlin__wisdom_save(path, key, &wisdom, notice, sizeof notice);
    if (notice[0] != '\0')
        memcpy(planning->notice, notice, sizeof notice);
}

/* --- ways to plan */

static starlin_status_t estimate(const starlin__job_t *job, starlin__planning_t *planning)
{
    const starlin__candidate_t *lists = planning->lists;
    double best_us = INFINITY, chosen_us, one_us;
    size_t one = 0, chosen = 0;

    STARLIN__FORWARD(starlin__plan_simulate(job, planning));
    for (size_t i = 0; i < planning->told.ncandidates; i++)
        best_us = lists[i].told.simulated_us < best_us ? lists[i].told.simulated_us : best_us;
    for (size_t i = 1; i < planning->told.ncandidates; i++) { /* the shortest of all, and of the fastest */
        const starlin_plan_candidate_t *told = &lists[i].told;
        bool is_fast = told->simulated_us <= as_fast * best_us;
        if (!told->refused && (lists[one].told.refused || told->nchunks < lists[one].told.nchunks))
            one = i;
        if (is_fast && (lists[chosen].told.simulated_us > as_fast * best_us ||
                        told->nchunks < lists[chosen].told.nchunks))
            chosen = i;
    }
    one_us = lists[one].told.simulated_us;
    chosen_us = lists[chosen].told.simulated_us;
    planning->chosen = chosen_us <= (1 - estimated_gain) * one_us ? chosen : one;
    planning->told.source = STARLIN_PLAN_ESTIMATED;
    planning->told.serial_us = one_us;
    snprintf(planning->reason, sizeof planning->reason,
             "the simulation promises %.1f%% over the shortest list", 100 * (1 - chosen_us / one_us));
    return STARLIN_SUCCESS;
}

static starlin_status_t measure(starlin__job_t *job, const char *key, double begin_us,
                                starlin__planning_t *planning)
{
    const starlin__candidate_t *lists = planning->lists;
    size_t nladder = planning->told.ncandidates, nmeasured = 0;
    starlin_status_t status;

    STARLIN__FORWARD(estimate(job, planning));
    if (planning->told.serial_us > out_of_time * job->limit_us) {
        snprintf(planning->notice, sizeof planning->notice,
                 "lists were not run: a step would take about %.0f ms, there are %.0f ms",
                 1e-3 * planning->told.serial_us, 1e-3 * job->limit_us);
        return STARLIN_SUCCESS;
    }
    planning->told.ncandidates = nladder;
    status = starlin__rehearse(job, begin_us, planning);
    for (size_t i = 0; i < planning->told.ncandidates; i++)
        nmeasured += lists[i].told.nrounds > 0;
    if (status == STARLIN_ERR_NO_MEMORY && !job->context->failed)
        snprintf(planning->notice, sizeof planning->notice, "lists were not run: %.180s",
                 starlin_last_error());
    else if (status == STARLIN_SUCCESS && nmeasured < 2 && planning->nlists > 1)
        snprintf(planning->notice, sizeof planning->notice,
                 "a step takes %.0f ms: within %.0f ms no second list could be run",
                 1e-3 * lists[planning->reference].told.measured_us, 1e-3 * job->limit_us);
    else
        STARLIN__FORWARD(status);
    if (status != STARLIN_SUCCESS || (nmeasured < 2 && planning->nlists > 1))
        return estimate(job, planning);
    planning->told.source = STARLIN_PLAN_MEASURED;
    planning->told.measured_us = lists[planning->chosen].told.measured_us;
    planning->told.serial_us = lists[planning->reference].told.measured_us;
    keep(job, key, planning);
    return STARLIN_SUCCESS;
}

/* The bytes between the fields may be anything. */
static bool is_alike(const starlin_operation_t *a, const starlin_operation_t *b)
{
    return a->op == b->op && a->n == b->n && a->k == b->k && a->dtype == b->dtype &&
           a->reduction == b->reduction && a->from == b->from && a->to == b->to &&
           a->activation == b->activation && a->bias == b->bias && a->residual == b->residual;
}

/* Of layers that repeat a few are like all of them. */
static void shorten(starlin__job_t *job)
{
    const starlin_operation_t *operations = job->operations;
    size_t kept;

    job->period = 1;
    for (size_t i = 1; i < job->noperations; i++)
        while (job->period <= i && !is_alike(&operations[i], &operations[i - job->period]))
            job->period++;
    kept = job->period < STARLIN__MOST_ALIKE ? STARLIN__MOST_ALIKE / job->period * job->period : job->period;
    kept = kept < STARLIN__MOST_PLANNED ? kept : STARLIN__MOST_PLANNED;
    job->noperations = kept < job->noperations ? kept : job->noperations;
}

/* "512x14,256x4" */
static void write_rows(starlin__candidate_t *list)
{
    text_t text = {.at = list->text, .size = sizeof list->text};

    for (size_t i = 0, end; i < list->told.nchunks; i = end) {
        for (end = i + 1; end < list->told.nchunks && list->rows[end] == list->rows[i];)
            end++;
        say(&text, "%s%lld", i > 0 ? "," : "", (long long)list->rows[i]);
        if (end > i + 1)
            say(&text, "x%zu", end - i);
    }
    list->told.rows = list->text;
}

/* What the public sees. */
static void tell(starlin__planning_t *planning, double begin_us)
{
    starlin_plan_summary_t *told = &planning->told;

    for (size_t i = 0; i < told->ncandidates; i++) {
        starlin__candidate_t *list = &planning->lists[i];
        write_rows(list);
        list->told.chosen = i == planning->chosen;
    }
    told->predicted_us = planning->lists[planning->chosen].told.simulated_us;
    told->reason = planning->reason;
    told->notice = planning->notice[0] != '\0' ? planning->notice : NULL;
    told->planning_us = starlin__now_us() - begin_us;
    if (told->notice != NULL)
        starlin__log("%s", told->notice);
}

static starlin_status_t plan(starlin__job_t *job, starlin_effort_t effort, double begin_us, found_t *room,
                             starlin__planning_t *planning)
{
    char key[KEY_SIZE] = "";

    if (effort == STARLIN_EFFORT_ESTIMATE)
        return estimate(job, planning);
    STARLIN__FORWARD(make_key(job, room, key));
    STARLIN__FORWARD(look_up(job, key, room, planning));
    return planning->told.source == STARLIN_PLAN_WISDOM ? STARLIN_SUCCESS
                                                        : measure(job, key, begin_us, planning);
}

starlin_status_t starlin__plan(starlin__job_t *job, starlin_effort_t effort, starlin__planning_t **planning_p)
{
    double begin_us = starlin__now_us();
    starlin__planning_t *planning = *planning_p = starlin__alloc(sizeof *planning);
    found_t *room = starlin__alloc((size_t)job->context->bootstrap->nranks * sizeof *room);
    bool is_device = job->context->device != NULL;
    starlin_status_t status = STARLIN_SUCCESS;

    if (planning == NULL || room == NULL)
        status = starlin__error(STARLIN_ERR_NO_MEMORY, "planning");
    status = starlin__agree_most(job->context, status, &job->limit_us, 1);
    if (status == STARLIN_SUCCESS) {
        planning->noperations = job->noperations;
        shorten(job);
        starlin__ladder_add(planning, job->m, job->nblocks, is_device);
        planning->told.ncandidates = planning->nlists;
        starlin__family_add(planning, job->m, job->nblocks, is_device);
        status = plan(job, effort, begin_us, room, planning);
        planning->told.nplanned = job->noperations;
        tell(planning, begin_us);
    }
    starlin__free(room);
    return status;
}

/* --- accounts */

static const char *const source_names[] = {"asked", "estimated", "measured", "wisdom"};

const char *starlin_plan_source_name(starlin_plan_source_t source)
{
    return source >= STARLIN_PLAN_ASKED && source <= STARLIN_PLAN_WISDOM ? source_names[source] : NULL;
}

/* As much of this version's struct as the caller's covers; its size stays. */
static starlin_status_t give(size_t *given, const void *known, size_t size)
{
    size_t given_size = *given != 0 && *given < size ? *given : size;

    if (given_size > sizeof *given)
        memcpy(given + 1, (const size_t *)known + 1, given_size - sizeof *given);
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_chunking_plan_summary(const starlin_chunking_t *chunking,
                                               starlin_plan_summary_t *summary_p)
{
    static const starlin_plan_summary_t asked = {.reason = "it was asked for"};

    if (chunking == NULL || summary_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", chunking == NULL ? "chunking" : "summary_p");
    return give(&summary_p->struct_size, chunking->planning != NULL ? &chunking->planning->told : &asked,
                sizeof asked);
}

starlin_status_t starlin_chunking_plan_candidate(const starlin_chunking_t *chunking, size_t i,
                                                 starlin_plan_candidate_t *candidate_p)
{
    size_t count = chunking != NULL && chunking->planning != NULL ? chunking->planning->told.ncandidates : 0;

    if (chunking == NULL || candidate_p == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL",
                              chunking == NULL ? "chunking" : "candidate_p");
    if (i >= count)
        return starlin__error(STARLIN_ERR_INVALID, "i is %zu: there are %zu candidates", i, count);
    return give(&candidate_p->struct_size, &chunking->planning->lists[i].told, sizeof *candidate_p);
}

static void explain_candidate(const starlin_plan_candidate_t *told, bool is_out, text_t *text)
{
    say(text, "  %s %s:", told->origin, told->rows);
    if (told->simulated_us > 0 && !told->refused)
        say(text, " simulated %.0f us,", told->simulated_us);
    if (told->refused)
        say(text, " refused by a backend\n");
    else if (told->nrounds == 0)
        say(text, " not run\n");
    else
        say(text, " measured %.0f us (least %.0f) in %zu round%s%s\n", told->measured_us,
            told->measured_us - told->spread_us, told->nrounds, told->nrounds == 1 ? "" : "s",
            is_out ? ", then dropped" : "");
}

starlin_status_t starlin_chunking_explain(const starlin_chunking_t *chunking, char *text, size_t size,
                                          size_t *length_p)
{
    text_t out = {.at = text, .size = size};
    const starlin__planning_t *planning = chunking != NULL ? chunking->planning : NULL;

    if (chunking == NULL || (text == NULL && size > 0))
        return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", chunking == NULL ? "chunking" : "text");
    if (planning == NULL) {
        say(&out, "%zu chunk%s: asked for\n", chunking->rows->nchunks,
            chunking->rows->nchunks == 1 ? "" : "s");
    } else {
        const starlin_plan_summary_t *told = &planning->told;
        say(&out, "%s for %zu of %zu operation%s in %.1f ms\n", source_names[told->source], told->nplanned,
            planning->noperations, planning->noperations == 1 ? "" : "s", 1e-3 * told->planning_us);
        for (size_t i = 0; told->source != STARLIN_PLAN_WISDOM && i < told->ncandidates; i++)
            explain_candidate(&planning->lists[i].told, planning->lists[i].is_out, &out);
        say(&out, "chosen %s: %s\n", planning->lists[planning->chosen].text, told->reason);
        if (told->measured_us > 0)
            say(&out, "measured %.0f us, the shortest list %.0f us\n", told->measured_us, told->serial_us);
        if (told->notice != NULL)
            say(&out, "%s\n", told->notice);
    }
    if (length_p != NULL)
        *length_p = out.length;
    return STARLIN_SUCCESS;
}
