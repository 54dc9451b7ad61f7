/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline of a chunk list, event by event: gemms one after the other, collectives one after the other,
 * each at full speed alone and at a lower one while both run. Pure functions. */
#include "plan/simulate.h"

#include <math.h>

/* What a broken measurement must not do is keep the simulation from ending. */
static double sane_us(double us)
{
    if (!(us > 0))
        return 0;
    return us < 1e15 ? us : 1e15;
}

static double one_gemm_us(const starlin__plan_input_t *input, int64_t rows)
{
    double us = sane_us(starlin__curve_eval(&input->gemm, (double)rows));
    bool is_uneven = input->even_rows > 0 && rows > input->even_rows && rows % input->even_rows != 0;
    return is_uneven && rows != input->m ? sane_us(us * input->uneven_slowdown) : us;
}

/* Rows of the gemms that a chunk's is launched as. */
static int64_t launched_rows(const starlin__plan_input_t *input, int64_t rows)
{
    return input->piece_rows > 0 && input->piece_rows < rows ? input->piece_rows : rows;
}

double starlin__simulate_gemm_us(const starlin__plan_input_t *input, int64_t rows)
{
    int64_t piece = launched_rows(input, rows), rest = rows % piece;
    double us = (double)(rows / piece) * one_gemm_us(input, piece);
    return sane_us(rest > 0 ? us + one_gemm_us(input, rest) : us);
}

double starlin__simulate_comm_us(const starlin__plan_input_t *input, int64_t rows)
{
    return sane_us(starlin__curve_eval(&input->comm, (double)rows * input->nbytes_per_row));
}

static double last_comm_us(const starlin__plan_input_t *input, int64_t rows)
{
    const starlin__curve_t *curve = input->last_comm.npoints > 0 ? &input->last_comm : &input->comm;
    return sane_us(starlin__curve_eval(curve, (double)rows * input->nbytes_per_row));
}

typedef struct pipeline {
    double now, gemm_left, comm_left; /* left: microseconds of work at full speed */
    double comm_start;                /* when the waiting collective starts */
    double gemm_slow, comm_slow;      /* while both run */
    bool is_prompt, yields;           /* the gemm leaves room for a collective, or lets it go first */
    size_t gemm, comm;                /* chunk of each stage */
    bool comm_waits, comm_runs;
} pipeline_t;

typedef enum event { GEMM_ENDS, COMM_STARTS, COMM_ENDS } event_t;

static pipeline_t pipeline_init(const starlin__plan_input_t *input)
{
    pipeline_t pipe = {.gemm_slow = input->gemm_slowdown > 1 ? input->gemm_slowdown : 1,
                       .comm_slow = input->comm_slowdown > 1 ? input->comm_slowdown : 1};
    /* two threads on one core: each at half speed, at best */
    if (input->comm_uses_core) {
        pipe.gemm_slow = pipe.gemm_slow > 2 ? pipe.gemm_slow : 2;
        pipe.comm_slow = pipe.comm_slow > 2 ? pipe.comm_slow : 2;
    }
    return pipe;
}

/* Goes on to the next event with the speeds that hold until then. */
static event_t pipeline_advance(pipeline_t *pipe, bool gemm_runs)
{
    bool both = gemm_runs && pipe->comm_runs;
    double gemm_slow = both && !pipe->is_prompt ? pipe->gemm_slow : 1, comm_slow = both ? pipe->comm_slow : 1;
    double step = INFINITY;
    event_t event = GEMM_ENDS;
    if (gemm_runs)
        step = pipe->gemm_left * gemm_slow;
    if (pipe->comm_runs && pipe->comm_left * comm_slow < step) {
        step = pipe->comm_left * comm_slow;
        event = COMM_ENDS;
    }
    if (pipe->comm_waits && pipe->comm_start - pipe->now < step) {
        step = pipe->comm_start - pipe->now;
        event = COMM_STARTS;
    }
    pipe->now += step;
    if (gemm_runs && event != GEMM_ENDS)
        pipe->gemm_left = sane_us(pipe->gemm_left - step / gemm_slow);
    if (pipe->comm_runs && event != COMM_ENDS)
        pipe->comm_left = sane_us(pipe->comm_left - step / comm_slow);
    return event;
}

static bool yields(const starlin__plan_input_t *input, int64_t rows)
{
    return input->yield_rows > 0 && (double)launched_rows(input, rows) > input->yield_rows;
}

bool starlin__plan_is_chancy(const starlin__plan_input_t *input, const int64_t *rows, size_t nchunks)
{
    for (size_t i = 1; i < nchunks; i++) {
        if (input->comm_delay_us > 0 && (double)launched_rows(input, rows[i]) > input->prompt_rows &&
            !yields(input, rows[i]))
            return true;
    }
    return false;
}

/* The costs of a chunk as large as the one before are known already. */
typedef struct cost {
    int64_t rows;
    double us;
} cost_t;

double starlin__plan_simulate(const starlin__plan_input_t *input, const int64_t *rows, size_t nchunks)
{
    pipeline_t pipe = pipeline_init(input);
    double task_us = sane_us(input->task_us), delay_us = sane_us(input->comm_delay_us);
    cost_t gemm = {.rows = -1}, comm = {.rows = -1};
    size_t total = nchunks * starlin__plan_nlayers(input);
    bool load_gemm = true;
    while (pipe.comm < total) {
        /* a chunk of a later layer needs the same chunk of the layer before, summed */
        bool gemm_runs = pipe.gemm < total && (pipe.gemm < nchunks || pipe.comm > pipe.gemm - nchunks);
        if (gemm_runs && load_gemm) {
            int64_t size = rows[pipe.gemm % nchunks];
            if (gemm.rows != size)
                gemm = (cost_t){size, starlin__simulate_gemm_us(input, size)};
            pipe.is_prompt = (double)launched_rows(input, size) <= input->prompt_rows;
            pipe.yields = pipe.gemm % nchunks > 0 && yields(input, size);
            pipe.gemm_left = gemm.us + task_us + (pipe.yields ? sane_us(input->yield_us) : 0);
            load_gemm = false;
        }
        if (!pipe.comm_runs && !pipe.comm_waits && pipe.comm < pipe.gemm) {
            size_t chunk = pipe.comm % nchunks;
            if (chunk + 1 == nchunks)
                pipe.comm_left = last_comm_us(input, rows[chunk]);
            else if (comm.rows != rows[chunk])
                comm = (cost_t){rows[chunk], starlin__simulate_comm_us(input, rows[chunk])};
            if (chunk + 1 < nchunks)
                pipe.comm_left = comm.us;
            pipe.comm_waits = true;
            pipe.comm_start = pipe.now + (gemm_runs && !pipe.is_prompt && !pipe.yields ? delay_us : 0);
        }
        switch (pipeline_advance(&pipe, gemm_runs)) {
        case GEMM_ENDS:
            pipe.gemm++;
            load_gemm = true;
            /* the gemm that it waited for is over: it takes its place before the next one does */
            if (pipe.comm_waits)
                pipe.comm_start = pipe.now;
            break;
        case COMM_STARTS:
            pipe.comm_waits = false;
            pipe.comm_runs = true;
            break;
        case COMM_ENDS:
            pipe.comm_runs = false;
            pipe.comm++;
            break;
        }
    }
    return pipe.now + sane_us(input->wait_us);
}
