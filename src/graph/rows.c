/* SPDX-License-Identifier: BSD-3-Clause */
/* Row lists: the cut of m rows into chunks, and each chunk's run in every block. Immutable once made. */
#include "graph/rows.h"

#include <stdio.h>
#include <string.h>

__extension__ typedef __int128 wide_t;

int64_t starlin__block_first(int64_t m, unsigned nblocks, unsigned block)
{
    return (int64_t)((wide_t)m * block / nblocks);
}

/* Where a cut behind `rows` of all m rows lies within a block. */
static int64_t cut(int64_t block_rows, int64_t rows, int64_t m)
{
    return (int64_t)((wide_t)block_rows * rows / m);
}

static void fill(starlin__rows_t *list, const int64_t *rows)
{
    int64_t done = 0;

    for (size_t i = 0; i < list->nchunks; i++) {
        list->chunk_rows[i] = 0;
        for (unsigned b = 0; b < list->nblocks; b++) {
            int64_t first = starlin__block_first(list->m, list->nblocks, b);
            int64_t block_rows = starlin__block_first(list->m, list->nblocks, b + 1) - first;
            int64_t begin = cut(block_rows, done, list->m), end = cut(block_rows, done + rows[i], list->m);
            list->run_first[i * list->nblocks + b] = first + begin;
            list->run_rows[i * list->nblocks + b] = end - begin;
            list->chunk_rows[i] += end - begin;
        }
        list->chunk_first[i + 1] = list->chunk_first[i] + list->chunk_rows[i];
        done += rows[i];
    }
}

starlin_status_t starlin__rows_create(const int64_t *rows, size_t nchunks, unsigned nblocks, unsigned block,
                                      starlin__rows_t **rows_p)
{
    size_t nruns = nchunks * nblocks, count = 2 * nchunks + 1 + 2 * nruns;
    starlin__rows_t *list = starlin__alloc(sizeof *list + count * sizeof(int64_t));

    if (list == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "a list of %zu chunks in %u blocks", nchunks, nblocks);
    *list = (starlin__rows_t){.references = 1, .nchunks = nchunks, .nblocks = nblocks, .block = block};
    list->chunk_rows = (int64_t *)(list + 1);
    list->chunk_first = list->chunk_rows + nchunks;
    list->run_rows = list->chunk_first + nchunks + 1;
    list->run_first = list->run_rows + nruns;
    for (size_t i = 0; i < nchunks; i++)
        list->m += rows[i];
    fill(list, rows);
    for (size_t i = 0; i < nchunks; i++) {
        if (list->chunk_rows[i] > 0)
            continue;
        starlin__free(list);
        return starlin__error(STARLIN_ERR_INVALID, "chunk %zu of %lld rows has no row in any of %u blocks", i,
                              (long long)rows[i], nblocks);
    }
    *rows_p = list;
    return STARLIN_SUCCESS;
}

starlin__rows_t *starlin__rows_retain(starlin__rows_t *rows)
{
    if (rows != NULL)
        rows->references++;
    return rows;
}

void starlin__rows_release(starlin__rows_t *rows)
{
    if (rows != NULL && --rows->references == 0)
        starlin__free(rows);
}

bool starlin__rows_equal(const starlin__rows_t *a, const starlin__rows_t *b)
{
    return a == b || (a->nchunks == b->nchunks && a->nblocks == b->nblocks && a->m == b->m &&
                      memcmp(a->chunk_rows, b->chunk_rows, a->nchunks * sizeof *a->chunk_rows) == 0 &&
                      memcmp(a->run_rows, b->run_rows, a->nchunks * a->nblocks * sizeof *a->run_rows) == 0);
}

size_t starlin__rows_equal_cut(int64_t m, size_t count, int64_t *rows)
{
    if ((int64_t)count > m)
        count = (size_t)m;
    for (size_t i = 0; i < count; i++)
        rows[i] = m / (int64_t)count + ((int64_t)i < m % (int64_t)count ? 1 : 0);
    return count;
}

void starlin__rows_text(const int64_t *rows, size_t nchunks, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < nchunks; i++) {
        char number[24];
        size_t length = (size_t)snprintf(number, sizeof number, "%s%lld", i ? "," : "", (long long)rows[i]);
        if (used + length + 5 > size) {
            snprintf(text + used, size - used, ",...");
            return;
        }
        memcpy(text + used, number, length + 1);
        used += length;
    }
}
