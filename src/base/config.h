/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment, which no other file reads or changes, and the effective configuration: options over
 * environment over defaults. */
#ifndef STARLIN_CONFIG_H
#define STARLIN_CONFIG_H

#include "base/base.h"

/* Every variable of the library, with what it may be; an empty one counts as unset.
 * TEXT: the most characters, the default. NUMBER: from, to, the default. Both are also options of the same
 * name, which come first. WORD: the words, of which the first is the default. */
#define STARLIN__CONFIG_MAP(TEXT, NUMBER, WORD)                                                              \
    /* "auto", a backend's name, or "model:..." */                                                           \
    TEXT(comm, "STARLIN_COMM", 127, "auto")                                                                  \
    TEXT(compute, "STARLIN_COMPUTE", 31, "auto")                                                             \
    /* the StarPU policy to use when STARPU_SCHED is unset; "" means the library's own */                    \
    TEXT(policy, NULL, 63, "")                                                                               \
    /* 0: the communicator's own number */                                                                   \
    NUMBER(max_ctas, "STARLIN_MAX_CTAS", 0, 1024, 0)                                                         \
    NUMBER(timeout_ms, "STARLIN_TIMEOUT_MS", 1, 2147483647, 300000)                                          \
    /* "none": ranks are not bound to cores */                                                               \
    WORD(bind_none, "STARLIN_BIND", "auto", "none")                                                          \
    /* 1: several ranks may use one GPU */                                                                   \
    WORD(share_gpu, "STARLIN_SHARE_GPU", "0", "1")                                                           \
    WORD(log, "STARLIN_LOG", "none", "error", "info", "debug")                                               \
    /* 1: named ranges for profilers */                                                                      \
    WORD(nvtx, "STARLIN_NVTX", "0", "1")                                                                     \
    /* 1: f32 gemms may use TF32 */                                                                          \
    WORD(tf32, "STARLIN_TF32", "0", "1")                                                                     \
    /* what tells when kernels ran */                                                                        \
    WORD(activity, "STARLIN_ACTIVITY", "auto", "cupti", "events")

/* A text, a number, or which of the words it is. */
#define STARLIN__CONFIG_TEXT(field, variable, most, fallback)       char field[(most) + 1];
#define STARLIN__CONFIG_NUMBER(field, variable, from, to, fallback) unsigned field;
#define STARLIN__CONFIG_WORD(field, variable, ...)                  unsigned field;
typedef struct starlin__config {
    STARLIN__CONFIG_MAP(STARLIN__CONFIG_TEXT, STARLIN__CONFIG_NUMBER, STARLIN__CONFIG_WORD)
    unsigned plan_ms;           /* STARLIN_PLAN_MS: most time that planning measures */
    char wisdom[512];           /* STARLIN_WISDOM: path of the file; "": none */
    bool bind;                  /* ranks are bound to disjoint cores */
    const char *no_bind_reason; /* why `bind` is false: names the variable; NULL when it is true */
} starlin__config_t;

/* options: this version's, or NULL. ERR_INVALID names the field or the variable, its value and what is
 * allowed. */
starlin_status_t starlin__config_load(const starlin_context_options_t *options, starlin__config_t *config_p);

/* What an environment variable is, whoever's it is; NULL where it is unset or empty. */
const char *starlin__environment_get(const char *name);

/* Changes of the environment that others should see for a while. Zeroed: none. */
typedef struct starlin__environment {
    unsigned nchanges;
    struct {
        const char *name;
        char *before; /* NULL: it was unset */
    } changes[4];
} starlin__environment_t;

/* Sets a variable, or unsets it where `value` is NULL, and keeps what it was. `name` must live until the
 * restore. Not while other threads use the environment. ERR_NO_MEMORY: it is as it was. */
starlin_status_t starlin__environment_set(starlin__environment_t *environment, const char *name,
                                          const char *value);
/* The same unless the user has set the variable. */
starlin_status_t starlin__environment_default(starlin__environment_t *environment, const char *name,
                                              const char *value);
/* Undoes all changes. */
void starlin__environment_restore(starlin__environment_t *environment);

/* <cache>/starlin/<name>: XDG_CACHE_HOME, else ~/.cache. False where neither is known or it is too long. */
bool starlin__environment_cache(const char *name, char *path, size_t size);

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
