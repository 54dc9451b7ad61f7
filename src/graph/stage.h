/* SPDX-License-Identifier: BSD-3-Clause */
/* What the graph and the planner know of an operator: stages. A call of an operator is, for each chunk, a
 * short list of them; each becomes a task. */
#ifndef STARLIN_STAGE_H
#define STARLIN_STAGE_H

#include "comm/comm.h"
#include "compute/compute.h"
#include "graph/matrix.h"

enum {
    STARLIN__MOST_OPERANDS = 8,
    STARLIN__MOST_SCRATCH = 3,
    STARLIN__MOST_ACCESSES = 6,
    STARLIN__MOST_STAGES = 4
};

typedef enum starlin__stage_kind {
    STARLIN__STAGE_GEMM,
    STARLIN__STAGE_COLLECTIVE,
    STARLIN__STAGE_ROWWISE,
    STARLIN__NSTAGE_KINDS
} starlin__stage_kind_t;

typedef enum starlin__mode { STARLIN__READ = 1, STARLIN__WRITE = 2, STARLIN__UPDATE = 3 } starlin__mode_t;

/* The stage's chunk of a matrix; the whole of a matrix that is not cut. */
typedef struct starlin__access {
    starlin_matrix_t *matrix; /* NULL: an operand that is absent */
    starlin__mode_t mode;
    bool own_run; /* only the run of this rank's block */
} starlin__access_t;

/* One task. Accesses are, by kind,
 *   GEMM        0 A, 1 B, 2 C, 3 bias, 4 residual
 *   COLLECTIVE  0 buffer (in place); or 0 send, 1 receive
 *   ROWWISE     the function's views */
typedef struct starlin__stage {
    starlin__stage_kind_t kind;
    const char *name; /* static, for traces: "gemm", "allgather", "finish", ... */
    unsigned naccesses;
    starlin__access_t accesses[STARLIN__MOST_ACCESSES];
    union {
        struct {
            bool transpose_a, transpose_b;
            double beta;
            starlin_activation_kind_t activation;
        } gemm;
        starlin__collective_kind_t collective;
        struct {
            const starlin__rowwise_kind_t *kind;
            starlin_activation_kind_t activation;
            double parameter;
        } rowwise;
    } as;
} starlin__stage_t;

typedef struct starlin__operator_kind starlin__operator_kind_t;

/* A call of an operator. Compared bytewise: zeroed before it is filled. While planning the matrices are
 * shapes without memory. */
typedef struct starlin__call {
    const starlin__operator_kind_t *kind;
    starlin_context_t *context;
    starlin_matrix_t *operands[STARLIN__MOST_OPERANDS]; /* as the kind numbers them; NULL: absent */
    starlin_matrix_t *scratch[STARLIN__MOST_SCRATCH];   /* made by the graph where the kind asks for it */
    starlin_reduction_t reduction;
    starlin_activation_kind_t activation;
    double parameter;
} starlin__call_t;

/* Named texts that the ranks compare. */
typedef struct starlin__fields starlin__fields_t;
void starlin__fields_add(starlin__fields_t *fields, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One const table per operator, in src/operators/NAME.c. Operand 0 is the input over rows. */
struct starlin__operator_kind {
    const char *name;
    const char *names[STARLIN__MOST_OPERANDS]; /* of the operands, for messages; NULL ends them */
    unsigned required;                         /* bit set of the operands that must be there */
    unsigned output;                           /* the operand that is written */
    bool in_place;                             /* an input may be a view of the output */
    bool n_differs, k_differs;                 /* of a planned operation, between ranks */
    /* What is wrong with shapes, placements and options? Names the argument and its value. Local. Operands
     * are there, of one context, and those over rows are cut alike; the output overlaps no input. */
    starlin_status_t (*check)(const starlin__call_t *call);
    /* What else than the operands' rows, dtype and placements must be the same on all ranks. May be NULL. */
    void (*describe)(const starlin__call_t *call, starlin__fields_t *fields);
    /* The layouts of the scratch matrices, over the output's rows; cols 0: none. May be NULL. */
    void (*scratch)(const starlin__call_t *call, starlin_matrix_layout_t layouts[STARLIN__MOST_SCRATCH]);
    /* The stages of one chunk; returns how many. */
    size_t (*stages)(const starlin__call_t *call, size_t chunk, starlin__stage_t *stages);
    /* For planning: the layouts of the operands; rows 0 and cols > 0: over rows; both 0 and not required:
     * absent. ERR_INVALID names the field. */
    starlin_status_t (*operands)(const starlin_operation_t *operation,
                                 starlin_matrix_layout_t layouts[STARLIN__MOST_OPERANDS]);
};

/* By starlin_operator_t. */
extern const starlin__operator_kind_t *const starlin__operators[STARLIN_NOPERATORS];

/* Bytes of a stage's chunk that a collective moves (of all ranks together), or that a row-wise function reads
 * and writes; the gemm of a stage with its shape (pointers NULL; of the longest run). For planning and
 * records. */
double starlin__stage_nbytes(const starlin__stage_t *stage, size_t chunk);
starlin__gemm_t starlin__stage_gemm(const starlin__stage_t *stage, size_t chunk);

#endif
