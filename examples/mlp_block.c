/* SPDX-License-Identifier: BSD-3-Clause */
/* The MLP of a transformer block on P ranks, as tensor parallelism cuts it: every rank holds a slice of the
 * inner size. Token embeddings -> first dense layer + bias -> GELU need no communication; the second dense
 * layer is row-parallel and runs through starlin. Its result is compared with a plain reference in double.
 *
 *     mpirun -np 2 mlp_block [--tokens M] FILE     weights from a safetensors file (BERT's names)
 *     mlp_block --generate FILE                    writes such a file with generated weights */
#define _GNU_SOURCE /* getopt_long, M_SQRT1_2 */
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "mlp_weights.h"
#include "starlin/starlin_mpi.h"

/* token ids of ordinary words begin about here in BERT's vocabulary */
#define FIRST_TOKEN 1996

typedef struct mlp_rank {
    int rank, nranks;
    int64_t tokens, hidden, inner;
    int64_t first, count; /* this rank's slice of the inner size */
} mlp_rank_t;

static void give_up(const char *message)
{
    fprintf(stderr, "mlp_block: %s\n", message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void require(starlin_status_t status)
{
    if (status != STARLIN_SUCCESS)
        give_up(starlin_last_error());
}

static void *memory(int64_t count, size_t size)
{
    void *data = calloc(count > 0 ? (size_t)count : 1, size);
    if (data == NULL)
        give_up("out of memory");
    return data;
}

/* GELU(E W1^T + b1) for this rank's slice of W1's rows: [tokens,count]. */
static float *activations(const mlp_rank_t *job, const mlp_weights_t *weights)
{
    float *result = memory(job->tokens * job->count, sizeof(float));
    float *columns =
        memory(job->hidden * job->count, sizeof(float)); /* W1^T: the inner loop runs along rows */
    for (int64_t j = 0; j < job->count; j++)
        for (int64_t k = 0; k < job->hidden; k++)
            columns[k * job->count + j] = weights->first[(job->first + j) * job->hidden + k];
    for (int64_t i = 0; i < job->tokens; i++) {
        const float *embedding = weights->embeddings + (FIRST_TOKEN + i) % weights->vocabulary * job->hidden;
        float *row = result + i * job->count;
        for (int64_t j = 0; j < job->count; j++)
            row[j] = weights->first_bias[job->first + j];
        for (int64_t k = 0; k < job->hidden; k++)
            for (int64_t j = 0; j < job->count; j++)
                row[j] += embedding[k] * columns[k * job->count + j];
        for (int64_t j = 0; j < job->count; j++)
            row[j] = 0.5f * row[j] * (1.0f + erff(row[j] * (float)M_SQRT1_2));
    }
    free(columns);
    return result;
}

/* The second layer through the library: y [tokens,hidden] in chunks, the same on every rank. */
static float *second_layer(const mlp_rank_t *job, float *x, const mlp_weights_t *weights)
{
    float *y = memory(job->tokens * job->hidden, sizeof(float));
    starlin_context_t *context;
    starlin_chunking_t *rows;
    starlin_matrix_t *mx, *mw, *my;
    starlin_operation_t operation = STARLIN_OPERATION_INIT;
    starlin_matrix_layout_t x_layout = {.cols = job->count, .placement = STARLIN_SHARD_COLS};
    /* a column slice of the file's weight, as it lies: the leading dimension is the whole inner size */
    starlin_matrix_layout_t w_layout = {.rows = job->hidden, .cols = job->count, .ld = job->inner};
    starlin_matrix_layout_t y_layout = {.cols = job->hidden};

    require(starlin_mpi_context_create(MPI_COMM_WORLD, NULL, &context));
    operation.op = STARLIN_OP_ROW_LINEAR;
    operation.n = job->hidden;
    operation.k = job->count;
    require(starlin_chunking_plan(context, job->tokens, &operation, 1, NULL, &rows));
    require(starlin_matrix_wrap(context, rows, x, &x_layout, &mx));
    require(starlin_matrix_wrap(context, NULL, weights->second + job->first, &w_layout, &mw));
    require(starlin_matrix_wrap(context, rows, y, &y_layout, &my));
    require(starlin_row_linear(context, mx, mw, my, NULL));
    require(starlin_context_wait(context));
    if (job->rank == 0)
        printf("%lld tokens, %lld -> %lld -> %lld, f32, %d ranks, %zu chunks\n", (long long)job->tokens,
               (long long)job->hidden, (long long)job->inner, (long long)job->hidden, job->nranks,
               starlin_chunking_count(rows));
    starlin_matrix_destroy(mx);
    starlin_matrix_destroy(mw);
    starlin_matrix_destroy(my);
    starlin_chunking_destroy(rows);
    require(starlin_context_destroy(context));
    return y;
}

/* sum[0..hidden) = row . W2^T and size[0..hidden) = |row| . |W2|^T, in double, for this rank's slice. */
static void reference_row(const mlp_rank_t *job, const float *row, const float *columns, double *sum,
                          double *size)
{
    for (int64_t j = 0; j < job->hidden; j++)
        sum[j] = size[j] = 0;
    for (int64_t k = 0; k < job->count; k++)
        for (int64_t j = 0; j < job->hidden; j++) {
            double product = (double)row[k] * (double)columns[k * job->hidden + j];
            sum[j] += product;
            size[j] += fabs(product);
        }
}

/* Compares y with the reference; the number of wrong elements on every rank. The bound holds for sums of n
 * terms in any order: |error| <= n u / (1 - n u) * sum |x||w|, u = 2^-24 (Higham, Accuracy and Stability of
 * Numerical Algorithms, 3.1); n is the inner size plus one addition per rank. */
static long long compare(const mlp_rank_t *job, const float *x, const mlp_weights_t *weights, const float *y)
{
    float *columns = memory(job->count * job->hidden, sizeof(float));
    double *sum = memory(2 * job->hidden, sizeof(double)), *size = sum + job->hidden;
    double terms = (double)(job->inner + job->nranks) * 0x1p-24, bound = terms / (1 - terms), largest = 0;
    long long wrong = 0;

    for (int64_t k = 0; k < job->count; k++)
        for (int64_t j = 0; j < job->hidden; j++)
            columns[k * job->hidden + j] = weights->second[j * job->inner + job->first + k];
    for (int64_t i = 0; i < job->tokens; i++) {
        reference_row(job, x + i * job->count, columns, sum, size);
        MPI_Allreduce(MPI_IN_PLACE, sum, (int)(2 * job->hidden), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int64_t j = 0; j < job->hidden; j++) {
            double error = fabs((double)y[i * job->hidden + j] - sum[j]) / (bound * size[j] + 0x1p-149);
            wrong += !(error <= 1);
            largest = error > largest ? error : largest;
        }
    }
    if (job->rank == 0)
        printf("y[0] = %.6f %.6f %.6f ...; %lld of %lld elements wrong, largest error %.2g of the bound\n",
               (double)y[0], (double)y[1], (double)y[2], wrong, (long long)(job->tokens * job->hidden),
               largest);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    free(columns);
    free(sum);
    return wrong;
}

static long long run(const char *path, int64_t tokens)
{
    mlp_weights_t weights;
    perf_error_t error;
    if (!mlp_weights_load(path, &weights, &error))
        give_up(error.text);
    mlp_rank_t job = {.tokens = tokens, .hidden = weights.hidden, .inner = weights.inner};
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.nranks);
    job.first = job.inner * job.rank / job.nranks;
    job.count = job.inner * (job.rank + 1) / job.nranks - job.first;

    float *x = activations(&job, &weights);
    float *y = second_layer(&job, x, &weights);
    long long wrong = compare(&job, x, &weights, y);
    free(x);
    free(y);
    mlp_weights_release(&weights);
    return wrong;
}

static int usage(void)
{
    fprintf(stderr, "usage: mpirun -np P mlp_block [--tokens M] FILE\n       mlp_block --generate FILE\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"tokens", required_argument, NULL, 't'}, {"generate", no_argument, NULL, 'g'}, {0}};
    long tokens = 2048;
    bool generate = false;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        char *end = NULL;
        if (option == 't')
            tokens = strtol(optarg, &end, 10);
        else if (option == 'g')
            generate = true;
        else
            return usage();
        if (end != NULL && (*end != '\0' || tokens < 1 || tokens > 1000000))
            return usage();
    }
    if (optind + 1 != argc)
        return usage();
    if (generate)
        return mlp_weights_generate(argv[optind]) ? 0 : 1;

    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    long long wrong = run(argv[optind], tokens);
    MPI_Finalize();
    return wrong != 0;
}
