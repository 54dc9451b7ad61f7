/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges of failures and of options between the ranks. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

typedef struct vote {
    int failed;
    perf_error_t error;
} vote_t;

void perf_agree_print(const perf_ranks_t *ranks, const char *text)
{
    if (ranks->nranks > 1)
        fprintf(stderr, "starlin-perf: rank %d: %s\n", ranks->rank, text);
    else
        fprintf(stderr, "starlin-perf: %s\n", text);
}

int perf_agree_count(const perf_ranks_t *ranks, const perf_error_t *error)
{
    vote_t mine, *all = calloc((size_t)ranks->nranks, sizeof(*all));
    if (all == NULL)
        perf_ranks_abort(1);
    memset(&mine, 0, sizeof(mine));
    if (error != NULL) {
        mine.failed = 1;
        mine.error = *error;
    }
    perf_ranks_gather(&mine, sizeof(mine), all);
    int nfailed = 0;
    for (int i = 0; i < ranks->nranks; i++)
        nfailed += all[i].failed;
    bool same = all[0].failed && error != NULL && strcmp(all[0].error.text, error->text) == 0;
    if (error != NULL && (ranks->rank == 0 || !same))
        perf_agree_print(ranks, error->text);
    free(all);
    return nfailed;
}

bool perf_agree_options(const perf_ranks_t *ranks, const perf_options_t *options, perf_error_t *error)
{
    perf_option_field_t mine[PERF_NFIELDS];
    perf_option_field_t(*all)[PERF_NFIELDS] = calloc((size_t)ranks->nranks, sizeof(*all));
    bool agreed = true;
    if (all == NULL)
        perf_ranks_abort(1);
    perf_options_fields(options, mine);
    perf_ranks_gather(mine, sizeof(mine), all);
    /* all ranks have the same fields, and find the same first difference */
    for (size_t field = 0; agreed && field < PERF_NFIELDS; field++)
        for (int i = 1; agreed && i < ranks->nranks; i++)
            if (strcmp(all[0][field].value, all[i][field].value) != 0)
                agreed = perf_error_set(error, "ranks disagree about %s: %s on rank 0, %s on rank %d",
                                        mine[field].name, all[0][field].value, all[i][field].value, i);
    free(all);
    return agreed;
}
