/* SPDX-License-Identifier: BSD-3-Clause */
/* How rows are cut into chunks. Shared by a chunking and its matrices.
 *
 * Rows [0,m) lie in `nblocks` blocks, block b being [bm/B, (b+1)m/B). A chunk takes one run of rows of each
 * block, at the same share of it. With one block a chunk is one run of rows. */
#ifndef STARLIN_ROWS_H
#define STARLIN_ROWS_H

#include "base/base.h"

typedef struct starlin__rows {
    unsigned references;
    int64_t m;
    size_t nchunks;
    unsigned nblocks, block; /* this rank's block */
    int64_t *chunk_rows;     /* by chunk: rows of all its runs */
    int64_t *chunk_first;    /* by chunk: rows of all chunks before it; nchunks + 1 entries */
    int64_t *run_rows;       /* by chunk, then block */
    int64_t *run_first;      /* by chunk, then block: first row, counted over all blocks */
} starlin__rows_t;

/* `rows`: as many rows for each chunk, m in all, as far as the blocks allow. ERR_INVALID: a chunk would have
 * no row. */
starlin_status_t starlin__rows_create(const int64_t *rows, size_t nchunks, unsigned nblocks, unsigned block,
                                      starlin__rows_t **rows_p);
starlin__rows_t *starlin__rows_retain(starlin__rows_t *rows);
void starlin__rows_release(starlin__rows_t *rows); /* NULL does nothing */

/* First row of a block. */
int64_t starlin__block_first(int64_t m, unsigned nblocks, unsigned block);

bool starlin__rows_equal(const starlin__rows_t *a, const starlin__rows_t *b);

/* Cuts m rows into at most `count` chunks of nearly equal size, larger ones first. Returns their number. */
size_t starlin__rows_equal_cut(int64_t m, size_t count, int64_t *rows);

/* "3072,3072,1536,512"; cut short with "..." where it does not fit. */
void starlin__rows_text(const int64_t *rows, size_t nchunks, char *text, size_t size);

struct starlin_chunking {
    starlin__rows_t *rows;
    char *fallback;                     /* NULL: the request was followed */
    struct starlin__planning *planning; /* how the planner came to it; NULL: asked for */
};

#endif
