/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong arguments of the operators: a status, and a text that names the argument and its value. Ranks that
 * do not agree: the same error on every rank, with the same text. Afterwards all still works. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "world.h"

#include "operators.h"
#include "watchdog.h"

enum { TIMEOUT_MS = 8000, M = 24, NOUTPUTS = 5, INNER = 4 };

/* What a matrix is made from. */
typedef enum rows { SAME, UNCUT, OTHER_CUT, OTHER_M, NONE } rows_t;
typedef struct spec {
    rows_t rows;
    starlin_placement_t placement;
    int64_t nrows, cols; /* nrows: where it is not cut */
    starlin_dtype_t dtype;
} spec_t;

typedef enum operand { X, W, Y, BIAS, REST, NOPERANDS } operand_t;

/* One operand of a right call is replaced by another, or an option. */
typedef struct wrong {
    starlin_operator_t op;
    starlin_placement_t from, to;
    operand_t operand;
    spec_t spec;
    starlin_linear_options_t options;
    starlin_status_t status;
    const char *parts[3];
} wrong_t;

static starlin_context_t *context;
static starlin_chunking_t *chunkings[3]; /* SAME, OTHER_CUT, OTHER_M */

static starlin_chunking_t *plan(int64_t m, size_t count)
{
    scene_t scene = {.context = context, .m = m, .count = count, .blocks = true};
    scene_open(&scene);
    return scene.rows;
}

static starlin_matrix_t *make(const spec_t *spec)
{
    starlin_matrix_layout_t layout = {.rows = spec->rows == UNCUT ? spec->nrows : 0,
                                      .cols = spec->cols,
                                      .dtype = spec->dtype,
                                      .placement = spec->placement};
    const starlin_chunking_t *rows = spec->rows == SAME        ? chunkings[0]
                                     : spec->rows == OTHER_CUT ? chunkings[1]
                                     : spec->rows == OTHER_M   ? chunkings[2]
                                                               : NULL;
    starlin_matrix_t *matrix = NULL;

    if (spec->rows != NONE)
        CHECK_STATUS(starlin_matrix_create(context, rows, &layout, &matrix), STARLIN_SUCCESS);
    return matrix;
}

static starlin_status_t call(const wrong_t *wrong, starlin_matrix_t **operands)
{
    starlin_linear_options_t options = wrong->options;

    options.bias = operands[BIAS];
    options.residual = operands[REST];
    switch (wrong->op) {
    case STARLIN_OP_ROW_LINEAR:
        return starlin_row_linear(context, operands[X], operands[W], operands[Y], &options);
    case STARLIN_OP_COLUMN_LINEAR:
        return starlin_column_linear(context, operands[X], operands[W], operands[Y], &options);
    default:
        return starlin_redistribute(context, operands[X], operands[Y]);
    }
}

static void check_refused(const wrong_t *wrong)
{
    bool is_linear = wrong->op != STARLIN_OP_REDISTRIBUTE;
    spec_t specs[NOPERANDS] = {
        [X] = {.placement = wrong->from, .cols = is_linear ? INNER : NOUTPUTS},
        [W] = {.rows = is_linear ? UNCUT : NONE, .nrows = NOUTPUTS, .cols = INNER},
        [Y] = {.placement = wrong->to, .cols = NOUTPUTS},
        [BIAS] = {.rows = NONE},
        [REST] = {.rows = NONE},
    };
    starlin_matrix_t *operands[NOPERANDS];

    if (wrong->operand != NOPERANDS)
        specs[wrong->operand] = wrong->spec;
    for (int i = 0; i < NOPERANDS; i++)
        operands[i] = make(&specs[i]);
    CHECK_STATUS(call(wrong, operands), wrong->status);
    for (size_t i = 0; i < 3 && wrong->parts[i] != NULL; i++)
        CHECK_CONTAINS(starlin_last_error(), wrong->parts[i]);
    if (check_failures != 0)
        fprintf(stderr, "  in %s, %s to %s, operand %d\n", starlin_operator_name(wrong->op),
                starlin_placement_name(wrong->from), starlin_placement_name(wrong->to), (int)wrong->operand);
    for (int i = 0; i < NOPERANDS; i++)
        starlin_matrix_destroy(operands[i]);
}

#define ROW(to_)         .op = STARLIN_OP_ROW_LINEAR, .from = STARLIN_SHARD_COLS, .to = STARLIN_##to_
#define COLUMN(from_)    .op = STARLIN_OP_COLUMN_LINEAR, .from = STARLIN_##from_, .to = STARLIN_SHARD_COLS
#define MOVE(from_, to_) .op = STARLIN_OP_REDISTRIBUTE, .from = STARLIN_##from_, .to = STARLIN_##to_
#define IS(operand_, rows_, placement_, nrows_, cols_, dtype_)                                               \
    .operand = operand_, .spec = {rows_, STARLIN_##placement_, nrows_, cols_, STARLIN_##dtype_},             \
    .status = STARLIN_ERR_INVALID
#define OPTIONS(status_, ...) .operand = NOPERANDS, .options = {__VA_ARGS__}, .status = STARLIN_ERR_##status_

static const wrong_t table[] = {
    {ROW(REPLICATE), IS(X, NONE, REPLICATE, 0, 0, F32), .parts = {"x is NULL"}},
    {ROW(REPLICATE), IS(W, NONE, REPLICATE, 0, 0, F32), .parts = {"w is NULL"}},
    {ROW(REPLICATE), IS(Y, NONE, REPLICATE, 0, 0, F32), .parts = {"y is NULL"}},
    {COLUMN(REPLICATE), IS(X, NONE, REPLICATE, 0, 0, F32), .parts = {"x is NULL"}},
    {COLUMN(REPLICATE), IS(W, NONE, REPLICATE, 0, 0, F32), .parts = {"w is NULL"}},
    {COLUMN(REPLICATE), IS(Y, NONE, REPLICATE, 0, 0, F32), .parts = {"y is NULL"}},
    {MOVE(PARTIAL, REPLICATE), IS(X, NONE, REPLICATE, 0, 0, F32), .parts = {"x is NULL"}},
    {MOVE(PARTIAL, REPLICATE), IS(Y, NONE, REPLICATE, 0, 0, F32), .parts = {"y is NULL"}},
    /* columns */
    {ROW(REPLICATE), IS(X, SAME, SHARD_COLS, 0, 3, F32), .parts = {"x has 3 columns", "w", "4"}},
    {ROW(SHARD_ROWS), IS(W, UNCUT, REPLICATE, 6, 4, F32), .parts = {"y has 5 columns", "w", "6"}},
    {ROW(PARTIAL), IS(Y, SAME, PARTIAL, 0, 7, F32), .parts = {"y has 7 columns", "w", "5"}},
    {COLUMN(SHARD_ROWS), IS(X, SAME, SHARD_ROWS, 0, 3, F32), .parts = {"x has 3 columns", "w", "4"}},
    {COLUMN(REPLICATE), IS(Y, SAME, SHARD_COLS, 0, 7, F32), .parts = {"y has 7 columns", "w", "5"}},
    {MOVE(SHARD_ROWS, REPLICATE), IS(Y, SAME, REPLICATE, 0, 7, F32), .parts = {"x", "5", "7"}},
    /* dtypes */
    {ROW(REPLICATE), IS(W, UNCUT, REPLICATE, 5, 4, F64), .parts = {"x is f32", "w f64"}},
    {COLUMN(SHARD_ROWS), IS(Y, SAME, SHARD_COLS, 0, 5, BF16), .parts = {"x is f32", "y bf16"}},
    {COLUMN(REPLICATE), IS(BIAS, UNCUT, REPLICATE, 1, 5, F16), .parts = {"x is f32", "bias f16"}},
    {ROW(SHARD_ROWS), IS(REST, SAME, SHARD_ROWS, 0, 5, F64), .parts = {"x is f32", "residual f64"}},
    {MOVE(PARTIAL, SHARD_ROWS), IS(Y, SAME, SHARD_ROWS, 0, 5, F64), .parts = {"x is f32", "y f64"}},
    /* cut, and not cut */
    {ROW(REPLICATE), IS(X, UNCUT, REPLICATE, M, 4, F32), .parts = {"x", "cut"}},
    {ROW(REPLICATE), IS(W, SAME, REPLICATE, 0, 4, F32), .parts = {"w", "2 chunks", "cut"}},
    {ROW(REPLICATE), IS(Y, UNCUT, REPLICATE, M, 5, F32), .parts = {"y", "cut"}},
    {ROW(REPLICATE), IS(BIAS, SAME, REPLICATE, 0, 5, F32), .parts = {"bias", "2 chunks", "cut"}},
    {ROW(REPLICATE), IS(REST, UNCUT, REPLICATE, M, 5, F32), .parts = {"residual", "cut"}},
    {MOVE(PARTIAL, REPLICATE), IS(Y, UNCUT, REPLICATE, M, 5, F32), .parts = {"y", "cut"}},
    {ROW(REPLICATE), IS(Y, OTHER_CUT, REPLICATE, 0, 5, F32), .parts = {"cut alike", "2 chunks", "4 chunks"}},
    {COLUMN(REPLICATE), IS(X, OTHER_M, REPLICATE, 0, 4, F32), .parts = {"cut alike", "25 rows", "24 rows"}},
    {COLUMN(SHARD_ROWS), IS(Y, OTHER_M, SHARD_COLS, 0, 5, F32), .parts = {"cut alike", "24 rows", "25 rows"}},
    {MOVE(SHARD_ROWS, REPLICATE), IS(Y, OTHER_M, REPLICATE, 0, 5, F32), .parts = {"cut alike", "24 rows"}},
    {ROW(SHARD_ROWS), IS(REST, OTHER_M, SHARD_ROWS, 0, 5, F32),
     .parts = {"residual", "cut alike", "25 rows"}},
    /* bias and residual */
    {ROW(REPLICATE), IS(BIAS, UNCUT, REPLICATE, 1, 4, F32), .parts = {"bias is [1,4]", "[1,5]"}},
    {COLUMN(REPLICATE), IS(BIAS, UNCUT, REPLICATE, 2, 5, F32), .parts = {"bias is [2,5]", "[1,5]"}},
    {ROW(REPLICATE), IS(REST, SAME, REPLICATE, 0, 6, F32), .parts = {"residual has 6", "y"}},
    {ROW(SHARD_ROWS), IS(REST, SAME, REPLICATE, 0, 5, F32), .parts = {"residual", "replicate", "shard_rows"}},
    {COLUMN(REPLICATE), IS(REST, SAME, PARTIAL, 0, 5, F32), .parts = {"residual", "partial", "shard_cols"}},
    /* options */
    {ROW(REPLICATE), OPTIONS(INVALID, .reduction = (starlin_reduction_t)7), .parts = {"reduction is 7"}},
    {COLUMN(REPLICATE), OPTIONS(INVALID, .reduction = (starlin_reduction_t)-3), .parts = {"reduction is -3"}},
    {ROW(REPLICATE), OPTIONS(INVALID, .activation = STARLIN_SWIGLU), .parts = {"activation", "5"}},
    {COLUMN(REPLICATE), OPTIONS(INVALID, .activation = STARLIN_SWIGLU), .parts = {"activation", "5"}},
    {COLUMN(SHARD_ROWS), OPTIONS(INVALID, .activation = (starlin_activation_kind_t)99),
     .parts = {"activation", "99"}},
    {ROW(SHARD_ROWS), OPTIONS(INVALID, .struct_size = 3), .parts = {"struct_size", "3"}},
    {COLUMN(REPLICATE), OPTIONS(INVALID, .struct_size = 3), .parts = {"struct_size", "3"}},
    {ROW(PARTIAL), OPTIONS(UNSUPPORTED, .activation = STARLIN_RELU), .parts = {"partial", "activation"}},
    {ROW(PARTIAL), .operand = BIAS, .spec = {UNCUT, .nrows = 1, .cols = 5}, .status = STARLIN_ERR_UNSUPPORTED,
     .parts = {"partial", "bias"}},
    {ROW(PARTIAL), .operand = REST, .spec = {SAME, STARLIN_PARTIAL, .cols = 5},
     .status = STARLIN_ERR_UNSUPPORTED, .parts = {"partial", "residual"}},
};

/* Does the operator have this way? */
static bool is_known(starlin_operator_t op, starlin_placement_t from, starlin_placement_t to)
{
    if (op == STARLIN_OP_ROW_LINEAR)
        return from == STARLIN_SHARD_COLS && to != STARLIN_SHARD_COLS;
    if (op == STARLIN_OP_COLUMN_LINEAR)
        return (from == STARLIN_REPLICATE || from == STARLIN_SHARD_ROWS) && to == STARLIN_SHARD_COLS;
    return (from == STARLIN_PARTIAL && (to == STARLIN_REPLICATE || to == STARLIN_SHARD_ROWS)) ||
           (from == STARLIN_SHARD_ROWS && to == STARLIN_REPLICATE) ||
           (from == STARLIN_REPLICATE && to == STARLIN_SHARD_ROWS);
}

static void test_placements(void)
{
    for (int op = 0; op < STARLIN_NOPERATORS; op++) {
        for (int pair = 0; pair < 16 && op <= STARLIN_OP_REDISTRIBUTE; pair++) {
            wrong_t wrong = {.op = (starlin_operator_t)op,
                             .from = (starlin_placement_t)(pair / 4),
                             .to = (starlin_placement_t)(pair % 4),
                             .operand = NOPERANDS,
                             .status = STARLIN_ERR_UNSUPPORTED};
            step_begin("placements", pair);
            wrong.parts[0] = starlin_operator_name(wrong.op);
            wrong.parts[1] = starlin_placement_name(wrong.from);
            wrong.parts[2] = starlin_placement_name(wrong.to);
            if (!is_known(wrong.op, wrong.from, wrong.to))
                check_refused(&wrong);
        }
    }
}

static void refuse_layout(const starlin_chunking_t *rows, void *data, starlin_matrix_layout_t layout,
                          const char *part)
{
    starlin_matrix_t *matrix = NULL;

    CHECK_STATUS(starlin_matrix_wrap(context, rows, data, &layout, &matrix), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), part);
    CHECK(matrix == NULL);
}

static void test_layouts(void)
{
    static double memory[16 * 8];
    char *bytes = (char *)memory;
    scene_t plain = {.context = context, .m = M, .count = 2};

    step_begin("layouts", 0);
    for (int dtype = 0; dtype < 4; dtype++) {
        starlin_matrix_layout_t layout = {.cols = 3, .dtype = (starlin_dtype_t)dtype};
        size_t nbytes = starlin_dtype_nbytes(layout.dtype);
        for (size_t offset = 1; offset < nbytes; offset++)
            refuse_layout(chunkings[0], bytes + offset, layout, "aligned");
    }
    for (int placement = 1; placement < 4; placement++)
        refuse_layout(
            NULL, memory,
            (starlin_matrix_layout_t){.rows = 2, .cols = 3, .placement = (starlin_placement_t)placement},
            starlin_placement_name((starlin_placement_t)placement));
    refuse_layout(chunkings[0], memory,
                  (starlin_matrix_layout_t){.cols = 3, .placement = (starlin_placement_t)9},
                  "placement is 9");
    refuse_layout(chunkings[0], memory, (starlin_matrix_layout_t){.rows = 9, .cols = 3}, "rows is 9");
    scene_open(&plain);
    if (world_nranks > 1)
        refuse_layout(plain.rows, memory,
                      (starlin_matrix_layout_t){.cols = 3, .placement = STARLIN_SHARD_ROWS}, "shard_rows");
    scene_close(&plain);
}

static void test_views(void)
{
    starlin_matrix_t *view = NULL;

    step_begin("views", 0);
    for (int pair = 0; pair < 16; pair++) {
        starlin_placement_t from = (starlin_placement_t)(pair / 4), to = (starlin_placement_t)(pair % 4);
        spec_t spec = {.placement = from, .cols = 3};
        starlin_matrix_t *matrix;
        if (from == to ||
            (from != STARLIN_SHARD_ROWS && from != STARLIN_SHARD_COLS && to != STARLIN_SHARD_ROWS &&
             to != STARLIN_SHARD_COLS) ||
            (from == STARLIN_REPLICATE && to == STARLIN_SHARD_COLS))
            continue;
        matrix = make(&spec);
        CHECK_STATUS(starlin_matrix_view(matrix, to, &view), STARLIN_ERR_INVALID);
        CHECK_CONTAINS(starlin_last_error(), starlin_placement_name(from));
        CHECK_CONTAINS(starlin_last_error(), starlin_placement_name(to));
        CHECK_STATUS(starlin_matrix_view(matrix, (starlin_placement_t)9, &view), STARLIN_ERR_INVALID);
        CHECK_CONTAINS(starlin_last_error(), "9");
        CHECK_STATUS(starlin_matrix_view(matrix, STARLIN_PARTIAL, NULL), STARLIN_ERR_INVALID);
        CHECK_CONTAINS(starlin_last_error(), "view_p");
        CHECK(view == NULL);
        starlin_matrix_destroy(matrix);
    }
    CHECK_STATUS(starlin_matrix_view(NULL, STARLIN_PARTIAL, &view), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "matrix is NULL");
}

/* An output that is an input, or shares its memory. */
static void test_overlaps(void)
{
    static float memory[4 * M * NOUTPUTS];
    const spec_t shape = {.placement = STARLIN_SHARD_COLS, .cols = NOUTPUTS};
    const spec_t square = {UNCUT, .nrows = NOUTPUTS, .cols = NOUTPUTS}, whole = {.cols = NOUTPUTS};
    starlin_matrix_layout_t layout = {.cols = NOUTPUTS};
    starlin_matrix_t *x = make(&shape), *w = make(&square), *y = make(&whole), *a = NULL, *b = NULL;
    starlin_linear_options_t options = {.residual = y};

    step_begin("overlaps", 0);
    CHECK_STATUS(starlin_row_linear(context, x, w, y, &options), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "the memory of y overlaps that of residual");
    CHECK_STATUS(starlin_redistribute(context, y, y), STARLIN_ERR_UNSUPPORTED);
    layout.placement = STARLIN_PARTIAL;
    CHECK_STATUS(starlin_matrix_wrap(context, chunkings[0], memory, &layout, &a), STARLIN_SUCCESS);
    layout.placement = STARLIN_REPLICATE;
    CHECK_STATUS(starlin_matrix_wrap(context, chunkings[0], memory + NOUTPUTS, &layout, &b), STARLIN_SUCCESS);
    CHECK_STATUS(starlin_redistribute(context, a, b), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "the memory of y overlaps that of x");
    CHECK_STATUS(starlin_redistribute(NULL, a, b), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "context is NULL");
    CHECK_STATUS(starlin_column_linear(NULL, y, w, x, NULL), STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), "context is NULL");
    starlin_matrix_destroy(x);
    starlin_matrix_destroy(w);
    starlin_matrix_destroy(y);
    starlin_matrix_destroy(a);
    starlin_matrix_destroy(b);
}

/* --- ranks that do not agree */

typedef struct pair {
    const char *what;
    job_t jobs[2]; /* rank 0's, the others' */
    scene_t scenes[2];
    const char *parts[2]; /* of the text */
} pair_t;

static const int64_t list[] = {6, 9, 9};

static const pair_t pairs[] = {
    {"output placement", {JOB_ROW(REPLICATE), JOB_ROW(SHARD_ROWS)}, .parts = {"replicate", "shard_rows"}},
    {"partial", {JOB_ROW(REPLICATE), JOB_ROW(PARTIAL)}, .parts = {"replicate", "partial"}},
    {"input placement",
     {JOB_COLUMN(REPLICATE), JOB_COLUMN(SHARD_ROWS)},
     .parts = {"replicate", "shard_rows"}},
    {"redistribution",
     {JOB_REDISTRIBUTE(PARTIAL, REPLICATE), JOB_REDISTRIBUTE(SHARD_ROWS, REPLICATE)},
     .parts = {"partial", "shard_rows"}},
    {"operator",
     {JOB_ROW(REPLICATE), JOB_REDISTRIBUTE(PARTIAL, REPLICATE)},
     .parts = {"row_linear", "redistribute"}},
    {"linears", {JOB_ROW(REPLICATE), JOB_COLUMN(REPLICATE)}, .parts = {"row_linear", "column_linear"}},
    {"dtype",
     {JOB_ROW(REPLICATE), JOB_ROW(REPLICATE)},
     {{.m = M}, {.m = M, .dtype = STARLIN_F64}},
     {"f32", "f64"}},
    {"reduction",
     {JOB_ROW(SHARD_ROWS), JOB_ROW(SHARD_ROWS)},
     {{.m = M, .dtype = STARLIN_BF16}, {.m = M, .dtype = STARLIN_BF16, .reduction = STARLIN_REDUCTION_F32}},
     {"native", "f32"}},
    {"chunk list",
     {JOB_COLUMN(SHARD_ROWS), JOB_COLUMN(SHARD_ROWS)},
     {{.m = M, .list = list, .nlist = 3}, {.m = M, .count = 1}},
     {"the chunk list", "24"}},
    {"rows", {JOB_ROW(REPLICATE), JOB_ROW(REPLICATE)}, {{.m = M}, {.m = M + 1}}, {"M is 24", "25"}},
    {"columns",
     {JOB_REDISTRIBUTE(PARTIAL, REPLICATE), {.op = STARLIN_OP_REDISTRIBUTE, .from = STARLIN_PARTIAL, .n = 6}},
     .parts = {"19", "6"}},
    {"bias", {JOB_ROW(REPLICATE, .bias = true), JOB_ROW(REPLICATE)}, .parts = {"bias"}},
    {"residual", {JOB_COLUMN(REPLICATE), JOB_COLUMN(REPLICATE, .residual = true)}, .parts = {"residual"}},
    {"activation",
     {JOB_COLUMN(SHARD_ROWS), JOB_COLUMN(SHARD_ROWS, .activation = STARLIN_RELU)},
     .parts = {"identity", "relu"}},
};

static void check_mismatch(const pair_t *pair, starlin_status_t status, double start_us)
{
    char mine[512], first[512];

    snprintf(mine, sizeof mine, "%s", starlin_last_error());
    memcpy(first, mine, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    check_count++;
    if (status != STARLIN_ERR_MISMATCH)
        CHECK_FAIL("%s: rank %d has \"%s\" (%s)", pair->what, world_rank, starlin_status_string(status),
                   mine);
    CHECK_EQ_STR(mine, first);
    for (int i = 0; i < 2 && pair->parts[i] != NULL; i++)
        CHECK_CONTAINS(mine, pair->parts[i]);
    CHECK(starlin__now_us() - start_us < 0.9e3 * TIMEOUT_MS);
    if (world_rank == 0)
        printf("%s: %s\n", pair->what, mine);
}

/* A context each, so that no call is known from the pair before. */
static void test_pair(const pair_t *wanted)
{
    pair_t pair = *wanted;
    uint64_t hash = STARLIN__HASH_INIT;
    double start_us;
    starlin_status_t status;

    step_begin(pair.what, world_nranks);
    context = world_context(TIMEOUT_MS);
    if (context == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        scene_t *scene = &pair.scenes[i];
        scene->context = context;
        scene->m = scene->m != 0 ? scene->m : M;
        scene->count = scene->list != NULL || scene->count != 0 ? scene->count : 2;
        scene->blocks = true;
        scene_open(scene);
        job_open(&pair.jobs[i], scene, 5);
    }
    start_us = starlin__now_us();
    status = job_call(&pair.jobs[world_rank == 0 ? 0 : 1]);
    check_mismatch(&pair, status, start_us);
    if (status == STARLIN_ERR_MISMATCH) { /* no harm is done */
        for (int i = 0; i < 2; i++) {
            job_submit(&pair.jobs[i]);
            job_check(&pair.jobs[i], &hash);
        }
    }
    for (int i = 0; i < 2; i++) {
        job_close(&pair.jobs[i]);
        scene_close(&pair.scenes[i]);
    }
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
}

/* One rank is refused: no rank goes on, and each hears of it. */
static void test_refused(void)
{
    scene_t scene = {.context = context, .m = M, .count = 2, .blocks = true};
    job_t job = JOB_ROW(SHARD_ROWS, JOB_FINISH);
    starlin_matrix_t *bias;
    uint64_t hash = STARLIN__HASH_INIT;
    double start_us = starlin__now_us();
    starlin_status_t status;

    step_begin("refused", world_nranks);
    scene_open(&scene);
    job_open(&job, &scene, 5);
    bias = job.bias_row.matrix;
    if (world_rank == world_nranks - 1)
        job.bias_row.matrix = job.w.matrix;
    status = job_call(&job);
    CHECK(status == STARLIN_ERR_MISMATCH ||
          (world_rank == world_nranks - 1 && status == STARLIN_ERR_INVALID));
    CHECK_CONTAINS(starlin_last_error(), "bias");
    CHECK(starlin__now_us() - start_us < 0.9e3 * TIMEOUT_MS);
    job.bias_row.matrix = bias;
    job_submit(&job);
    job_check(&job, &hash);
    job_close(&job);
    scene_close(&scene);
}

int main(int argc, char **argv)
{
    setenv("STARPU_SILENT", "1", 0);
    world_begin(&argc, &argv);
    step_limit(110);
    context = world_context(TIMEOUT_MS);
    if (context == NULL)
        return 1;
    chunkings[0] = plan(M, 2);
    chunkings[1] = plan(M, 4);
    chunkings[2] = plan(M + 1, 2);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        step_begin("table", (int)i);
        check_refused(&table[i]);
    }
    test_placements();
    test_layouts();
    test_views();
    test_overlaps();
    test_refused();
    for (int i = 0; i < 3; i++)
        starlin_chunking_destroy(chunkings[i]);
    CHECK_STATUS(starlin_context_destroy(context), STARLIN_SUCCESS);
    for (size_t i = 0; world_nranks > 1 && i < sizeof pairs / sizeof pairs[0]; i++)
        test_pair(&pairs[i]);
    return world_end();
}
