/* SPDX-License-Identifier: BSD-3-Clause */
/* starlin: the linear layers of a tensor-parallel transformer as one StarPU task graph.
 *
 * Rows (tokens) are cut into chunks. Each chunk of each operator is a gemm task and, where data must cross
 * ranks, a collective task; data dependencies order them, and the scheduling policy decides what overlaps.
 *
 * Conventions of every function below:
 *   - A function returns STARLIN_SUCCESS or a negative status; output arguments end in `_p` and are set
 *     only on success. starlin_last_error() holds the details for the calling thread.
 *   - Matrices are dense and row-major, as in PyTorch: X [M,K], W [N,K], Y [M,N]. Leading dimensions
 *     count elements, sizes that end in `nbytes` count bytes, times carry their unit in their name.
 *   - "Collective" means: every rank of the context calls it, in the same order, with agreeing
 *     arguments. A disagreement is an error on every rank. Everything else is local.
 *   - A context and its matrices may be used by one thread at a time; different contexts do not
 *     exist at the same time in one process (StarPU is a per-process runtime).
 */
#ifndef STARLIN_STARLIN_H
#define STARLIN_STARLIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STARLIN_VERSION_MAJOR 0
#define STARLIN_VERSION_MINOR 2
#define STARLIN_VERSION_PATCH 0

#if defined(STARLIN_BUILDING)
#define STARLIN_API __attribute__((visibility("default")))
#else
#define STARLIN_API
#endif

/* ------------------------------------------------------------------ status */

/* Every status, its number (never renumbered) and its text. */
#define STARLIN_STATUS_MAP(X)                                                                                \
    X(SUCCESS, 0, "success")                                                                                 \
    X(ERR_INVALID, -1, "invalid argument")                                                                   \
    X(ERR_NO_MEMORY, -2, "out of memory")                                                                    \
    X(ERR_UNSUPPORTED, -3, "not supported by this build or machine")                                         \
    X(ERR_MISMATCH, -4, "ranks disagree")                                                                    \
    X(ERR_BUSY, -5, "still in use")                                                                          \
    X(ERR_TIMEOUT, -6, "timed out")                                                                          \
    X(ERR_COMM, -7, "communicator failure")                                                                  \
    X(ERR_COMPUTE, -8, "compute failure")                                                                    \
    X(ERR_RUNTIME, -9, "StarPU failure")                                                                     \
    X(ERR_NO_DEVICE, -10, "no usable device")

typedef enum starlin_status {
#define STARLIN_STATUS_ENUM(name, value, text) STARLIN_##name = value,
    STARLIN_STATUS_MAP(STARLIN_STATUS_ENUM)
#undef STARLIN_STATUS_ENUM
} starlin_status_t;

/* Static text of a status; "unknown status" for a number that is none. Thread-safe. */
STARLIN_API const char *starlin_status_string(starlin_status_t status);

/* Details of the calling thread's last failed call ("" before the first). The text is the library's and
 * lives until the thread's next failing call. */
STARLIN_API const char *starlin_last_error(void);

/* The version of the library that is loaded, such as "0.2.0". Static. */
STARLIN_API const char *starlin_version(void);

/* ------------------------------------------------------------------- dtype */

/* Element types. Gemms of F16 and BF16 accumulate in f32 and round once, to nearest even. */
typedef enum starlin_dtype {
    STARLIN_F32 = 0,
    STARLIN_F64 = 1,
    STARLIN_F16 = 2,
    STARLIN_BF16 = 3
} starlin_dtype_t;

/* Bytes of one element; 0 for a value that is no dtype. */
STARLIN_API size_t starlin_dtype_nbytes(starlin_dtype_t dtype);

/* "f32", "f64", "f16", "bf16"; NULL for a value that is no dtype. */
STARLIN_API const char *starlin_dtype_name(starlin_dtype_t dtype);

/* How F16 and BF16 partial sums travel between ranks (F32 and F64 always travel as they are).
 *   NATIVE  each rank rounds its partial to the dtype, then the ranks are summed in the dtype
 *   F32     partials travel in f32 and are rounded once after the sum: twice the bytes, one rounding */
typedef enum starlin_reduction {
    STARLIN_REDUCTION_NATIVE = 0,
    STARLIN_REDUCTION_F32 = 1
} starlin_reduction_t;

/* Structs begin with their size, as the caller was compiled: start from NAME_INIT, which sets it. Members
 * that a later version adds come at the end. Zero always means the default. What an older program does not
 * have is zero; what this library does not know must be zero, else ERR_UNSUPPORTED. A struct_size of 0 stands
 * for the size in the library that runs, and is safe only where that is the version that the program was
 * compiled against. */

/* ----------------------------------------------------------------- context */

typedef struct starlin_context starlin_context_t;
typedef struct starlin_chunking starlin_chunking_t;
typedef struct starlin_matrix starlin_matrix_t;

/* Zero or NULL in a field means: the environment variable if set, else the default. */
typedef struct starlin_context_options {
    size_t struct_size; /* set by STARLIN_CONTEXT_OPTIONS_INIT */
    const char
        *comm; /* "auto", "self", "mpi", "nccl", "model:gbps=B,latency_us=L,ctas=C,ranks=P"; STARLIN_COMM */
    const char *compute; /* "auto", "cblas", "cublas"; STARLIN_COMPUTE */
    const char *policy;  /* StarPU policy used when STARPU_SCHED is unset; ignored for an adopted StarPU */
    unsigned max_ctas;   /* limit of thread blocks for a GPU collective; STARLIN_MAX_CTAS */
    unsigned timeout_ms; /* give up on a collective or a peer after this long; STARLIN_TIMEOUT_MS, 300000 */
    bool use_mpi;        /* mpi_comm is set; starlin_mpi.h fills both in */
    int mpi_comm;        /* an MPI communicator as MPI_Comm_c2f() gives it; duplicated, never freed */
} starlin_context_options_t;

#define STARLIN_CONTEXT_OPTIONS_INIT                                                                         \
    {                                                                                                        \
        .struct_size = sizeof(starlin_context_options_t)                                                     \
    }

/* Makes a context: binds this rank to its share of the node's cores (unless STARLIN_BIND=none or one of
 * StarPU's own binding variables is set), starts StarPU or adopts the one that the application has
 * already started, and opens the communicator. One process per device.
 *   options    NULL: all defaults (one rank, or the MPI communicator given through starlin_mpi.h)
 *   context_p  the new context; the caller destroys it
 * Collective; blocks. Must come before the process's first CUDA call when the context starts StarPU.
 * Errors: ERR_INVALID (bad option), ERR_UNSUPPORTED (a backend that was asked for by name is not built or
 * not usable: the text lists what was built), ERR_NO_DEVICE, ERR_RUNTIME, ERR_MISMATCH, ERR_BUSY (a context
 * exists), ERR_TIMEOUT (a rank does not come). */
STARLIN_API starlin_status_t starlin_context_create(const starlin_context_options_t *options,
                                                    starlin_context_t **context_p);

/* Waits for everything submitted and frees the context; stops StarPU if the context started it. Collective;
 * blocks. NULL does nothing. ERR_BUSY: matrices of this context still exist (nothing is freed). */
STARLIN_API starlin_status_t starlin_context_destroy(starlin_context_t *context);

/* Waits until every operator submitted so far is complete on this rank, and returns the first error of
 * any task on any rank among them: if one rank's task failed, the wait of every rank returns that error,
 * and the context accepts no more operators. Blocks; every rank that submitted operators calls it. */
STARLIN_API starlin_status_t starlin_context_wait(starlin_context_t *context);

/* This rank, 0 <= rank < nranks. Virtual ranks of the modelled link are not counted. */
STARLIN_API int starlin_context_rank(const starlin_context_t *context);
STARLIN_API int starlin_context_nranks(const starlin_context_t *context);

/* StarPU tasks that operators have inserted so far, of all kinds. */
STARLIN_API uint64_t starlin_context_ntasks(const starlin_context_t *context);

/* What was chosen: a snapshot of the effective configuration. Strings belong to the context. */
typedef struct starlin_context_info {
    size_t struct_size;         /* the caller's; that much is filled in */
    const char *comm;           /* "self", "mpi", "nccl", "model" */
    const char *compute;        /* "cblas", "cublas" */
    const char *policy;         /* scheduling policy that runs */
    const char *starpu_version; /* "1.4.10" */
    const char *host;           /* host name */
    const char *device;         /* GPU name, or "CPU" */
    const char *binding;        /* cores of this rank such as "0-3", or why it was not bound */
    unsigned nworkers;          /* StarPU workers that run gemms */
    unsigned nblas_threads;     /* BLAS threads of each CPU worker */
    unsigned comm_ranks;        /* ranks the collectives sum over; the virtual ones for "model" */
    bool adopted;               /* StarPU was already running */
    /* The library that computes, as it is loaded, such as "OpenBLAS 0.3.21, Zen kernel, 1 thread" ("":
     * unknown), and why its gemms will be slow (it is a reference BLAS; NULL: no reason). */
    const char *compute_version, *compute_warning;
} starlin_context_info_t;

#define STARLIN_CONTEXT_INFO_INIT                                                                            \
    {                                                                                                        \
        .struct_size = sizeof(starlin_context_info_t)                                                        \
    }

STARLIN_API starlin_status_t starlin_context_get_info(const starlin_context_t *context,
                                                      starlin_context_info_t *info_p);

/* -------------------------------------------------------------- placements */

/* How a matrix lies over the ranks, in the words of PyTorch's DTensor. Collectives follow from the
 * placements of an operator's input and output; nobody names one.
 *   - REPLICATE: every rank has all of it.
 *   - SHARD_COLS: rank r has some of the columns; slices may be uneven and empty.
 *   - SHARD_ROWS: rank r has its block of rows, [rM/P, (r+1)M/P): sequence parallelism; blocks may
 *     differ by a row and may be empty.
 *   - PARTIAL: every rank has a summand of all of it. */
#define STARLIN_PLACEMENT_MAP(X)                                                                             \
    X(REPLICATE, 0, "replicate")                                                                             \
    X(SHARD_COLS, 1, "shard_cols")                                                                           \
    X(SHARD_ROWS, 2, "shard_rows")                                                                           \
    X(PARTIAL, 3, "partial")

typedef enum starlin_placement {
#define STARLIN_PLACEMENT_ENUM(name, value, text) STARLIN_##name = value,
    STARLIN_PLACEMENT_MAP(STARLIN_PLACEMENT_ENUM)
#undef STARLIN_PLACEMENT_ENUM
} starlin_placement_t;

/* "replicate", ...; NULL for a value that is no placement. Static. */
STARLIN_API const char *starlin_placement_name(starlin_placement_t placement);

/* Functions of one element (swiglu: of two). GELU is x/2 (1 + erf(x/sqrt 2)), GELU_TANH its approximation
 * by tanh (both Hendrycks and Gimpel, arXiv 1606.08415), SILU x/(1 + exp(-x)) (the same paper), SWIGLU
 * silu(x) * up (Shazeer, arXiv 2002.05202). f16, bf16 and f32 are computed in f32, f64 in f64; the result is
 * rounded once. */
#define STARLIN_ACTIVATION_MAP(X)                                                                            \
    X(IDENTITY, 0, "identity")                                                                               \
    X(RELU, 1, "relu")                                                                                       \
    X(GELU, 2, "gelu")                                                                                       \
    X(GELU_TANH, 3, "gelu_tanh")                                                                             \
    X(SILU, 4, "silu")                                                                                       \
    X(SWIGLU, 5, "swiglu")

typedef enum starlin_activation_kind {
#define STARLIN_ACTIVATION_ENUM(name, value, text) STARLIN_##name = value,
    STARLIN_ACTIVATION_MAP(STARLIN_ACTIVATION_ENUM)
#undef STARLIN_ACTIVATION_ENUM
} starlin_activation_kind_t;

/* "relu", ...; NULL for a value that is no activation. Static. */
STARLIN_API const char *starlin_activation_name(starlin_activation_kind_t activation);

/* ---------------------------------------------------------------- chunking */

/* Every operator: its constant's name and its text. */
#define STARLIN_OPERATOR_MAP(X)                                                                              \
    X(ROW_LINEAR, row_linear)                                                                                \
    X(COLUMN_LINEAR, column_linear)                                                                          \
    X(REDISTRIBUTE, redistribute)                                                                            \
    X(ACTIVATION, activation)

typedef enum starlin_operator {
#define STARLIN_OPERATOR_ENUM(name, text) STARLIN_OP_##name,
    STARLIN_OPERATOR_MAP(STARLIN_OPERATOR_ENUM)
#undef STARLIN_OPERATOR_ENUM
        STARLIN_NOPERATORS
} starlin_operator_t;

/* "row_linear", ...; NULL for a value that is no operator. Static. */
STARLIN_API const char *starlin_operator_name(starlin_operator_t op);

/* What will be submitted, for planning: one call of an operator on this rank. Fields that the operator does
 * not have are 0. Only k of a row_linear and n of a column_linear may differ between ranks. */
typedef struct starlin_operation {
    size_t struct_size; /* the same in all elements of an array, which lie so many bytes apart */
    starlin_operator_t op;
    int64_t n, k; /* a linear's weight [n,k] as this rank has it; else n: columns */
    starlin_dtype_t dtype;
    starlin_reduction_t reduction;
    starlin_placement_t from, to; /* of input and output; a row_linear's input and a column_linear's output
                                     are SHARD_COLS whatever stands here */
    starlin_activation_kind_t activation;
    bool bias, residual;
} starlin_operation_t;

#define STARLIN_OPERATION_INIT                                                                               \
    {                                                                                                        \
        .struct_size = sizeof(starlin_operation_t)                                                           \
    }

/* How much planning may cost.
 *   MEASURE   the default: lists of 1 to 32 chunks are run in turn, on the very operations, until the order
 * is clear or the time is up; or what that gave in an earlier run is taken from the file of wisdom ESTIMATE
 * a simulation at built-in speeds; nothing is run, read or kept */
typedef enum starlin_effort {
    STARLIN_EFFORT_DEFAULT = 0,
    STARLIN_EFFORT_ESTIMATE = 1,
    STARLIN_EFFORT_MEASURE = 2
} starlin_effort_t;

/* How rows are cut. Of count and rows at most one is set; with neither the library plans. */
typedef struct starlin_chunking_options {
    size_t struct_size;
    size_t count;        /* that many chunks of nearly equal size (fewer where there are not enough rows) */
    const int64_t *rows; /* an explicit list of row counts; positive, its sum is m */
    size_t nrows;        /* length of rows */
    bool blocks; /* each chunk takes a share of every rank's block of rows, as SHARD_ROWS needs; implied
                    by an operation with that placement */
    starlin_effort_t effort;
    unsigned limit_ms; /* measuring ends after about so long, or with the first step; STARLIN_PLAN_MS, 4000 */
} starlin_chunking_options_t;

#define STARLIN_CHUNKING_OPTIONS_INIT                                                                        \
    {                                                                                                        \
        .struct_size = sizeof(starlin_chunking_options_t)                                                    \
    }

/* Cuts m rows into chunks, once for all operators over the same rows.
 *   - operations, noperations: what will be submitted, in order; may be none where count or rows is given
 *   - options: NULL or all zero: auto. Planning a list of operations is for the list, run as one step;
 *     starlin_plan.h tells how a list came about. Where memory for a second set of operands cannot be had,
 * the simulation decides.
 *   - chunking_p: the new list; the caller destroys it. Matrices keep what they need of it.
 * Without blocks a chunk is one run of rows. With blocks chunk c is the c-th share of every rank's block: one
 * run of rows per rank, so that all ranks send and receive in each of its collectives.
 * Collective; blocks. Errors: ERR_INVALID, ERR_MISMATCH (the same text on every rank), ERR_TIMEOUT. */
STARLIN_API starlin_status_t starlin_chunking_plan(starlin_context_t *context, int64_t m,
                                                   const starlin_operation_t *operations, size_t noperations,
                                                   const starlin_chunking_options_t *options,
                                                   starlin_chunking_t **chunking_p);

/* NULL does nothing. Local. */
STARLIN_API void starlin_chunking_destroy(starlin_chunking_t *chunking);

/* Number of chunks; rows of chunk i, of all ranks together (0 outside); all rows. */
STARLIN_API size_t starlin_chunking_count(const starlin_chunking_t *chunking);
STARLIN_API int64_t starlin_chunking_rows(const starlin_chunking_t *chunking, size_t i);
STARLIN_API int64_t starlin_chunking_total_rows(const starlin_chunking_t *chunking);

/* In how many runs of rows a chunk lies: 1, or with blocks the number of ranks. Run `block` of chunk i: its
 * first row, counted over all ranks, and its number of rows, which may be 0 (both 0 outside). A chunk of a
 * SHARD_ROWS matrix is the run of its rank. */
STARLIN_API size_t starlin_chunking_blocks(const starlin_chunking_t *chunking);
STARLIN_API void starlin_chunking_run(const starlin_chunking_t *chunking, size_t i, size_t block,
                                      int64_t *first_p, int64_t *rows_p);

/* Why the request was not followed (fewer chunks than asked), or NULL. The text belongs to the chunking. */
STARLIN_API const char *starlin_chunking_fallback(const starlin_chunking_t *chunking);

/* ------------------------------------------------------------------ matrix */

/* Row-major [rows,cols] as this rank has it, element (i,j) at data[i*ld + j]. A zeroed layout with cols is a
 * contiguous f32 matrix in all rows of its chunking, the same on every rank. */
typedef struct starlin_matrix_layout {
    size_t struct_size; /* 0: this version's */
    int64_t rows;       /* of all ranks together; 0: taken from the chunking */
    int64_t cols;       /* of this rank; may be 0 (an empty slice) */
    int64_t ld;         /* leading dimension in elements, >= cols; 0 means cols */
    starlin_dtype_t dtype;
    starlin_placement_t placement; /* REPLICATE for a matrix without a chunking: a weight's follows from its
                                      operator */
} starlin_matrix_layout_t;

#define STARLIN_MATRIX_LAYOUT_INIT                                                                           \
    {                                                                                                        \
        .struct_size = sizeof(starlin_matrix_layout_t)                                                       \
    }

/* A matrix in the library's memory, zeroed, in the memory of the compute backend (host for cblas, device for
 * cublas). Its rows lie chunk by chunk, with ld = cols; starlin_matrix_read() gives them in order.
 *   - chunking: its row chunks, or NULL for a matrix that is not cut (a weight)
 * Local; blocks. Errors: ERR_INVALID, ERR_NO_MEMORY. */
STARLIN_API starlin_status_t starlin_matrix_create(starlin_context_t *context,
                                                   const starlin_chunking_t *chunking,
                                                   const starlin_matrix_layout_t *layout,
                                                   starlin_matrix_t **matrix_p);

/* A matrix over the caller's host memory, in row order (of a SHARD_ROWS matrix: this rank's block), which
 * stays the caller's and must outlive the matrix; after ERR_TIMEOUT or ERR_COMM an output's must last until
 * MPI_Finalize, since a late peer may still write to it. Between the first operator that uses the matrix and
 * the next wait the caller neither writes nor (for an output) reads it. For device memory see
 * starlin_cuda.h. ERR_INVALID: also data that is not aligned to its element. ERR_UNSUPPORTED: chunks of
 * several runs in host memory of a context that computes on a device. */
STARLIN_API starlin_status_t starlin_matrix_wrap(starlin_context_t *context,
                                                 const starlin_chunking_t *chunking, void *data,
                                                 const starlin_matrix_layout_t *layout,
                                                 starlin_matrix_t **matrix_p);

/* The same memory and chunks under another placement: PARTIAL as REPLICATE or the other way round, so that
 * starlin_redistribute() sums in place; REPLICATE as SHARD_COLS, where what every rank has is to be its slice
 * of the next operator's input. `matrix` must outlive the view. Local. ERR_INVALID: other placements. */
STARLIN_API starlin_status_t starlin_matrix_view(starlin_matrix_t *matrix, starlin_placement_t placement,
                                                 starlin_matrix_t **view_p);

/* Waits for the operators that use the matrix, then frees it (never the caller's memory). Local; blocks.
 * NULL does nothing. */
STARLIN_API void starlin_matrix_destroy(starlin_matrix_t *matrix);

/* Waits until every operator submitted so far that uses the matrix is complete; host memory of a wrapped
 * matrix is then up to date. Returns the first error of any rank among the operators submitted up to the last
 * one that uses the matrix. Blocks. */
STARLIN_API starlin_status_t starlin_matrix_wait(starlin_matrix_t *matrix);

/* Copies this rank's rows, in order, from or to host memory with leading dimension ld (elements; 0 means
 * cols), after waiting for the operators that use the matrix. Local; blocks. */
STARLIN_API starlin_status_t starlin_matrix_read(starlin_matrix_t *matrix, void *host, int64_t ld);
STARLIN_API starlin_status_t starlin_matrix_write(starlin_matrix_t *matrix, const void *host, int64_t ld);

/* Rows that this rank has: all, or of a SHARD_ROWS matrix its block. */
STARLIN_API int64_t starlin_matrix_rows(const starlin_matrix_t *matrix);

/* The memory of a matrix (host or device, as it was made), or NULL for one made of StarPU handles.
 * Valid contents only after a wait. */
STARLIN_API void *starlin_matrix_data(const starlin_matrix_t *matrix);

/* --------------------------------------------------------------- operators */

/* Rules of every operator:
 *   - It inserts tasks and returns at once, before they ran. Chunk i of its output may be the input of
 *     another operator at once, which starts when that chunk is complete.
 *   - Matrices over rows are cut alike; weights, biases and the like are not cut. All have one context, and
 *     one dtype where nothing else is said. An output overlaps no input. They must live until a wait.
 *   - Asynchronous. Collective: every rank submits the same operators in the same order; the first call with
 *     a new combination of shapes exchanges a little with all ranks (blocks).
 *   - Errors: ERR_INVALID (names the argument and its value), ERR_UNSUPPORTED (placements: names both),
 *     ERR_MISMATCH, ERR_TIMEOUT, ERR_NO_MEMORY (also: a chunk on the host does not fit on the device); the
 *     error of a failed context. Failures of the tasks themselves come back from the waits.
 *   - `options` may be NULL: all defaults. */

typedef struct starlin_linear_options {
    size_t struct_size;                   /* 0: this version's */
    starlin_reduction_t reduction;        /* default NATIVE; must agree over the ranks */
    starlin_activation_kind_t activation; /* not SWIGLU */
    starlin_matrix_t *bias; /* [1,N], not cut; the same on every rank (column_linear: this rank's columns) */
    starlin_matrix_t *residual; /* like y */
} starlin_linear_options_t;

#define STARLIN_LINEAR_OPTIONS_INIT                                                                          \
    {                                                                                                        \
        .struct_size = sizeof(starlin_linear_options_t)                                                      \
    }

/* y = activation(sum over ranks of x w^T + bias) + residual: Megatron-LM's row-parallel linear (Shoeybi et
 * al., arXiv 1909.08053).
 *   - x [m,k_local] SHARD_COLS, w [n,k_local]. k_local may differ between ranks and may be 0 (this rank
 *     contributes zero).
 *   - y [m,n] REPLICATE (all ranks get the sum), SHARD_ROWS (each rank gets its block of the sum) or PARTIAL
 *     (this rank's summand alone; no bias, activation or residual). */
STARLIN_API starlin_status_t starlin_row_linear(starlin_context_t *context, starlin_matrix_t *x,
                                                starlin_matrix_t *w, starlin_matrix_t *y,
                                                const starlin_linear_options_t *options);

/* y = activation(x w^T + bias) + residual: Megatron-LM's column-parallel linear (the same paper).
 *   - x [m,k] REPLICATE, or SHARD_ROWS (each chunk is gathered first); w [n_local,k]. n_local may differ
 *     between ranks and may be 0.
 *   - y [m,n_local] SHARD_COLS.
 * `reduction` is not used. */
STARLIN_API starlin_status_t starlin_column_linear(starlin_context_t *context, starlin_matrix_t *x,
                                                   starlin_matrix_t *w, starlin_matrix_t *y,
                                                   const starlin_linear_options_t *options);

/* y = x in another placement, [m,n] both:
 *   - PARTIAL to REPLICATE: the sum over the ranks, in place where y is a view of x;
 *   - PARTIAL to SHARD_ROWS: the sum, of which each rank keeps its block;
 *   - SHARD_ROWS to REPLICATE: every rank gets all blocks;
 *   - REPLICATE to SHARD_ROWS: a copy of this rank's block, without communication. */
STARLIN_API starlin_status_t starlin_redistribute(starlin_context_t *context, starlin_matrix_t *x,
                                                  starlin_matrix_t *y);

typedef struct starlin_activation_options {
    size_t struct_size; /* 0: this version's */
    starlin_activation_kind_t activation;
    starlin_matrix_t *up; /* the factor of SWIGLU, like y; NULL for the others */
} starlin_activation_options_t;

#define STARLIN_ACTIVATION_OPTIONS_INIT                                                                      \
    {                                                                                                        \
        .struct_size = sizeof(starlin_activation_options_t)                                                  \
    }

/* y = activation(x), for SWIGLU silu(x) * up; element by element, without communication. x, y and up [m,n]
 * have one placement, which is not PARTIAL. */
STARLIN_API starlin_status_t starlin_activation(starlin_context_t *context, starlin_matrix_t *x,
                                                starlin_matrix_t *y,
                                                const starlin_activation_options_t *options);

/* Operators between begin and end are ordered by chunk: all of them on chunk 0, then on chunk 1, and so on,
 * on every rank alike, so that the collectives of several operators take turns. They are inserted at the end
 * (or where one of them needs another's whole result). Collective; asynchronous. ERR_INVALID: begin within a
 * group, end without one; end returns the first error of the insertion. */
STARLIN_API starlin_status_t starlin_group_begin(starlin_context_t *context);
STARLIN_API starlin_status_t starlin_group_end(starlin_context_t *context);

#ifdef __cplusplus
}
#endif
#endif
