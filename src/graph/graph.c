/* SPDX-License-Identifier: BSD-3-Clause */
/* From calls to tasks. Everything that can fail comes before the first task; a call like the one before it on
 * the same output costs a comparison of some bytes. Collectives are submitted to the progress engine in the
 * order of insertion, which is the same on every rank. */
#define _POSIX_C_SOURCE 200809L
#include "graph/graph.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Operations of a gemm that keeps a device busy for about half a millisecond (H200, bf16). A collective that
 * comes a little later than such a gemm would wait all that time, so the gemm gives way; that costs some 40
 * us, since the tail of one gemm no longer overlaps the head of the next. */
static const double long_gemm_flop = 4e11;

/* The call that was set up last for an output. */
typedef struct starlin__known {
    starlin__call_t call;
    uint64_t ids[STARLIN__MOST_OPERANDS];
    uint64_t key;
} known_t;

/* --- checks */

static starlin_status_t check_operands(const starlin__call_t *call)
{
    const starlin__operator_kind_t *kind = call->kind;

    if (call->context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "context is NULL");
    for (int i = 0; i < STARLIN__MOST_OPERANDS && kind->names[i] != NULL; i++) {
        const starlin_matrix_t *matrix = call->operands[i];
        if (matrix == NULL && (kind->required >> i & 1))
            return starlin__error(STARLIN_ERR_INVALID, "%s is NULL", kind->names[i]);
        if (matrix != NULL && matrix->context != call->context)
            return starlin__error(STARLIN_ERR_INVALID, "%s belongs to another context", kind->names[i]);
    }
    if (call->operands[0]->rows == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "%s is not cut: it was made without a chunking",
                              kind->names[0]);
    return STARLIN_SUCCESS;
}

static bool overlaps(const starlin_matrix_t *a, const starlin_matrix_t *b)
{
    const char *a_data = a->data, *b_data = b->data;
    size_t a_nbytes, b_nbytes;

    if (a->root == b->root)
        return true;
    if (a->cols == 0 || b->cols == 0 || a->local_rows == 0 || b->local_rows == 0)
        return false;
    if (a_data == NULL || b_data == NULL) {
        for (size_t i = 0; i < a->nchunks; i++) {
            for (size_t j = 0; j < b->nchunks; j++) {
                if (a->handles[i] == b->handles[j])
                    return true;
            }
        }
        return false;
    }
    /* the last row ends with its last column */
    a_nbytes = (size_t)((a->local_rows - 1) * a->ld + a->cols) * starlin_dtype_nbytes(a->dtype);
    b_nbytes = (size_t)((b->local_rows - 1) * b->ld + b->cols) * starlin_dtype_nbytes(b->dtype);
    return a_data < b_data + b_nbytes && b_data < a_data + a_nbytes;
}

/* May this input and the output be the same memory? */
static bool is_in_place(const starlin__call_t *call, int i)
{
    const starlin_matrix_t *output = call->operands[call->kind->output];
    return call->kind->in_place && call->operands[i] != output && call->operands[i]->root == output->root;
}

static starlin_status_t check_rows(const starlin__call_t *call)
{
    const starlin__operator_kind_t *kind = call->kind;
    const starlin_matrix_t *output = call->operands[kind->output], *first = call->operands[0];

    for (int i = 0; i < STARLIN__MOST_OPERANDS && kind->names[i] != NULL; i++) {
        const starlin_matrix_t *matrix = call->operands[i];
        if (matrix == NULL)
            continue;
        if (matrix->rows != NULL && first->rows != NULL && !starlin__rows_equal(matrix->rows, first->rows))
            return starlin__error(
                STARLIN_ERR_INVALID,
                "%s (%zu chunks, %lld rows, %u blocks) and %s (%zu chunks, %lld rows, %u blocks) are not cut "
                "alike",
                kind->names[0], first->nchunks, (long long)first->rows->m, first->rows->nblocks,
                kind->names[i], matrix->nchunks, (long long)matrix->rows->m, matrix->rows->nblocks);
        if (i != (int)kind->output && !is_in_place(call, i) && overlaps(output, matrix))
            return starlin__error(STARLIN_ERR_INVALID, "the memory of %s overlaps that of %s",
                                  kind->names[kind->output], kind->names[i]);
    }
    return STARLIN_SUCCESS;
}

static starlin_status_t check(const starlin__call_t *call)
{
    STARLIN__FORWARD(check_operands(call));
    if (call->context->failed)
        return starlin__context_failure(call->context, UINT64_MAX);
    STARLIN__FORWARD(call->kind->check(call));
    return check_rows(call);
}

/* --- agreement */

static void describe_matrix(const starlin_matrix_t *matrix, const char *name, starlin__fields_t *fields)
{
    char title[48];

    snprintf(title, sizeof title, "the placement of %s", name);
    starlin__fields_add(fields, title, "%s", starlin_placement_name(matrix->placement));
    if (matrix->placement == STARLIN_SHARD_COLS)
        return;
    snprintf(title, sizeof title, "the number of columns of %s", name);
    starlin__fields_add(fields, title, "%lld", (long long)matrix->cols);
}

/* What all ranks must have alike. */
static void describe(const starlin__call_t *call, starlin__fields_t *fields)
{
    const starlin__operator_kind_t *kind = call->kind;
    const starlin_matrix_t *output = call->operands[kind->output], *first = call->operands[0];
    char text[200];

    starlin__fields_open(fields, kind->name);
    starlin__fields_add(fields, "M", "%lld", (long long)first->rows->m);
    starlin__fields_add(fields, "the dtype", "%s", starlin_dtype_name(output->dtype));
    starlin__rows_text(first->rows->chunk_rows, first->nchunks, text, sizeof text - 16);
    if (first->rows->nblocks > 1)
        snprintf(text + strlen(text), 16, " in blocks");
    starlin__fields_add(fields, "the chunk list", "%s", text);
    text[0] = '\0';
    for (int i = 0; i < STARLIN__MOST_OPERANDS && kind->names[i] != NULL; i++) {
        const starlin_matrix_t *matrix = call->operands[i];
        if (matrix == NULL)
            continue;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] != '\0' ? "," : "",
                 kind->names[i]);
        if (matrix->rows != NULL)
            describe_matrix(matrix, kind->names[i], fields);
    }
    starlin__fields_add(fields, "the set of operands", "%s", text);
    if (kind->describe != NULL)
        kind->describe(call, fields);
}

static bool is_agreed(const starlin_context_t *context, uint64_t key)
{
    for (size_t i = 0; i < context->nagreed; i++) {
        if (context->agreed[i] == key)
            return true;
    }
    return false;
}

/* Room for one more key, so that remembering it cannot fail. */
static starlin_status_t reserve_key(starlin_context_t *context)
{
    size_t room = context->agreed_room > 0 ? 2 * context->agreed_room : 16;
    uint64_t *keys;

    if (context->nagreed < context->agreed_room)
        return STARLIN_SUCCESS;
    keys = starlin__alloc(room * sizeof *keys);
    if (keys == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "%zu kinds of calls", room);
    if (context->nagreed > 0)
        memcpy(keys, context->agreed, context->nagreed * sizeof *keys);
    starlin__free(context->agreed);
    context->agreed = keys;
    context->agreed_room = room;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__graph_refuse(const starlin__call_t *call, starlin_status_t status)
{
    starlin_context_t *context = call->context;
    const starlin_matrix_t *output = call->operands[call->kind->output];
    starlin__fields_t fields;
    starlin_status_t agreement;
    char text[200];

    /* of a known call the peers would not hear, so their collective times out */
    if (context == NULL || context->failed ||
        (output != NULL && output->context == context ? output->known != NULL : context->sequence > 0))
        return status;
    snprintf(text, sizeof text, "%s", starlin_last_error());
    starlin__fields_open(&fields, call->kind->name);
    starlin__fields_add(&fields, "M", "refused (%s)", text);
    agreement = starlin__agree(context->bootstrap, &fields, context->config.timeout_ms);
    return agreement == STARLIN_SUCCESS ? starlin__error(status, "%s", text) : agreement;
}

/* --- preparation */

bool starlin__matrix_is_collectable(const starlin_matrix_t *matrix)
{
    return starlin__matrix_is_contiguous(matrix) && matrix->ld == matrix->cols &&
           (matrix->context->comm->space == STARLIN__HOST || matrix->space == STARLIN__DEVICE);
}

static bool fits(const starlin_matrix_t *matrix, const starlin_matrix_layout_t *layout)
{
    return matrix->cols == layout->cols && matrix->dtype == layout->dtype &&
           matrix->placement == layout->placement;
}

/* The output keeps the scratch matrices of its operators. */
static starlin_status_t make_scratch(starlin__call_t *call)
{
    starlin_matrix_layout_t layouts[STARLIN__MOST_SCRATCH] = {{.cols = 0}};
    starlin_matrix_t *output = call->operands[call->kind->output];

    if (call->kind->scratch != NULL)
        call->kind->scratch(call, layouts);
    for (int i = 0; i < STARLIN__MOST_SCRATCH; i++) {
        starlin_matrix_t **scratch_p = &output->scratch[i];
        call->scratch[i] = NULL;
        if (layouts[i].cols == 0)
            continue;
        if (*scratch_p != NULL && !fits(*scratch_p, &layouts[i])) { /* records may still use it */
            (*scratch_p)->replaced = output->replaced;
            output->replaced = *scratch_p;
            *scratch_p = NULL;
        }
        if (*scratch_p == NULL) {
            STARLIN__FORWARD(starlin__matrix_make(call->context, call->operands[0]->rows, NULL, &layouts[i],
                                                  STARLIN__HOST, scratch_p));
            (*scratch_p)->is_scratch = true;
            pthread_mutex_lock(&call->context->lock);
            call->context->nmatrices--; /* the caller knows nothing of it */
            pthread_mutex_unlock(&call->context->lock);
        }
        call->scratch[i] = *scratch_p;
    }
    return STARLIN_SUCCESS;
}

/* Workspaces and algorithms of a stage's gemms; workspaces may move, so no gemm may run meanwhile. */
static starlin_status_t prepare_stage(starlin_context_t *context, const starlin__stage_t *stage, size_t chunk)
{
    starlin__view_t views[STARLIN__MOST_ACCESSES];
    starlin__places_t places = {{NULL}, {0}};

    for (unsigned run = 0; run < starlin__stage_nruns(stage); run++) {
        starlin__gemm_t gemm;
        for (unsigned i = 0; i < stage->naccesses; i++) {
            const starlin_matrix_t *matrix = stage->accesses[i].matrix;
            bool is_there = matrix != NULL && (context->device == NULL || matrix->space == STARLIN__DEVICE);
            places.base[i] = is_there ? starlin__matrix_chunk_data(matrix, chunk) : NULL;
        }
        starlin__stage_views(stage, chunk, run, &places, views);
        gemm = starlin__stage_gemm_run(stage, run, views);
        STARLIN__FORWARD(context->compute->ops->prepare(context->compute, &gemm));
    }
    return STARLIN_SUCCESS;
}

/* What collectives write without any other work before them: from now on reading it leaves events. */
static starlin_status_t mark_stage(starlin_context_t *context, const starlin__stage_t *stage)
{
    for (unsigned i = 0; i < stage->naccesses; i++) {
        const starlin__access_t *access = &stage->accesses[i];
        starlin_matrix_t *root = access->matrix->root;
        bool is_received = access->mode == STARLIN__WRITE;
        if (root->is_sent && (root->is_received || !is_received))
            continue;
        if (context->device != NULL && root->last_sequence > 0) { /* earlier work has left none */
            starlin__context_drain(context);
            STARLIN__FORWARD(starlin__context_synchronize(context));
        }
        root->is_sent = true;
        root->is_received = root->is_received || is_received;
    }
    return STARLIN_SUCCESS;
}

/* What the communicator would refuse when it is too late to say so. */
static starlin_status_t check_stage(const starlin_context_t *context, const starlin__stage_t *stage,
                                    size_t chunk)
{
    const starlin_matrix_t *matrix = stage->accesses[0].matrix;
    int64_t rows = matrix->rows->chunk_rows[chunk], most = context->comm->most_elements;

    if (most == 0 || matrix->cols == 0 || rows <= most / matrix->cols)
        return STARLIN_SUCCESS;
    return starlin__error(STARLIN_ERR_INVALID,
                          "a chunk of %lld rows of %lld columns: communicator %s sums at most %lld elements "
                          "at once, use more chunks",
                          (long long)rows, (long long)matrix->cols, context->comm->ops->name,
                          (long long)most);
}

static starlin_status_t prepare(starlin__call_t *call)
{
    starlin_context_t *context = call->context;
    starlin__stage_t stages[STARLIN__MOST_STAGES];

    STARLIN__FORWARD(make_scratch(call));
    STARLIN__FORWARD(starlin__matrix_check_room(context, call->operands, STARLIN__MOST_OPERANDS));
    starlin__context_drain(context);
    for (size_t chunk = 0; chunk < call->operands[0]->nchunks; chunk++) {
        size_t nstages = call->kind->stages(call, chunk, stages);
        for (size_t i = 0; i < nstages; i++) {
            if (stages[i].kind == STARLIN__STAGE_GEMM)
                STARLIN__FORWARD(prepare_stage(context, &stages[i], chunk));
            if (stages[i].kind == STARLIN__STAGE_COLLECTIVE) {
                STARLIN__FORWARD(check_stage(context, &stages[i], chunk));
                STARLIN__FORWARD(mark_stage(context, &stages[i]));
            }
        }
    }
    return STARLIN_SUCCESS;
}

/* The buffers of collectives that are summed, where the communicator makes them faster. Every rank is here.
 */
static starlin_status_t register_buffers(const starlin__call_t *call)
{
    starlin__stage_t stages[STARLIN__MOST_STAGES];
    size_t nstages = call->kind->stages(call, 0, stages);

    for (size_t i = 0; i < nstages; i++) {
        if (stages[i].kind == STARLIN__STAGE_COLLECTIVE)
            STARLIN__FORWARD(starlin__matrix_register(stages[i].accesses[0].matrix->root));
    }
    return STARLIN_SUCCESS;
}

/* --- set-up, once per combination */

static void keep(starlin__call_t *call, uint64_t key)
{
    known_t *known = call->operands[call->kind->output]->known;

    memset(known, 0, sizeof *known);
    memcpy(&known->call, call, sizeof *call);
    for (int i = 0; i < STARLIN__MOST_OPERANDS; i++)
        known->ids[i] = call->operands[i] != NULL ? call->operands[i]->id : 0;
    known->key = key;
}

/* Is it the call that was set up last for this output, with the same matrices? Takes its scratch. */
static bool is_known(starlin__call_t *call)
{
    const starlin_matrix_t *output = call->operands[call->kind->output];
    const known_t *known = output != NULL ? output->known : NULL;

    if (known == NULL || known->key == 0)
        return false;
    memcpy(call->scratch, known->call.scratch, sizeof call->scratch);
    if (memcmp(call, &known->call, sizeof *call) != 0) {
        memset(call->scratch, 0, sizeof call->scratch);
        return false;
    }
    for (int i = 0; i < STARLIN__MOST_OPERANDS; i++) {
        if (call->operands[i] != NULL && call->operands[i]->id != known->ids[i])
            return false;
    }
    return true;
}

/* All records of a call, before the first task. */
static starlin_status_t acquire(const starlin__call_t *call, starlin__record_t **records_p)
{
    starlin__record_t *first = NULL;

    for (size_t i = 0; i < call->operands[0]->nchunks; i++) {
        starlin__record_t *record = starlin__record_acquire(call->context);
        if (record == NULL) {
            starlin__records_release(first);
            return starlin__error(STARLIN_ERR_NO_MEMORY, "%s of %zu chunks", call->kind->name,
                                  call->operands[0]->nchunks);
        }
        record->next = first;
        first = record;
    }
    *records_p = first;
    return STARLIN_SUCCESS;
}

static starlin_status_t set_up_alone(starlin__call_t *call, starlin__record_t **records_p)
{
    starlin_matrix_t *output = call->operands[call->kind->output];

    if (output->known == NULL)
        output->known = starlin__alloc(sizeof *output->known);
    if (output->known == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "%s", call->kind->name);
    STARLIN__FORWARD(reserve_key(call->context));
    STARLIN__FORWARD(prepare(call));
    return acquire(call, records_p);
}

static starlin_status_t set_up(starlin__call_t *call, starlin__record_t **records_p)
{
    starlin_context_t *context = call->context;
    starlin__fields_t fields;
    starlin_status_t status = check(call);
    uint64_t key;
    bool is_new;

    if (status != STARLIN_SUCCESS)
        return starlin__graph_refuse(call, status);
    describe(call, &fields);
    key = starlin__fields_hash(&fields);
    is_new = !is_agreed(context, key);
    if (is_new) {
        starlin__fields_add(&fields, "the number of operators before", "%llu",
                            (unsigned long long)context->sequence);
        starlin__fields_add(&fields, "the history of operators", "%016llx",
                            (unsigned long long)context->history);
        STARLIN__FORWARD(starlin__agree(context->bootstrap, &fields, context->config.timeout_ms));
    }
    status = set_up_alone(call, records_p);
    if (is_new) /* not every rank may have come so far: if one has not, none goes on */
        status =
            starlin__agree_status(context->bootstrap, call->kind->name, status, context->config.timeout_ms);
    if (is_new && status == STARLIN_SUCCESS) {
        context->agreed[context->nagreed++] = key;
        status = register_buffers(call);
    }
    if (status == STARLIN_SUCCESS)
        keep(call, key);
    else
        starlin__records_release(*records_p);
    return status;
}

/* --- insertion */

/* Data that StarPU moves between host and device must be finished when a body returns. */
static bool is_synchronous(const starlin__call_t *call)
{
    const starlin_context_t *context = call->context;

    if (context->device == NULL)
        return false;
    for (int i = 0; i < STARLIN__MOST_OPERANDS; i++) {
        if (call->operands[i] != NULL && call->operands[i]->events == NULL)
            return true;
    }
    return context->comm->space == STARLIN__HOST;
}

static bool is_exposed(const starlin__record_t *record)
{
    for (unsigned i = 0; i < record->nmatrices; i++) {
        if (record->matrices[i]->root->exposed)
            return true;
    }
    return false;
}

/* Earlier operators first, then earlier chunks: the order in which the link can be kept busy. Policies with
 * few levels get the order of the chunks. */
static int gemm_priority(const starlin_context_t *context, unsigned chunk)
{
    int64_t lowest = starpu_sched_get_min_priority(), highest = starpu_sched_get_max_priority();
    int64_t place =
        highest - lowest > INT_MAX ? (int64_t)(context->ntasks % INT_MAX) + 1 : (int64_t)chunk + 1;
    return (int)(highest - (place < highest - lowest ? place : highest - lowest));
}

/* Is this chunk's gemm followed by a collective, and the next chunk's long? */
static bool gives_way(const starlin__call_t *call, const starlin__record_t *record)
{
    const starlin__stage_t *stage = &record->tasks[0].stage;
    starlin__gemm_t next;

    if (call->context->device == NULL || record->ntasks < 2 || stage->kind != STARLIN__STAGE_GEMM ||
        record->tasks[1].stage.kind != STARLIN__STAGE_COLLECTIVE || call->context->comm->nranks == 1 ||
        record->chunk + 1u >= call->operands[0]->nchunks)
        return false;
    next = starlin__stage_gemm(stage, record->chunk + 1u);
    return 2.0 * (double)next.m * (double)next.n * (double)next.k > long_gemm_flop;
}

static void fill_record(const starlin__call_t *call, starlin__record_t *record, size_t chunk,
                        bool synchronous)
{
    starlin__stage_t stages[STARLIN__MOST_STAGES];

    record->sequence = call->context->sequence;
    record->op = call->kind->name;
    record->chunk = (unsigned)chunk;
    record->synchronous = synchronous;
    record->nmatrices = 0;
    for (int i = 0; i < STARLIN__MOST_OPERANDS; i++) {
        if (call->operands[i] != NULL)
            record->matrices[record->nmatrices++] = call->operands[i];
    }
    for (int i = 0; i < STARLIN__MOST_SCRATCH; i++) {
        if (call->scratch[i] != NULL)
            record->matrices[record->nmatrices++] = call->scratch[i];
    }
    record->ntasks = (unsigned)call->kind->stages(call, chunk, stages);
    for (unsigned i = 0; i < record->ntasks; i++) {
        record->tasks[i].record = record;
        record->tasks[i].stage = stages[i];
    }
    record->gives_way = gives_way(call, record);
}

static bool needs_retire(const starlin__call_t *call, const starlin__record_t *record)
{
    return call->operands[call->kind->output]->events != NULL && !record->synchronous && is_exposed(record);
}

/* Nothing that runs or waits could come before this chunk, so it needs neither a dependency nor a decision of
 * the policy: its first stage, or all of an only chunk, is launched here. A worker would have to wake up
 * first, which costs a step on a device tens of microseconds. Returns how many stages were launched. */
static unsigned launch(const starlin__call_t *call, starlin__record_t *record)
{
    starlin_context_t *context = call->context;
    unsigned most = call->operands[0]->nchunks == 1 ? record->ntasks : 1, done = 0;

    if (call->operands[call->kind->output]->events == NULL || record->synchronous || is_exposed(record) ||
        atomic_load(&context->inflight) != 1) /* this record */
        return 0;
    while (done < most && context->codelets->launch[record->tasks[done].stage.kind](&record->tasks[done]))
        done++;
    return done;
}

static void count_record(starlin_context_t *context, starlin__record_t *record)
{
    pthread_mutex_lock(&context->lock);
    for (unsigned i = 0; i < record->nmatrices; i++)
        record->matrices[i]->inflight++;
    context->inflight++;
    pthread_mutex_unlock(&context->lock);
}

void starlin__graph_insert(const starlin__call_t *call, starlin__record_t *record)
{
    starlin_context_t *context = call->context;
    bool retires = needs_retire(call, record);
    unsigned ntasks = record->ntasks, done;

    atomic_store(&record->pending, ntasks + (retires ? 1u : 0u) + 1u);
    record->priority = gemm_priority(context, record->chunk);
    count_record(context, record);
    done = launch(call, record);
    context->settled = false;
    context->ntasks += ntasks - done + (retires ? 1u : 0u);
    for (unsigned i = done; i < ntasks; i++)
        context->codelets->insert[record->tasks[i].stage.kind](&record->tasks[i]);
    if (retires)
        context->codelets->insert_retire(record);
    while (done-- > 0)
        starlin__record_ended(record);
    starlin__record_ended(record); /* the insertion itself */
}

static void expose_staged(const starlin__call_t *call)
{
    /* what a communicator on the host sums goes through StarPU's copies */
    if (call->context->device == NULL || call->context->comm->space == STARLIN__DEVICE)
        return;
    for (int i = 0; i < STARLIN__MOST_OPERANDS; i++) {
        if (call->operands[i] != NULL && call->operands[i]->rows != NULL)
            call->operands[i]->root->exposed = true;
    }
    for (int i = 0; i < STARLIN__MOST_SCRATCH; i++) {
        if (call->scratch[i] != NULL)
            call->scratch[i]->root->exposed = true;
    }
}

/* Counts the call as an operator of the context; its records know it from here on. */
static void begin(const starlin__call_t *call, starlin__record_t *records)
{
    starlin_context_t *context = call->context;
    uint64_t key = call->operands[call->kind->output]->known->key;
    bool synchronous = is_synchronous(call);
    size_t chunk = 0;

    expose_staged(call);
    context->sequence++;
    context->history = starlin__hash(context->history, &key, sizeof key);
    for (int i = 0; i < STARLIN__MOST_OPERANDS; i++) {
        starlin_matrix_t *matrix = call->operands[i];
        if (matrix == NULL)
            continue;
        matrix->last_sequence = matrix->root->last_sequence = context->sequence;
        if (i != (int)call->kind->output)
            matrix->root->is_read = true;
    }
    for (starlin__record_t *record = records; record != NULL; record = record->next)
        fill_record(call, record, chunk++, synchronous);
}

void starlin__graph_close(starlin_context_t *context)
{
    starlin__free(context->group);
    starlin__free(context->agreed);
    starlin__records_free(context);
}

/* --- submission */

starlin_status_t starlin__graph_submit(starlin__call_t *call)
{
    starlin_context_t *context = call->context;
    starlin__record_t *records = NULL;

    if (context == NULL || !is_known(call))
        STARLIN__FORWARD(set_up(call, &records));
    else if (context->failed)
        return starlin__context_failure(context, UINT64_MAX);
    else
        STARLIN__FORWARD(acquire(call, &records));
    begin(call, records);
    if (starlin__graph_is_grouping(context)) {
        starlin__graph_put_off(call, records);
        return STARLIN_SUCCESS;
    }
    while (records != NULL) {
        starlin__record_t *record = records;
        records = record->next;
        starlin__graph_insert(call, record);
    }
    return STARLIN_SUCCESS;
}
