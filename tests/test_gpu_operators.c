/* SPDX-License-Identifier: BSD-3-Clause */
/* The operator on a device: exact for every dtype, reduction, memory and rank count, whatever STARLIN_COMM
 * says; chains of layers and outputs that are written again and again without a wait, chunk by chunk, in one
 * piece and both in turn. With
 * STARLIN_COMPUTE=cblas the same on the host. The last line holds hashes of all results, which gpu_agree.sh
 * compares. usage: test_gpu_operators [small] */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "gpu.h"
#include "operand.h"
#include "operators/row_linear_insert.h"
#include "world.h"

typedef struct kind {
    starlin_dtype_t dtype;
    starlin_reduction_t reduction;
} kind_t;

enum { NKINDS = 6, NREWRITES = 10 };

static const kind_t kinds[NKINDS] = {
    {STARLIN_F32, STARLIN_REDUCTION_NATIVE}, {STARLIN_F64, STARLIN_REDUCTION_NATIVE},
    {STARLIN_F16, STARLIN_REDUCTION_NATIVE}, {STARLIN_BF16, STARLIN_REDUCTION_NATIVE},
    {STARLIN_F16, STARLIN_REDUCTION_F32},    {STARLIN_BF16, STARLIN_REDUCTION_F32}};

static uint64_t bits_hash = STARLIN__HASH_INIT, numbers_hash = STARLIN__HASH_INIT;

/* In one piece where it is asked for and the memories allow it: always in the device's own with its own link.
 */
static void submit(starlin_context_t *context, const operand_t *x, const operand_t *w, const operand_t *y,
                   starlin_reduction_t reduction, bool whole)
{
    starlin__row_linear_t one = {.x = x->matrix, .w = w->matrix, .y = y->matrix, .reduction = reduction};
    int joins = starlin__row_linear_joins(&one), all = 0;

    if (context->comm->space == context->compute->ops->space && x->memory != HOST && y->memory != HOST)
        CHECK(joins);
    /* an empty slice joins wherever it lies, others need not: all ranks or none, as a trial sees to it */
    MPI_Allreduce(&joins, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    one.whole = whole && all;
    CHECK_STATUS(starlin__row_linear_submit(context, &one), STARLIN_SUCCESS);
}

static void check_result(operand_t *y, const int32_t *expected, const char *what, kind_t kind)
{
    size_t wrong = operand_wrong(y, expected, &bits_hash, &numbers_hash);
    check_count++;
    if (wrong != 0)
        CHECK_FAIL("rank %d: %s, %lld x %lld, %s memory, %s, reduction %d: %zu elements are wrong",
                   world_rank, what, (long long)y->rows, (long long)y->cols, memory_names[y->memory],
                   starlin_dtype_name(kind.dtype), (int)kind.reduction, wrong);
}

/* One shape in every dtype and memory. */
static void run_shape(starlin_context_t *context, int64_t m, int64_t n, int64_t k)
{
    static const size_t counts[] = {1, 5, 3, 8};
    int8_t *x_all = sparse_values(m, 0, k, 1), *w_all = sparse_values(n, 0, k, 2);
    int32_t *expected = calloc((size_t)(m * n), sizeof *expected);
    int64_t first, k_local;
    size_t turn = 0;

    problem_slice(k, world_rank, world_nranks, &first, &k_local);
    int8_t *x_values = sparse_values(m, first, k_local, 1), *w_values = sparse_values(n, first, k_local, 2);
    add_product(expected, x_all, w_all, m, n, k);
    for (int i = 0; i < NKINDS; i++) {
        for (int memory = 0; memory < NMEMORIES; memory++, turn++) {
            starlin_linear_shape_t shape = {m, n, k_local, kinds[i].dtype, kinds[i].reduction};
            /* auto measures, so it chooses anew on each machine: not for results that are compared */
            starlin_chunking_t *rows = plan_rows(context, &shape, counts[turn % 4]);
            int64_t padding = (int64_t)(turn % 3);
            operand_t x, w, y;
            bool is_open = operand_open(&x, context, rows, m, k_local, padding, kinds[i].dtype,
                                        (memory_t)((memory + (int)(turn % 2)) % NMEMORIES), x_values);
            is_open &= operand_open(&w, context, NULL, n, k_local, 2 * padding, kinds[i].dtype,
                                    (memory_t)memory, w_values);
            is_open &= operand_open(&y, context, rows, m, n, 0, kinds[i].dtype, (memory_t)memory, NULL);
            if (is_open) {
                for (int whole = 0; whole < 2; whole++) {
                    submit(context, &x, &w, &y, kinds[i].reduction, whole == 1);
                    check_result(&y, expected, whole ? "one piece" : "one layer", kinds[i]);
                    if (y.memory == LIBRARY) /* nothing stale can pass */
                        operand_fill(&y, NULL);
                }
            }
            operand_close(&x);
            operand_close(&w);
            operand_close(&y);
            starlin_chunking_destroy(rows);
        }
    }
    free(x_all);
    free(w_all);
    free(x_values);
    free(w_values);
    free(expected);
}

/* Output j of a later layer is the sum over ranks r of input (5 j + r): one 1 in each row of the weight. */
static int8_t *choice_values(int64_t outputs, int64_t inputs)
{
    int8_t *values = calloc((size_t)(outputs * inputs), 1);
    for (int64_t j = 0; j < outputs; j++)
        values[j * inputs + (5 * j + world_rank) % inputs] = 1;
    return values;
}

static void choose(const int32_t *in, int32_t *out, int64_t rows, int64_t inputs, int64_t outputs)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < outputs; j++) {
            out[i * outputs + j] = 0;
            for (int64_t rank = 0; rank < world_nranks; rank++)
                out[i * outputs + j] += in[i * inputs + (5 * j + rank) % inputs];
        }
    }
}

enum { ROWS = 48, INNER = 24, N1 = 40, N2 = 17, N3 = 33 };

/* Three layers without a wait between them, twice over the same memory; bit i of the pattern: operator i is
 * computed in one piece. */
static void run_chain(starlin_context_t *context, kind_t kind, memory_t memory, unsigned pattern)
{
    static int32_t y1[ROWS * N1], y2[ROWS * N2], y3[ROWS * N3];
    int64_t first, k_local;
    problem_slice(INNER, world_rank, world_nranks, &first, &k_local);
    int8_t *all_x = sparse_values(ROWS, 0, INNER, 1), *all_w = sparse_values(N1, 0, INNER, 2);
    int8_t *values[4] = {sparse_values(ROWS, first, k_local, 1), sparse_values(N1, first, k_local, 2),
                         choice_values(N2, N1), choice_values(N3, N2)};
    starlin_linear_shape_t shape = {ROWS, N1, k_local, kind.dtype, kind.reduction};
    starlin_chunking_t *rows = plan_rows(context, &shape, 6);
    operand_t x, w[3], y[3];

    memset(y1, 0, sizeof y1);
    add_product(y1, all_x, all_w, ROWS, N1, INNER);
    choose(y1, y2, ROWS, N1, N2);
    choose(y2, y3, ROWS, N2, N3);
    bool is_open = operand_open(&x, context, rows, ROWS, k_local, 0, kind.dtype, memory, values[0]);
    const int64_t inputs[3] = {k_local, N1, N2}, outputs[3] = {N1, N2, N3};
    for (int i = 0; i < 3; i++) {
        is_open &=
            operand_open(&w[i], context, NULL, outputs[i], inputs[i], 0, kind.dtype, memory, values[i + 1]);
        is_open &= operand_open(&y[i], context, rows, ROWS, outputs[i], 0, kind.dtype, memory, NULL);
    }
    for (int i = 0; is_open && i < 6; i++)
        submit(context, i % 3 == 0 ? &x : &y[i % 3 - 1], &w[i % 3], &y[i % 3], kind.reduction,
               pattern >> i & 1);
    if (is_open) {
        check_result(&y[2], y3, "third layer", kind);
        check_result(&y[0], y1, "first layer", kind);
        check_result(&y[1], y2, "second layer", kind);
    }
    for (int i = 0; i < 3; i++) {
        operand_close(&w[i]);
        operand_close(&y[i]);
    }
    for (int i = 0; i < 4; i++)
        free(values[i]);
    free(all_x);
    free(all_w);
    operand_close(&x);
    starlin_chunking_destroy(rows);
}

/* The same output from two inputs in turn: the last one's result stays. */
static void run_rewrites(starlin_context_t *context, kind_t kind, memory_t memory, unsigned pattern)
{
    static int32_t expected[ROWS * N1];
    int64_t first, k_local;
    problem_slice(INNER, world_rank, world_nranks, &first, &k_local);
    int8_t *all_x = sparse_values(ROWS, 0, INNER, 3), *all_w = sparse_values(N1, 0, INNER, 2);
    int8_t *values[3] = {sparse_values(ROWS, first, k_local, 1), sparse_values(ROWS, first, k_local, 3),
                         sparse_values(N1, first, k_local, 2)};
    starlin_linear_shape_t shape = {ROWS, N1, k_local, kind.dtype, kind.reduction};
    starlin_chunking_t *rows = plan_rows(context, &shape, 8);
    operand_t x[2], w, y;

    memset(expected, 0, sizeof expected);
    add_product(expected, all_x, all_w, ROWS, N1, INNER);
    bool is_open = operand_open(&x[0], context, rows, ROWS, k_local, 0, kind.dtype, memory, values[0]);
    is_open &= operand_open(&x[1], context, rows, ROWS, k_local, 0, kind.dtype, memory, values[1]);
    is_open &= operand_open(&w, context, NULL, N1, k_local, 0, kind.dtype, memory, values[2]);
    is_open &= operand_open(&y, context, rows, ROWS, N1, 0, kind.dtype, memory, NULL);
    for (int i = 0; is_open && i < NREWRITES; i++)
        submit(context, &x[i % 2], &w, &y, kind.reduction, pattern >> i & 1);
    if (is_open)
        check_result(&y, expected, "written again", kind);
    operand_close(&x[0]);
    operand_close(&x[1]);
    operand_close(&w);
    operand_close(&y);
    for (int i = 0; i < 3; i++)
        free(values[i]);
    free(all_x);
    free(all_w);
    starlin_chunking_destroy(rows);
}

static void run_all(starlin_context_t *context, bool is_small)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {37, 19, 23}, {257, 513, 129}, {2048, 1024, 512}};
    static const unsigned patterns[] = {0x000, 0x3ff, 0x155, 0x2aa, 0x0cc};
    size_t nshapes = is_small ? 2 : sizeof shapes / sizeof shapes[0];

    for (size_t i = 0; i < nshapes; i++)
        run_shape(context, shapes[i][0], shapes[i][1], shapes[i][2]);
    for (int i = 0; i < NKINDS; i++) {
        for (int memory = 0; memory < NMEMORIES; memory++) {
            for (size_t j = 0; j < sizeof patterns / sizeof patterns[0]; j++) {
                run_chain(context, kinds[i], (memory_t)memory, patterns[j]);
                run_rewrites(context, kinds[i], (memory_t)memory, patterns[j]);
            }
        }
    }
}

int main(int argc, char **argv)
{
    const char *compute = getenv("STARLIN_COMPUTE");
    starlin_context_info_t info;
    starlin_context_t *context;

    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    if ((compute == NULL || strcmp(compute, "cblas") != 0) && !gpu_is_here()) {
        MPI_Finalize();
        return 77;
    }
    context = world_context(60000);
    if (context != NULL) {
        run_all(context, argc > 1 && strcmp(argv[1], "small") == 0);
        CHECK_STATUS(starlin_context_get_info(context, &info), STARLIN_SUCCESS);
        if (world_rank == 0)
            printf("%d ranks, %s, %s: bits %016llx numbers %016llx\n", world_nranks, info.comm, info.compute,
                   (unsigned long long)bits_hash, (unsigned long long)numbers_hash);
        fflush(stdout);
        CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    }
    return world_end();
}
