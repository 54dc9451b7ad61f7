/* SPDX-License-Identifier: BSD-3-Clause */
/* Effective configuration: options over environment over defaults. Pure, apart from getenv(). */
#ifndef STARLIN_CONFIG_H
#define STARLIN_CONFIG_H

#include "base/base.h"

typedef struct starlin__config {
    char comm[128];      /* "auto", a backend's name, or "model:..." */
    char compute[32];    /* "auto" or a backend's name */
    char policy[64];     /* StarPU policy to use when STARPU_SCHED is unset; "" means the library's default */
    unsigned max_ctas;   /* 0: the communicator's own default */
    unsigned timeout_ms; /* > 0 */
    bool bind;           /* bind ranks to disjoint cores */
    bool share_gpu;      /* STARLIN_SHARE_GPU=1: several ranks may use one GPU */
    bool trial;          /* plans are verified in the first steps; STARLIN_TRIAL=off: not */
    const char *no_bind_reason; /* why `bind` is false: names the variable; NULL when it is true */
} starlin__config_t;

/* options may be NULL. ERR_INVALID names the field or the variable, its value and what is allowed. */
starlin_status_t starlin__config_load(const starlin_context_options_t *options, starlin__config_t *config_p);

/* Parameters of the modelled link, from the text behind "model:". */
typedef struct starlin__model_config {
    double gbps;       /* > 0, GB/s (1e9 bytes) */
    double latency_us; /* >= 0, default 0 */
    unsigned ctas;     /* 1..1024, default 8 */
    bool ctas_given;   /* else the planner may choose another number */
    unsigned ranks;    /* 2..1048576, default 2 */
} starlin__model_config_t;

/* "gbps=B,latency_us=L,ctas=C,ranks=P", any order, gbps required; ERR_INVALID names the bad field. */
starlin_status_t starlin__model_config_parse(const char *text, starlin__model_config_t *config_p);

/* Time of one collective of nbytes: latency + 2(P-1)/P * nbytes / gbps. */
double starlin__model_config_time_us(const starlin__model_config_t *config, double nbytes);

#endif
