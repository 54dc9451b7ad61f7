/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up and stores a layer's curves. Invariants: only rank 0 touches the file; every decision is made from
 * exchanged data, so all ranks go the same way; ranks on different devices or with different libraries have
 * no entry. */
#define _POSIX_C_SOURCE 200809L
#include "plan/tuned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/scratch.h"

typedef struct identity {
    char device[STARLIN__TUNE_TEXT], versions[STARLIN__TUNE_TEXT], parameters[STARLIN__TUNE_TEXT];
} identity_t;

/* What every rank shows; only rank 0's entry counts. */
typedef struct offer {
    uint64_t identity;
    int64_t found;
    starlin__tune_entry_t entry;
} offer_t;

static void processor_name(char *name, size_t size)
{
    char line[STARLIN__TUNE_TEXT];
    FILE *file = fopen("/proc/cpuinfo", "r");

    snprintf(name, size, "unknown processor");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || value == NULL)
            continue;
        snprintf(name, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        break;
    }
    if (file != NULL)
        fclose(file);
}

static void make_plain(char *text)
{
    for (; *text != '\0'; text++)
        *text = (unsigned char)*text < 32 || *text == 127 ? ' ' : *text;
}

static void identify(const starlin_context_t *context, identity_t *identity)
{
    const starlin__comm_t *comm = context->comm;
    const char *colon = strchr(context->config.comm, ':'), *tf32 = getenv("STARLIN_TF32");
    char processor[128];

    memset(identity, 0, sizeof *identity);
    if (context->device != NULL) {
        snprintf(identity->device, sizeof identity->device, "%s", context->device->model);
    } else {
        processor_name(processor, sizeof processor);
        snprintf(identity->device, sizeof identity->device, "%s, %u cores, %u workers x %u threads",
                 processor, context->share.ncores, context->info.nworkers, context->info.nblas_threads);
    }
    snprintf(identity->versions, sizeof identity->versions, "starlin %s, StarPU %s, %s, %s%s%s",
             starlin_version(), context->starpu_version, context->compute->version, comm->version,
             context->device != NULL ? ", " : "", context->device != NULL ? context->device->versions : "");
    snprintf(identity->parameters, sizeof identity->parameters, "%s%sctas=%u,ranks-here=%d%s",
             colon != NULL ? colon + 1 : "", colon != NULL ? "," : "", context->config.max_ctas,
             context->bootstrap->local_size, tf32 != NULL && tf32[0] == '1' ? ",tf32" : "");
    make_plain(identity->device);
    make_plain(identity->versions);
    make_plain(identity->parameters);
}

static starlin__tune_key_t make_key(const starlin_context_t *context, const identity_t *identity,
                                    const starlin__gemm_t *gemm, int64_t k)
{
    return (starlin__tune_key_t){.device = identity->device,
                                 .versions = identity->versions,
                                 .compute = context->compute->ops->name,
                                 .comm = context->comm->ops->name,
                                 .parameters = identity->parameters,
                                 .nranks = context->comm->nranks,
                                 .n = gemm->n,
                                 .k = k,
                                 .dtype = gemm->dtype,
                                 .out_dtype = gemm->out_dtype};
}

/* Of the largest slice. */
static starlin_status_t largest_k(starlin_context_t *context, const starlin__gemm_t *gemm, int64_t *k_p)
{
    double k = (double)gemm->k; /* at most 2^40: exact */

    STARLIN__FORWARD(starlin__agree_max(context, STARLIN_SUCCESS, &k, 1));
    *k_p = (int64_t)k;
    return STARLIN_SUCCESS;
}

/* Rank 0's offer to every rank. *alike_p: all ranks run on the same. */
static starlin_status_t share_offer(starlin_context_t *context, offer_t *offer, bool *alike_p)
{
    starlin__bootstrap_t *bootstrap = context->bootstrap;
    offer_t *all;
    starlin_status_t status;

    *alike_p = true;
    if (bootstrap->nranks == 1)
        return STARLIN_SUCCESS;
    all = starlin__alloc((size_t)bootstrap->nranks * sizeof *all);
    if (all == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "curves of %d ranks", bootstrap->nranks);
    status = bootstrap->ops->allgather(bootstrap, offer, sizeof *offer, all, context->config.timeout_ms);
    if (status == STARLIN_SUCCESS) {
        *offer = all[0];
        for (int rank = 1; rank < bootstrap->nranks; rank++)
            *alike_p = *alike_p && all[rank].identity == all[0].identity;
    }
    starlin__free(all);
    return status;
}

/* Keeps what the communicator can run here: its own number of CTAs, which comes first, and its choices. They
 * are the same on every rank. */
static bool keep_choices(const starlin_context_t *context, starlin__tune_entry_t *entry)
{
    enum { MOST_CHOICES = 64 };
    const starlin__comm_t *comm = context->comm;
    unsigned ctas[MOST_CHOICES];
    size_t nchoices = comm->ops->ctas_choices != NULL ? comm->ops->ctas_choices(comm, ctas, MOST_CHOICES) : 0;
    size_t kept = 1;

    if (entry->comms[0].ctas != 0) {
        starlin__log(
            "tuned curves are ignored: they do not start with the communicator's own number of CTAs");
        return false;
    }
    for (size_t i = 1; i < entry->ncomms; i++) {
        bool offered = false;
        for (size_t j = 0; j < nchoices; j++)
            offered = offered || ctas[j] == entry->comms[i].ctas;
        if (offered)
            entry->comms[kept++] = entry->comms[i];
    }
    memset(&entry->comms[kept], 0, (STARLIN__TUNE_COMMS - kept) * sizeof entry->comms[0]);
    entry->ncomms = kept;
    return true;
}

/* A curve that ends early would have to be continued blindly. */
static bool reaches(const starlin__tune_entry_t *entry, const starlin__gemm_t *gemm)
{
    double rows = (double)gemm->m;
    double nbytes = rows * (double)gemm->n * (double)starlin_dtype_nbytes(gemm->out_dtype);

    if (entry->gemm.size[entry->gemm.npoints - 1] < rows) {
        starlin__log("tuned curves are ignored: they end at %.0f rows, here are %.0f",
                     entry->gemm.size[entry->gemm.npoints - 1], rows);
        return false;
    }
    for (size_t i = 0; i < entry->ncomms; i++) {
        const starlin__curve_t *curve = &entry->comms[i].curve;
        if (curve->size[curve->npoints - 1] >= nbytes)
            continue;
        starlin__log("tuned curves are ignored: that of %u CTAs ends at %.0f bytes, here are %.0f",
                     entry->comms[i].ctas, curve->size[curve->npoints - 1], nbytes);
        return false;
    }
    return true;
}

starlin_status_t starlin__tuned_load(starlin_context_t *context, const starlin__gemm_t *gemm, bool *found_p,
                                     starlin__tune_entry_t *entry_p)
{
    identity_t identity;
    offer_t offer;
    int64_t k;
    bool alike;

    identify(context, &identity);
    memset(&offer, 0, sizeof offer);
    offer.identity = starlin__hash(STARLIN__HASH_INIT, &identity, sizeof identity);
    STARLIN__FORWARD(largest_k(context, gemm, &k));
    if (context->bootstrap->rank == 0) {
        starlin__tune_key_t key = make_key(context, &identity, gemm, k);
        offer.found = starlin__tune_load(&key, &offer.entry) && keep_choices(context, &offer.entry) &&
                      reaches(&offer.entry, gemm);
    }
    STARLIN__FORWARD(share_offer(context, &offer, &alike));
    if (offer.found && !alike)
        starlin__log("tuned curves are ignored: the ranks run on different devices or libraries");
    *found_p = offer.found && alike;
    if (*found_p)
        *entry_p = offer.entry;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin__tuned_store(starlin_context_t *context, const starlin__gemm_t *gemm,
                                      const starlin__tune_entry_t *entry)
{
    identity_t identity;
    offer_t offer;
    int64_t k;
    bool alike;
    starlin_status_t status = STARLIN_SUCCESS;

    identify(context, &identity);
    memset(&offer, 0, sizeof offer);
    offer.identity = starlin__hash(STARLIN__HASH_INIT, &identity, sizeof identity);
    STARLIN__FORWARD(largest_k(context, gemm, &k));
    STARLIN__FORWARD(share_offer(context, &offer, &alike));
    if (!alike)
        return starlin__error(STARLIN_ERR_UNSUPPORTED,
                              "curves are kept only where all ranks run on the same device and libraries");
    if (context->bootstrap->rank == 0) {
        starlin__tune_key_t key = make_key(context, &identity, gemm, k);
        status = starlin__tune_store(&key, entry);
    }
    return starlin__agree_max(context, status, NULL, 0);
}
