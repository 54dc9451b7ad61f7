/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that do not agree: an error on every rank, with one text, soon; never a hang. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "graph/context.h"
#include "linear.h"
#include "world.h"

enum { TIMEOUT_MS = 8000 };

/* Every rank has this status, within ten seconds, and the same text. */
static void check_all(const char *what, starlin_status_t status, starlin_status_t expected, double start_us)
{
    char mine[512], first[512];

    snprintf(mine, sizeof mine, "%s", starlin_last_error());
    memcpy(first, mine, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (status != expected)
        CHECK_FAIL("%s: rank %d has \"%s\" (%s), expected \"%s\"", what, world_rank,
                   starlin_status_string(status), mine, starlin_status_string(expected));
    if (status != STARLIN_SUCCESS)
        CHECK_EQ_STR(mine, first);
    CHECK(starlin__now_us() - start_us < 10e6);
    if (world_rank == 0 && status != STARLIN_SUCCESS)
        printf("%s: %s\n", what, mine);
}

typedef struct request {
    const char *what;
    int64_t m;
    starlin_operation_t operation;
    size_t count, nrows, noperations;
    int64_t rows[3];
} request_t;

static starlin_status_t plan(starlin_context_t *context, const request_t *request)
{
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    starlin_operation_t operations[2] = {request->operation, request->operation};
    starlin_chunking_t *rows = NULL;
    starlin_status_t status;

    options.count = request->count;
    options.nrows = request->nrows;
    options.rows = request->nrows != 0 ? request->rows : NULL;
    status = starlin_chunking_plan(context, request->m, operations,
                                   request->noperations != 0 ? request->noperations : 1, &options, &rows);
    starlin_chunking_destroy(rows);
    return status;
}

#define OPERATION(...)                                                                                       \
    .operation = {                                                                                           \
        .struct_size = sizeof(starlin_operation_t), .op = STARLIN_OP_ROW_LINEAR, .k = 3, __VA_ARGS__}
#define SHAPE(...) .m = 7, OPERATION(.n = 5, __VA_ARGS__)

/* Rank 0 asks for the first, all others for one of the rest. The context stays usable. */
static void test_plans(void)
{
    static const request_t requests[] = {
        {.what = "right", SHAPE(.dtype = STARLIN_F32), .count = 2},
        {.what = "M", .m = 5, OPERATION(.n = 5), .count = 2},
        {.what = "N", .m = 7, OPERATION(.n = 6), .count = 2},
        {.what = "dtype", SHAPE(.dtype = STARLIN_BF16), .count = 2},
        {.what = "reduction", SHAPE(.reduction = STARLIN_REDUCTION_F32), .count = 2},
        {.what = "operator",
         .m = 7,
         .operation =
             {.struct_size = sizeof(starlin_operation_t), .op = STARLIN_OP_COLUMN_LINEAR, .n = 5, .k = 3},
         .count = 2},
        {.what = "placement", SHAPE(.to = STARLIN_SHARD_ROWS), .count = 2},
        {.what = "bias", SHAPE(.bias = true), .count = 2},
        {.what = "activation", SHAPE(.activation = STARLIN_RELU), .count = 2},
        {.what = "count", SHAPE(.dtype = STARLIN_F32), .count = 3},
        {.what = "auto", SHAPE(.dtype = STARLIN_F32)},
        {.what = "list", SHAPE(.dtype = STARLIN_F32), .nrows = 2, .rows = {3, 4}},
        {.what = "layers", SHAPE(.dtype = STARLIN_F32), .count = 2, .noperations = 2},
        {.what = "M is 0", .m = 0, OPERATION(.n = 5), .count = 2},
        {.what = "bad dtype", SHAPE(.dtype = (starlin_dtype_t)9), .count = 2},
        {.what = "bad sum", SHAPE(.dtype = STARLIN_F32), .nrows = 2, .rows = {3, 5}},
    };
    starlin_context_t *context = world_context(TIMEOUT_MS);

    for (size_t i = 1; context != NULL && i < sizeof requests / sizeof requests[0]; i++) {
        double start_us = starlin__now_us();
        starlin_status_t status = plan(context, world_rank == 0 ? &requests[0] : &requests[i]);
        check_all(requests[i].what, status, STARLIN_ERR_MISMATCH, start_us);
        CHECK_STATUS(plan(context, &requests[0]), STARLIN_SUCCESS);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

/* Operators in another order, or of another kind, or none at all. */
static void test_operators(void)
{
    starlin_context_t *context = world_context(TIMEOUT_MS);
    linear_t a = {.context = context, .m = 8, .n = 5, .k = 9, .count = 2}, b = a;
    double start_us;
    starlin_status_t status;

    if (context == NULL)
        return;
    b.n = 6;
    CHECK_STATUS(linear_open(&a), STARLIN_SUCCESS);
    CHECK_STATUS(linear_open(&b), STARLIN_SUCCESS);
    start_us = starlin__now_us();
    status = linear_submit(world_rank == 0 ? &a : &b);
    check_all("order", status, STARLIN_ERR_MISMATCH, start_us);
    b.reduction = a.reduction = world_rank == 0 ? STARLIN_REDUCTION_F32 : STARLIN_REDUCTION_NATIVE;
    status = linear_submit(&a);
    check_all("reduction", status, STARLIN_ERR_MISMATCH, start_us);
    a.reduction = STARLIN_REDUCTION_NATIVE;
    CHECK_STATUS(linear_submit(&a), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    CHECK_EQ_INT(linear_wrong(&a), 0);
    linear_close(&a);
    linear_close(&b);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

/* An operator that one rank is refused, since its x does not fit. */
static void test_refused(void)
{
    starlin_context_t *context = world_context(TIMEOUT_MS);
    linear_t a = {.context = context, .m = 8, .n = 5, .k = 9, .count = 2};
    starlin_matrix_t *x, *w;
    double start_us;
    starlin_status_t status;

    if (context == NULL)
        return;
    CHECK_STATUS(linear_open(&a), STARLIN_SUCCESS);
    x = a.x, w = a.w;
    if (world_rank != 0)
        a.x = w, a.w = x;
    start_us = starlin__now_us();
    status = linear_submit(&a);
    CHECK(status == STARLIN_ERR_MISMATCH || (world_rank != 0 && status == STARLIN_ERR_INVALID));
    CHECK(starlin__now_us() - start_us < 10e6);
    a.x = x, a.w = w;
    CHECK_STATUS(linear_submit(&a), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_context_wait(context), STARLIN_SUCCESS);
    CHECK_EQ_INT(linear_wrong(&a), 0);
    linear_close(&a);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

/* Backends that differ between ranks are an error of all, too. */
static void test_contexts(void)
{
    static const char *const wrong[] = {"self", "model:gbps=1", "model:gbps=x", "nonsense"};
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;

    options.use_mpi = true;
    options.mpi_comm = (int)MPI_Comm_c2f(MPI_COMM_WORLD);
    options.timeout_ms = TIMEOUT_MS;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        starlin_context_t *context = NULL;
        double start_us = starlin__now_us();
        options.comm = world_rank == 0 ? "auto" : wrong[i];
        CHECK(starlin_context_create(&options, &context) < 0);
        CHECK(starlin__now_us() - start_us < 10e6);
        if (world_rank == 0)
            printf("context of auto and %s: %s\n", wrong[i], starlin_last_error());
    }
    options.comm = NULL;
}

int main(int argc, char **argv)
{
    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    test_plans();
    test_operators();
    test_refused();
    test_contexts();
    return world_end();
}
