/* SPDX-License-Identifier: BSD-3-Clause */
/* starlin: a tensor-parallel linear layer as a StarPU task graph.
 *
 *     Y[M,N] = sum over ranks r of X_r[M,K_r] * W_r[N,K_r]^T        (row-parallel linear, forward)
 *
 * Rows of Y are cut into chunks. One gemm task and one allreduce task per chunk are inserted; data
 * dependencies order them, and the scheduling policy decides what overlaps.
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
#define STARLIN_VERSION_MINOR 1
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

/* The version of the library that is loaded, such as "0.1.0". Static. */
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

/* What was chosen: a snapshot of the effective configuration. Strings belong to the context. */
typedef struct starlin_context_info {
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
} starlin_context_info_t;

STARLIN_API starlin_status_t starlin_context_get_info(const starlin_context_t *context,
                                                      starlin_context_info_t *info_p);

/* ---------------------------------------------------------------- chunking */

/* One linear layer as a rank sees it: X [m,k_local], W [n,k_local], Y [m,n]. k_local may differ between
 * ranks and may be 0 (this rank contributes zero); m, n, dtype and reduction may not. */
typedef struct starlin_linear_shape {
    int64_t m, n, k_local;
    starlin_dtype_t dtype;
    starlin_reduction_t reduction;
} starlin_linear_shape_t;

/* Exactly one of the three, or none (auto). */
typedef struct starlin_chunking_options {
    size_t struct_size;
    size_t count;        /* that many chunks of nearly equal size (at most one per row) */
    const int64_t *rows; /* an explicit list of row counts; positive, its sum is m */
    size_t nrows;        /* length of rows */
} starlin_chunking_options_t;

#define STARLIN_CHUNKING_OPTIONS_INIT                                                                        \
    {                                                                                                        \
        .struct_size = sizeof(starlin_chunking_options_t)                                                    \
    }

/* Cuts m rows into chunks, once for a chain of layers over the same rows (all shapes have the same m).
 *   shapes, nshapes   the layers, at least one
 *   options           NULL or all zero: auto, which measures what gemm and collective cost (once per
 *                     shape and context) and picks the list that hides most; one chunk where chunking
 *                     would lose, or turns out to lose in the first steps (STARLIN_TRIAL)
 *   chunking_p        the new list; the caller destroys it. Matrices keep what they need of it.
 * Collective; blocks. Errors: ERR_INVALID, ERR_MISMATCH (the same text on every rank), ERR_TIMEOUT. */
STARLIN_API starlin_status_t starlin_chunking_plan(starlin_context_t *context,
                                                   const starlin_linear_shape_t *shapes, size_t nshapes,
                                                   const starlin_chunking_options_t *options,
                                                   starlin_chunking_t **chunking_p);

/* NULL does nothing. Local. */
STARLIN_API void starlin_chunking_destroy(starlin_chunking_t *chunking);

/* Number of chunks; rows of chunk i (0 outside); all rows. */
STARLIN_API size_t starlin_chunking_count(const starlin_chunking_t *chunking);
STARLIN_API int64_t starlin_chunking_rows(const starlin_chunking_t *chunking, size_t i);
STARLIN_API int64_t starlin_chunking_total_rows(const starlin_chunking_t *chunking);

/* Why the request was not followed (fewer chunks than asked, auto chose one chunk, or the first steps have
 * replaced its list by one chunk), or NULL. The text belongs to the chunking. */
STARLIN_API const char *starlin_chunking_fallback(const starlin_chunking_t *chunking);

/* ------------------------------------------------------------------ matrix */

/* Row-major [rows,cols], element (i,j) at data[i*ld + j]. */
typedef struct starlin_matrix_layout {
    int64_t rows; /* 0: taken from the chunking */
    int64_t cols; /* may be 0 (an empty K slice) */
    int64_t ld;   /* leading dimension in elements, >= cols; 0 means cols */
    starlin_dtype_t dtype;
} starlin_matrix_layout_t;

/* A matrix in the library's memory, contiguous (ld = cols), zeroed, in the memory of the compute
 * backend (host for cblas, device for cublas), registered with the communicator.
 *   chunking   its row chunks, or NULL for a matrix in one piece (a weight)
 * Local; blocks. Errors: ERR_INVALID, ERR_NO_MEMORY. */
STARLIN_API starlin_status_t starlin_matrix_create(starlin_context_t *context,
                                                   const starlin_chunking_t *chunking,
                                                   const starlin_matrix_layout_t *layout,
                                                   starlin_matrix_t **matrix_p);

/* A matrix over the caller's host memory, which stays the caller's and must outlive the matrix; after
 * ERR_TIMEOUT or ERR_COMM an output's must last until MPI_Finalize, since a late peer may still write to it.
 * Between the first operator that uses the matrix and the next wait the caller neither writes nor (for an
 * output) reads it. The output of an operator needs ld = cols. For device memory see starlin_cuda.h. */
STARLIN_API starlin_status_t starlin_matrix_wrap(starlin_context_t *context,
                                                 const starlin_chunking_t *chunking, void *data,
                                                 const starlin_matrix_layout_t *layout,
                                                 starlin_matrix_t **matrix_p);

/* Waits for the operators that use the matrix, then frees it (never the caller's memory). Local; blocks.
 * NULL does nothing. */
STARLIN_API void starlin_matrix_destroy(starlin_matrix_t *matrix);

/* Waits until every operator submitted so far that uses the matrix is complete; host memory of a wrapped
 * matrix is then up to date. Returns the first error of any rank among the operators submitted up to the last
 * one that uses the matrix. Blocks. */
STARLIN_API starlin_status_t starlin_matrix_wait(starlin_matrix_t *matrix);

/* Copies the whole matrix from or to host memory with leading dimension ld (elements; 0 means cols),
 * after waiting for the operators that use it. Local; blocks. */
STARLIN_API starlin_status_t starlin_matrix_read(starlin_matrix_t *matrix, void *host, int64_t ld);
STARLIN_API starlin_status_t starlin_matrix_write(starlin_matrix_t *matrix, const void *host, int64_t ld);

/* The memory of a matrix (host or device, as it was made), or NULL for one made of StarPU handles.
 * Valid contents only after a wait. */
STARLIN_API void *starlin_matrix_data(const starlin_matrix_t *matrix);

/* --------------------------------------------------------------- operators */

typedef struct starlin_row_linear_options {
    size_t struct_size;
    starlin_reduction_t reduction; /* default NATIVE; must agree over the ranks */
} starlin_row_linear_options_t;

#define STARLIN_ROW_LINEAR_OPTIONS_INIT                                                                      \
    {                                                                                                        \
        .struct_size = sizeof(starlin_row_linear_options_t)                                                  \
    }

/* Y = sum over ranks of X W^T, chunk by chunk: inserts one gemm and one allreduce task per chunk (and a
 * cast task where partials travel in f32) and returns at once, before they ran.
 *   x   [m,k_local] in row chunks   w   [n,k_local] in one piece   y   [m,n] in the same chunks, contiguous
 * x, w and y share context and dtype; y overlaps neither x nor w. The matrices must live until a wait.
 * Chunk i of y may be the input of another operator at once: that one starts when chunk i is summed.
 * Asynchronous. Collective: every rank submits the same operators in the same order; the first call with
 * a new combination of shapes, and a few with a planned list, exchange a little with all ranks (block).
 * Errors: ERR_INVALID, ERR_MISMATCH, ERR_TIMEOUT, ERR_NO_MEMORY (also: a chunk on the host does not fit on
 * the device); the error of a failed context. Failures of the tasks themselves come back from the waits. */
STARLIN_API starlin_status_t starlin_row_linear(starlin_context_t *context, starlin_matrix_t *x,
                                                starlin_matrix_t *w, starlin_matrix_t *y,
                                                const starlin_row_linear_options_t *options);

/* ------------------------------------------------------------------ report */

/* Why time beyond the ideal was spent: number, short name, text. Never renumbered. */
#define STARLIN_CAUSE_MAP(X)                                                                                 \
    X(CORE, 0, "core", "waited for SMs or a core")                                                           \
    X(LAUNCH, 1, "launch", "launch latency")                                                                 \
    X(PEER, 2, "peer", "a peer came late")                                                                   \
    X(LINK, 3, "link", "link slower than planned")                                                           \
    X(TAIL, 4, "tail", "collective with no gemm left to hide it")                                            \
    X(HEAD, 5, "head", "gemm before a collective could start")                                               \
    X(GEMM, 6, "gemm", "gemm slowed down by collectives")                                                    \
    X(CHUNKING, 7, "chunking", "pieces cost more than the whole")                                            \
    X(CAST, 8, "cast", "rounding of f32 partials")                                                           \
    X(IDLE, 9, "idle", "idle gaps")                                                                          \
    X(QUEUE, 10, "queue", "an earlier collective was running")

typedef enum starlin_cause {
#define STARLIN_CAUSE_ENUM(name, value, short_name, text) STARLIN_CAUSE_##name = value,
    STARLIN_CAUSE_MAP(STARLIN_CAUSE_ENUM)
#undef STARLIN_CAUSE_ENUM
        STARLIN_NCAUSES
} starlin_cause_t;

/* Static short name and text of a cause; NULL for a value that is none. */
STARLIN_API const char *starlin_cause_name(starlin_cause_t cause);
STARLIN_API const char *starlin_cause_text(starlin_cause_t cause);

/* Figures of one step, or their means over the steps. The sum of exposed_us is time_us - ideal_us. */
typedef struct starlin_report_step {
    uint64_t first_sequence; /* the operators of the step, counted from 1 in a context */
    uint64_t noperators;
    double start_us;       /* on the library's clock; 0 in the means */
    double time_us;        /* first input ready to last span ended */
    double ideal_us;       /* max(gemm_us, comm_us) */
    double gemm_us;        /* the gemms in one piece and alone: given, else estimated from the spans */
    double comm_us;        /* the same for the collectives */
    double gemm_busy_us;   /* at least one gemm ran */
    double comm_busy_us;   /* at least one collective ran */
    double beside_us;      /* both */
    double hidden_pct;     /* 100 (gemm_us + comm_us - time) / min(gemm_us, comm_us); means: of the median */
    double gemm_slowdown;  /* factor on a gemm's time while a collective ran; 0: not known */
    double exposed_us[16]; /* by cause; GEMM, CHUNKING may be negative; QUEUE and beyond are 0 */
} starlin_report_step_t;

/* A worker, a stream or the link, over all steps: busy_us + idle_us is the sum of their time_us. */
typedef struct starlin_report_lane {
    unsigned lane; /* worker or stream number */
    bool is_link;
    uint64_t nspans;
    double busy_us, idle_us;
} starlin_report_lane_t;

/* One collective and the gemm before it. */
typedef struct starlin_report_collective {
    uint64_t sequence;
    unsigned chunk;
    double time_us;        /* start to end */
    double gap_us;         /* its start minus the end of its gemm */
    starlin_cause_t cause; /* of the gap: CORE, LAUNCH or QUEUE, whichever took most of it */
    double exposed_us;     /* it ran and no gemm did */
} starlin_report_collective_t;

/* What ran. Everything in it belongs to the report and is read-only. */
typedef struct starlin_report {
    const char *configuration; /* backends, versions, policy, binding; "" if not known */
    const char *fallback;      /* why chunking was not done as asked, or NULL */
    starlin_report_step_t mean;
    double min_us, median_us, max_us; /* of time_us over the steps */
    size_t nsteps;
    const starlin_report_step_t *steps; /* oldest first */
    size_t nlanes;
    const starlin_report_lane_t *lanes; /* workers or streams rising, then the link */
    size_t ncollectives;
    const starlin_report_collective_t *collectives; /* by operator, then chunk */
    size_t nchunks;
    const int64_t *rows; /* chunk list of the newest operator */
    unsigned ctas;       /* most thread blocks of a collective; 0 on the host or not known */
    const char *source; /* of the times: "tasks"; on a device "cupti" or "events" (launch as part of start) */
} starlin_report_t;

typedef struct starlin_report_options {
    size_t struct_size;
    size_t operators_per_step; /* at least so many make a step; those that overlap in time always do */
    double gemm_us, comm_us;   /* of one operator, measured alone; 0: estimated from what ran */
    double launch_us;          /* a start this late is launch latency, beyond it a wait; 0: 10 us */
    const starlin_chunking_t *chunking; /* its fallback is reported; may be NULL */
} starlin_report_options_t;

#define STARLIN_REPORT_OPTIONS_INIT                                                                          \
    {                                                                                                        \
        .struct_size = sizeof(starlin_report_options_t)                                                      \
    }

/* Switches recording of the newest tasks on or off; off at first. Local; under a microsecond per task. */
STARLIN_API starlin_status_t starlin_report_enable(starlin_context_t *context, bool enabled);

/* Forgets what was recorded. Local. */
STARLIN_API starlin_status_t starlin_report_reset(starlin_context_t *context);

/* Makes a report of what this rank has recorded. Call it after a wait. How long this rank waited for its
 * peers inside a collective is part of TAIL or LINK here; only a trace of all ranks tells it apart.
 *   options    NULL: all defaults
 *   report_p   the new report; the caller destroys it. Independent of the context afterwards.
 * Local; does not wait. Errors: ERR_INVALID (nothing recorded: the text says whether recording was on),
 * ERR_NO_MEMORY. */
STARLIN_API starlin_status_t starlin_report_create(starlin_context_t *context,
                                                   const starlin_report_options_t *options,
                                                   starlin_report_t **report_p);

/* NULL does nothing. Local. */
STARLIN_API void starlin_report_destroy(starlin_report_t *report);

/* Writes the report as text for people, as snprintf does: at most nbytes with the terminating zero, and
 * returns the length of the whole text. `text` may be NULL if nbytes is 0. Local, thread-safe. */
STARLIN_API size_t starlin_report_print(const starlin_report_t *report, char *text, size_t nbytes);

#ifdef __cplusplus
}
#endif
#endif
