/* SPDX-License-Identifier: BSD-3-Clause */
/* The tool's inputs: exact in any order of summation, the same for any number of ranks, and dense. */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "element.h"
#include "reference.h"

static perf_error_t error;

static perf_problem_t make(int64_t k, starlin_dtype_t dtype, starlin_reduction_t reduction, int rank,
                           int nranks)
{
    perf_problem_t problem = {.m = 37,
                              .n = 19,
                              .k = k,
                              .dtype = dtype,
                              .reduction = reduction,
                              .layers = 1,
                              .seed = 3,
                              .rank = rank,
                              .nranks = nranks};
    perf_problem_prepare(&problem);
    return problem;
}

/* This rank's rows of X. */
static bool fill_x(const perf_problem_t *problem, void *x, perf_error_t *why)
{
    return perf_inputs_fill_x(problem, problem->x_begin, problem->x_rows, x, why);
}

static int64_t wrong(const perf_reference_t *reference, const void *y)
{
    perf_counts_t counts;
    perf_reference_compare(reference, y, &counts);
    CHECK_EQ_INT(counts.nonfinite, 0);
    return (int64_t)counts.wrong;
}

/* Bounds of one problem: what the gemm accumulates in f32 (f64), what a rank's partial can be, and what the
 * partials of any set of ranks can be. The last two count each pattern pair's own sums of magnitudes. */
static void check_bounds(int64_t k, starlin_dtype_t dtype, starlin_reduction_t reduction, int nranks)
{
    int64_t accumulated = dtype == STARLIN_F64 ? INT64_C(1) << 53 : INT64_C(1) << 24;
    int64_t limit = perf_problem_sum_limit(dtype, reduction), largest_sum = 0, largest_partials = 0, next = 0;
    for (unsigned i = 0; i < PERF_PATTERNS; i += 5)
        for (unsigned j = 0; j < PERF_PATTERNS; j += 7) {
            int64_t magnitudes = 0, partials = 0;
            for (int rank = 0; rank < nranks; rank++) {
                perf_problem_t problem = make(k, dtype, reduction, rank, nranks);
                int64_t partial = 0;
                for (int64_t c = problem.k_begin; c < problem.k_begin + problem.k_local; c++) {
                    int64_t product = perf_inputs_x(&problem, i, c) * perf_inputs_w(&problem, j, c);
                    partial += product;
                    magnitudes += llabs(product);
                }
                partials += llabs(partial);
            }
            largest_sum = magnitudes > largest_sum ? magnitudes : largest_sum;
            largest_partials = partials > largest_partials ? partials : largest_partials;
        }
    if (largest_sum > accumulated || largest_partials > limit)
        CHECK_FAIL("k %" PRId64 " %s, %d ranks: sums up to %" PRId64 " of %" PRId64
                   ", partials up to %" PRId64 " of %" PRId64,
                   k, starlin_dtype_name(dtype), nranks, largest_sum, accumulated, largest_partials, limit);
    CHECK(largest_partials > 0);
    for (int rank = 0; rank < nranks; rank++) { /* slices tile K */
        perf_problem_t problem = make(k, dtype, reduction, rank, nranks);
        CHECK_EQ_INT(problem.k_begin, next);
        next += problem.k_local;
    }
    CHECK_EQ_INT(next, k);
}

static void test_bounds(void)
{
    static const int64_t sizes[] = {1, 2, 7, 23, 63, 64, 65, 81, 82, 101, 257, 1000, 4096, 16385, 65536};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++)
            for (int nranks = 1; nranks <= 5; nranks += 2) {
                check_bounds(sizes[i], (starlin_dtype_t)dtype, STARLIN_REDUCTION_NATIVE, nranks);
                check_bounds(sizes[i], (starlin_dtype_t)dtype, STARLIN_REDUCTION_F32, nranks);
            }
}

/* The declared magnitudes themselves keep the bounds, for sizes too large to sum up here. */
static void test_large(void)
{
    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++)
        for (int64_t k = 64; k <= INT32_MAX; k = k * 3 - 1) {
            perf_problem_t problem = make(k, (starlin_dtype_t)dtype, STARLIN_REDUCTION_NATIVE, 0, 2);
            int64_t npairs = (k + 1) / 2;
            int64_t nlive = problem.live_stride == 1 && problem.large == 0
                                ? k
                                : 2 * ((npairs + problem.live_stride - 1) / problem.live_stride) + 1;
            int64_t live = nlive * problem.small * problem.small, rest = k * problem.large * problem.large;
            CHECK(problem.small >= 1);
            CHECK(live <= perf_problem_sum_limit((starlin_dtype_t)dtype, STARLIN_REDUCTION_NATIVE));
            if (dtype != STARLIN_F64)
                CHECK(live + rest <= INT64_C(1) << 24);
        }
}

/* The global matrices do not depend on the number of ranks, and are not nearly all zero. */
static void test_global(void)
{
    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
        perf_problem_t one = make(4097, (starlin_dtype_t)dtype, STARLIN_REDUCTION_NATIVE, 0, 1);
        perf_problem_t last = make(4097, (starlin_dtype_t)dtype, STARLIN_REDUCTION_NATIVE, 3, 4);
        int64_t differences = 0, zeros = 0;
        for (int64_t c = 0; c < 4097; c++) {
            differences += perf_inputs_x(&one, 5, c) != perf_inputs_x(&last, 5, c);
            differences += perf_inputs_w(&one, 5, c) != perf_inputs_w(&last, 5, c);
            zeros += perf_inputs_x(&one, 5, c) == 0;
        }
        CHECK_EQ_INT(differences, 0);
        CHECK(zeros < 4097 / 4);
        CHECK(perf_inputs_x(&one, 5, 10) != perf_inputs_x(&one, 6, 10) ||
              perf_inputs_x(&one, 5, 11) != perf_inputs_x(&one, 6, 11) ||
              perf_inputs_x(&one, 5, 14) != perf_inputs_x(&one, 6, 14));
    }
}

/* y = sum over ranks of x w^T, elementwise and slow, in doubles; each layer's sum rounded to the dtype. */
static void multiply(int nranks, int64_t m, int64_t n, double **x, double **w, const int64_t *k_local,
                     double *y)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int rank = 0; rank < nranks; rank++)
                for (int64_t k = 0; k < k_local[rank]; k++)
                    sum += x[rank][i * k_local[rank] + k] * w[rank][j * k_local[rank] + k];
            y[i * n + j] = sum;
        }
}

#define MAX_RANKS 4
#define CAPACITY  (128 * 1024)

static double *load(const perf_problem_t *problem, int64_t rows,
                    bool (*fill)(const perf_problem_t *, void *, perf_error_t *))
{
    static char raw[CAPACITY * sizeof(double)];
    int64_t count = rows * problem->k_local;
    double *values = malloc((size_t)count * sizeof(double) + 1);
    CHECK(count <= CAPACITY && fill(problem, raw, &error));
    for (int64_t i = 0; i < count; i++)
        values[i] = perf_element_load(problem->dtype, raw, i);
    return values;
}

/* The reference against the slow product of what was filled in; and it must see single wrong elements. */
static void check_reference(perf_problem_t problem)
{
    static char y[CAPACITY * sizeof(double)];
    static double wide[CAPACITY];
    double *x[MAX_RANKS], *w[MAX_RANKS];
    int64_t k_local[MAX_RANKS];
    for (int rank = 0; rank < problem.nranks; rank++) {
        problem.rank = rank;
        perf_problem_prepare(&problem);
        x[rank] = load(&problem, problem.m, fill_x);
        w[rank] = load(&problem, problem.n, perf_inputs_fill_w);
        k_local[rank] = problem.k_local;
    }
    for (unsigned layer = 0; layer < (problem.chain ? problem.layers : 1); layer++) {
        multiply(problem.nranks, problem.m, problem.n, x, w, k_local, wide);
        for (int rank = 0; problem.chain && rank < problem.nranks; rank++)
            memcpy(x[rank], wide, (size_t)(problem.m * problem.n) * sizeof(double));
    }
    for (int64_t i = 0; i < problem.m * problem.n; i++)
        perf_element_store(problem.dtype, y, i, wide[i]);
    perf_reference_t *reference = NULL;
    CHECK(perf_reference_create(&problem, &reference, &error));
    CHECK_EQ_INT(wrong(reference, y), 0);
    perf_element_store(problem.dtype, y, 5, 2 * wide[5] + 1000);
    perf_element_store(problem.dtype, y, problem.m * problem.n - 1, (double)NAN);
    CHECK_EQ_INT(wrong(reference, y), 2);
    perf_reference_destroy(reference);
    for (int rank = 0; rank < problem.nranks; rank++) {
        free(x[rank]);
        free(w[rank]);
    }
}

static void test_reference(void)
{
    static const int64_t sizes[] = {3, 23, 101, 1024};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++)
            for (int nranks = 1; nranks <= MAX_RANKS; nranks += 3) {
                check_reference(make(sizes[i], (starlin_dtype_t)dtype, STARLIN_REDUCTION_NATIVE, 0, nranks));
                check_reference(make(sizes[i], (starlin_dtype_t)dtype, STARLIN_REDUCTION_F32, 0, nranks));
            }
}

static void test_chain(void)
{
    static const int64_t sizes[] = {1, 2, 5, 64, 101};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++)
            for (int nranks = 1; nranks <= 3; nranks++) {
                perf_problem_t problem =
                    make(sizes[i] * nranks, (starlin_dtype_t)dtype, STARLIN_REDUCTION_NATIVE, 0, nranks);
                problem.n = sizes[i];
                problem.layers = 5;
                perf_problem_prepare(&problem);
                CHECK(problem.chain);
                check_reference(problem);
            }
}

/* A rank's slice of X or W as raw bytes; the caller's. */
static unsigned char *raw_slice(const perf_problem_t *problem, int64_t rows,
                                bool (*fill)(const perf_problem_t *, void *, perf_error_t *))
{
    unsigned char *raw = calloc((size_t)(rows * problem->k_local) + 1, starlin_dtype_nbytes(problem->dtype));
    CHECK(raw != NULL && fill(problem, raw, &error));
    return raw;
}

static perf_problem_t make_random(int64_t k, starlin_dtype_t dtype, uint64_t seed, int rank, int nranks)
{
    perf_problem_t problem = make(k, dtype, STARLIN_REDUCTION_NATIVE, rank, nranks);
    problem.random = true;
    problem.seed = seed;
    return problem;
}

/* The bits that vary, each in about half of the elements; and the numbers are where the documents say. */
static void check_spread(const perf_problem_t *problem, const unsigned char *raw, int64_t rows)
{
    static const int mantissa_bits[] = {23, 52, 10, 7}; /* by dtype */
    int64_t count = rows * problem->k_local, ones[64] = {0};
    size_t itemsize = starlin_dtype_nbytes(problem->dtype);
    for (int64_t i = 0; i < count; i++) {
        double value = perf_element_load(problem->dtype, raw, i);
        if (!(fabs(value) >= 0.5 && fabs(value) < 2))
            CHECK_FAIL("%s: element %" PRId64 " is %g", starlin_dtype_name(problem->dtype), i, value);
        for (size_t bit = 0; bit < 8 * itemsize; bit++)
            ones[bit] += raw[(size_t)i * itemsize + bit / 8] >> bit % 8 & 1;
    }
    int varied = 0;
    for (size_t bit = 0; bit < 8 * itemsize; bit++) {
        bool constant = ones[bit] == 0 || ones[bit] == count;
        varied += !constant;
        if (!constant && (ones[bit] < count * 2 / 5 || ones[bit] > count * 3 / 5))
            CHECK_FAIL("%s: bit %zu is set in %" PRId64 " of %" PRId64 " elements",
                       starlin_dtype_name(problem->dtype), bit, ones[bit], count);
    }
    CHECK_EQ_INT(varied, mantissa_bits[problem->dtype] + 2); /* sign and one bit of the exponent */
}

/* Slices of three ranks are those of the whole matrix, wherever they begin; nothing repeats. */
static void check_random(starlin_dtype_t dtype, bool (*fill)(const perf_problem_t *, void *, perf_error_t *),
                         int64_t (*rows_of)(const perf_problem_t *))
{
    enum { K = 4099, NRANKS = 3 };
    perf_problem_t whole = make_random(K, dtype, 3, 0, 1), other = make_random(K, dtype, 4, 0, 1);
    int64_t rows = rows_of(&whole);
    size_t itemsize = starlin_dtype_nbytes(dtype), row_nbytes = K * itemsize;
    unsigned char *all = raw_slice(&whole, rows, fill), *reseeded = raw_slice(&other, rows, fill);
    for (int rank = 0; rank < NRANKS; rank++) {
        perf_problem_t part = make_random(K, dtype, 3, rank, NRANKS);
        unsigned char *slice = raw_slice(&part, rows, fill);
        size_t nbytes = (size_t)part.k_local * itemsize;
        for (int64_t i = 0; i < rows; i++)
            CHECK(memcmp(slice + (size_t)i * nbytes,
                         all + (size_t)i * row_nbytes + (size_t)part.k_begin * itemsize, nbytes) == 0);
        free(slice);
    }
    check_spread(&whole, all, rows);
    CHECK(memcmp(all, reseeded, row_nbytes) != 0);
    CHECK(memcmp(all + itemsize * 64, all, itemsize * 64) != 0);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < i; j++)
            CHECK(memcmp(all + (size_t)i * row_nbytes, all + (size_t)j * row_nbytes, row_nbytes) != 0);
    free(all);
    free(reseeded);
}

static int64_t rows_of_x(const perf_problem_t *problem)
{
    return problem->m;
}

static int64_t rows_of_w(const perf_problem_t *problem)
{
    return problem->n;
}

static void test_random(void)
{
    for (int dtype = STARLIN_F32; dtype <= STARLIN_BF16; dtype++) {
        perf_problem_t problem = make_random(64, (starlin_dtype_t)dtype, 3, 0, 1);
        check_random((starlin_dtype_t)dtype, fill_x, rows_of_x);
        check_random((starlin_dtype_t)dtype, perf_inputs_fill_w, rows_of_w);
        unsigned char *x = raw_slice(&problem, problem.m, fill_x);
        unsigned char *w = raw_slice(&problem, problem.n, perf_inputs_fill_w);
        CHECK(memcmp(x, w, 64 * starlin_dtype_nbytes(problem.dtype)) != 0);
        free(x);
        free(w);
        problem.n = 64; /* what would be a chain of integers */
        problem.layers = 5;
        perf_problem_prepare(&problem);
        CHECK(!problem.chain);
    }
}

/* Operators whose ranks share N, and blocks of rows: each rank's share of inputs and result is that of the
 * whole. */
static void test_shares(void)
{
    enum { M = 37, N = 19, K = 23, NRANKS = 4 };
    static double x[M * K], w[N * K], y[M * N];
    perf_problem_t whole = make(K, STARLIN_F32, STARLIN_REDUCTION_NATIVE, 0, 1);
    double *all_x = load(&whole, M, fill_x), *all_w = load(&whole, N, perf_inputs_fill_w);
    memcpy(x, all_x, sizeof(x));
    memcpy(w, all_w, sizeof(w));
    multiply(1, M, N, (double *[]){x}, (double *[]){w}, (int64_t[]){K}, y);
    for (int split_n = 0; split_n < 2; split_n++)
        for (int rank = 0, rows = 0, columns = 0; rank < NRANKS; rank++) {
            static float mine[M * N];
            perf_problem_t part = whole;
            part.split_n = split_n;
            part.sequence_parallel = true;
            part.rank = rank;
            part.nranks = NRANKS;
            perf_problem_prepare(&part);
            CHECK_EQ_INT(split_n ? part.x_begin : part.y_begin, rows);
            CHECK_EQ_INT(split_n ? part.y_rows : part.x_rows, M);
            CHECK_EQ_INT(split_n ? part.k_local : part.n_local, split_n ? K : N);
            rows += (int)(split_n ? part.x_rows : part.y_rows);
            columns += (int)(split_n ? part.n_local : part.k_local);
            if (rank == NRANKS - 1) {
                CHECK_EQ_INT(rows, M);
                CHECK_EQ_INT(columns, split_n ? N : K);
            }
            double *my_x = load(&part, part.x_rows, fill_x),
                   *my_w = load(&part, part.n_local, perf_inputs_fill_w);
            for (int64_t i = 0; i < part.x_rows; i++)
                for (int64_t j = 0; j < part.k_local; j++)
                    CHECK(my_x[i * part.k_local + j] == x[(part.x_begin + i) * K + part.k_begin + j]);
            for (int64_t i = 0; i < part.n_local; i++)
                for (int64_t j = 0; j < part.k_local; j++)
                    CHECK(my_w[i * part.k_local + j] == w[(part.n_begin + i) * K + part.k_begin + j]);
            for (int64_t i = 0; i < part.y_rows; i++)
                for (int64_t j = 0; j < part.n_local; j++)
                    mine[i * part.n_local + j] = (float)y[(part.y_begin + i) * N + part.n_begin + j];
            perf_reference_t *reference = NULL;
            CHECK(perf_reference_create(&part, &reference, &error));
            CHECK_EQ_INT(wrong(reference, mine), 0);
            mine[part.y_rows * part.n_local - 1] += 1;
            CHECK_EQ_INT(wrong(reference, mine), 1);
            perf_reference_destroy(reference);
            free(my_x);
            free(my_w);
        }
    free(all_x);
    free(all_w);
}

int main(void)
{
    test_bounds();
    test_large();
    test_global();
    test_reference();
    test_chain();
    test_random();
    test_shares();
    return CHECK_RESULT();
}
