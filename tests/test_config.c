/* SPDX-License-Identifier: BSD-3-Clause */
/* Effective configuration and the text of the modelled link. */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>

#include "check.h"
#include "base/config.h"

/* The library's own, from its table, then those of StarPU that bind threads. */
#define NAME(field, variable, ...) variable,
static const char *const variables[] = {STARLIN__CONFIG_MAP(NAME, NAME, NAME) "STARPU_WORKERS_CPUID",
                                        "STARPU_WORKERS_COREID",
                                        "STARPU_WORKERS_GETBIND",
                                        "STARPU_WORKERS_NOBIND",
                                        "STARPU_MAIN_THREAD_BIND",
                                        "STARPU_MAIN_THREAD_CPUID",
                                        "STARPU_MAIN_THREAD_COREID"};
enum { NVARIABLES = sizeof(variables) / sizeof(variables[0]), FIRST_BINDING = NVARIABLES - 7 };

static void environment_clear(void)
{
    for (size_t i = 0; i < NVARIABLES; i++)
        if (variables[i] != NULL) /* an option without a variable */
            unsetenv(variables[i]);
}

/* The call fails and its text has each of the parts. */
static void check_refused(starlin_status_t status, const char *part1, const char *part2, const char *part3)
{
    CHECK_EQ_INT(status, STARLIN_ERR_INVALID);
    CHECK_CONTAINS(starlin_last_error(), part1);
    CHECK_CONTAINS(starlin_last_error(), part2);
    CHECK_CONTAINS(starlin_last_error(), part3);
}

static void test_defaults(void)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    const starlin_context_options_t *both[] = {NULL, &options};

    for (int i = 0; i < 2; i++) {
        starlin__config_t config;

        memset(&config, 0x55, sizeof(config));
        CHECK_STATUS(starlin__config_load(both[i], &config), STARLIN_SUCCESS);
        CHECK_EQ_STR(config.comm, "auto");
        CHECK_EQ_STR(config.compute, "auto");
        CHECK_EQ_STR(config.policy, "");
        CHECK_EQ_INT(config.max_ctas, 0);
        CHECK_EQ_INT(config.timeout_ms, 300000);
        CHECK(config.bind && config.no_bind_reason == NULL);
        CHECK(!config.share_gpu);
    }
}

static void test_precedence(void)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin__config_t config;

    setenv("STARLIN_COMM", "mpi", 1);
    setenv("STARLIN_COMPUTE", "cblas", 1);
    setenv("STARLIN_MAX_CTAS", "16", 1);
    setenv("STARLIN_TIMEOUT_MS", "2147483647", 1);
    setenv("STARLIN_SHARE_GPU", "1", 1);
    CHECK_STATUS(starlin__config_load(&options, &config), STARLIN_SUCCESS);
    CHECK_EQ_STR(config.comm, "mpi");
    CHECK_EQ_STR(config.compute, "cblas");
    CHECK_EQ_INT(config.max_ctas, 16);
    CHECK_EQ_INT(config.timeout_ms, 2147483647);
    CHECK(config.share_gpu);

    options.comm = "model:gbps=1";
    options.compute = "cublas";
    options.policy = "lws";
    options.max_ctas = 1024;
    options.timeout_ms = 5;
    setenv("STARLIN_MAX_CTAS", "nonsense that is not used", 1);
    CHECK_STATUS(starlin__config_load(&options, &config), STARLIN_SUCCESS);
    CHECK_EQ_STR(config.comm, "model:gbps=1");
    CHECK_EQ_STR(config.compute, "cublas");
    CHECK_EQ_STR(config.policy, "lws");
    CHECK_EQ_INT(config.max_ctas, 1024);
    CHECK_EQ_INT(config.timeout_ms, 5);

    environment_clear();
    setenv("STARLIN_COMM", "", 1); /* empty is unset */
    setenv("STARLIN_TIMEOUT_MS", "", 1);
    CHECK_STATUS(starlin__config_load(NULL, &config), STARLIN_SUCCESS);
    CHECK_EQ_STR(config.comm, "auto");
    CHECK_EQ_INT(config.timeout_ms, 300000);
    environment_clear();
}

/* What is changed for a while comes back: a value, an unset variable, an empty one, a change of a change. */
static void test_environment(void)
{
    starlin__environment_t environment = {0};
    char path[64];

    setenv("STARLIN_TEST_A", "old", 1);
    setenv("STARLIN_TEST_B", "", 1);
    unsetenv("STARLIN_TEST_C");
    CHECK_STATUS(starlin__environment_set(&environment, "STARLIN_TEST_A", NULL), STARLIN_SUCCESS);
    CHECK(getenv("STARLIN_TEST_A") == NULL);
    CHECK_STATUS(starlin__environment_set(&environment, "STARLIN_TEST_A", "new"), STARLIN_SUCCESS);
    CHECK_EQ_STR(starlin__environment_get("STARLIN_TEST_A"), "new");
    CHECK_STATUS(starlin__environment_default(&environment, "STARLIN_TEST_B", "new"), STARLIN_SUCCESS);
    CHECK_EQ_STR(getenv("STARLIN_TEST_B"), ""); /* the user has set it */
    CHECK(starlin__environment_get("STARLIN_TEST_B") == NULL);
    CHECK_STATUS(starlin__environment_default(&environment, "STARLIN_TEST_C", "new"), STARLIN_SUCCESS);
    CHECK_EQ_STR(getenv("STARLIN_TEST_C"), "new");
    starlin__environment_restore(&environment);
    CHECK_EQ_STR(getenv("STARLIN_TEST_A"), "old");
    CHECK_EQ_STR(getenv("STARLIN_TEST_B"), "");
    CHECK(getenv("STARLIN_TEST_C") == NULL);
    starlin__alloc_fail_at = starlin__alloc_count + 1;
    CHECK_STATUS(starlin__environment_set(&environment, "STARLIN_TEST_A", "new"), STARLIN_ERR_NO_MEMORY);
    starlin__alloc_fail_at = 0;
    CHECK_EQ_STR(getenv("STARLIN_TEST_A"), "old");
    CHECK_EQ_INT(environment.nchanges, 0);

    setenv("HOME", "/home/me", 1);
    setenv("XDG_CACHE_HOME", "relative", 1);
    CHECK(starlin__environment_cache("x", path, sizeof path));
    CHECK_EQ_STR(path, "/home/me/.cache/starlin/x");
    setenv("XDG_CACHE_HOME", "/cache", 1);
    CHECK(starlin__environment_cache("x", path, sizeof path));
    CHECK_EQ_STR(path, "/cache/starlin/x");
    CHECK(!starlin__environment_cache("x", path, 16)); /* the text has 16 characters */
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    CHECK(!starlin__environment_cache("x", path, sizeof path));
}

static void test_bad_environment(void)
{
    static const struct {
        const char *variable, *value, *allowed;
    } cases[] = {
        {"STARLIN_MAX_CTAS", "1025", "from 0 to 1024"},
        {"STARLIN_MAX_CTAS", "-1", "from 0 to 1024"},
        {"STARLIN_MAX_CTAS", "8x", "from 0 to 1024"},
        {"STARLIN_MAX_CTAS", " 8", "from 0 to 1024"},
        {"STARLIN_MAX_CTAS", "0x8", "from 0 to 1024"},
        {"STARLIN_TIMEOUT_MS", "0", "from 1 to 2147483647"},
        {"STARLIN_TIMEOUT_MS", "2147483648", "from 1 to 2147483647"},
        {"STARLIN_TIMEOUT_MS", "99999999999999999999999", "from 1 to 2147483647"},
        {"STARLIN_TIMEOUT_MS", "1e3", "from 1 to 2147483647"},
        {"STARLIN_BIND", "yes", "auto, none"},
        {"STARLIN_SHARE_GPU", "true", "0, 1"},
        {"STARLIN_LOG", "loud", "error, info, debug"},
        {"STARLIN_NVTX", "2", "0, 1"},
        {"STARLIN_TF32", "yes", "0, 1"},
        {"STARLIN_ACTIVITY", "guess", "auto, cupti, events"},
    };
    starlin__config_t config;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv(cases[i].variable, cases[i].value, 1);
        check_refused(starlin__config_load(NULL, &config), cases[i].variable, cases[i].value,
                      cases[i].allowed);
        environment_clear();
    }
}

static void test_bad_fields(void)
{
    starlin_context_options_t options = STARLIN_CONTEXT_OPTIONS_INIT;
    starlin__config_t config;
    char text[200];

    options.max_ctas = (unsigned)-1;
    check_refused(starlin__config_load(&options, &config), "options.max_ctas", "4294967295", "1024");
    options.max_ctas = 0;
    options.timeout_ms = 2147483648u;
    check_refused(starlin__config_load(&options, &config), "options.timeout_ms", "2147483648", "2147483647");
    options.timeout_ms = 0;

    memset(text, 'a', sizeof(text));
    text[127] = '\0';
    options.comm = text;
    CHECK_STATUS(starlin__config_load(&options, &config), STARLIN_SUCCESS);
    CHECK_EQ_STR(config.comm, text);
    text[127] = 'a';
    text[128] = '\0';
    check_refused(starlin__config_load(&options, &config), "options.comm", "128 characters", "127");
    options.comm = NULL;
    options.policy = text;
    check_refused(starlin__config_load(&options, &config), "options.policy", "128 characters", "63");
    options.policy = NULL;
    setenv("STARLIN_COMPUTE", text, 1);
    check_refused(starlin__config_load(&options, &config), "STARLIN_COMPUTE", "128 characters", "31");
    environment_clear();
}

static void test_bind(void)
{
    starlin__config_t config;

    setenv("STARLIN_BIND", "auto", 1);
    CHECK_STATUS(starlin__config_load(NULL, &config), STARLIN_SUCCESS);
    CHECK(config.bind);
    setenv("STARLIN_BIND", "none", 1);
    CHECK_STATUS(starlin__config_load(NULL, &config), STARLIN_SUCCESS);
    CHECK(!config.bind);
    CHECK_EQ_STR(config.no_bind_reason, "STARLIN_BIND");
    environment_clear();
    for (size_t i = FIRST_BINDING; i < NVARIABLES; i++) {
        setenv(variables[i], "0", 1);
        CHECK_STATUS(starlin__config_load(NULL, &config), STARLIN_SUCCESS);
        CHECK(!config.bind);
        CHECK_EQ_STR(config.no_bind_reason, variables[i]);
        environment_clear();
    }
}

static void test_model(void)
{
    static const struct {
        const char *text, *part1, *part2;
    } bad[] = {
        {"", "gbps", "missing"},
        {"latency_us=1", "gbps", "missing"},
        {"gbps", "gbps", "above 0"},
        {"gbps=", "gbps=", "above 0"},
        {"gbps=0", "gbps=0", "above 0"},
        {"gbps=-1", "gbps=-1", "above 0"},
        {"gbps=1e3", "gbps=1e3", "decimal"},
        {"gbps=inf", "gbps=inf", "decimal"},
        {"gbps=nan", "gbps=nan", "decimal"},
        {"gbps=0x10", "gbps=0x10", "decimal"},
        {"gbps=1.2.3", "gbps=1.2.3", "decimal"},
        {"gbps=.", "gbps=.", "decimal"},
        {"gbps=1 ", "gbps=1 ", "decimal"},
        {"gbps=1,", "unknown field \"\"", "allowed"},
        {"gbps=1,gbps=2", "gbps is given twice", "gbps=2"},
        {"gbps=1,latency_us=-5", "latency_us=-5", "from 0"},
        {"gbps=1,ctas=0", "ctas=0", "1 to 1024"},
        {"gbps=1,ctas=1025", "ctas=1025", "1 to 1024"},
        {"gbps=1,ctas=2.5", "ctas=2.5", "whole"},
        {"gbps=1,ranks=1", "ranks=1", "2 to 1048576"},
        {"gbps=1,ranks=1048577", "ranks=1048577", "2 to 1048576"},
        {"gbps=1,rank=4", "rank=4", "allowed"},
        {"GBPS=1", "GBPS=1", "allowed"},
    };
    starlin__model_config_t config = {.ranks = 99};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        check_refused(starlin__model_config_parse(bad[i].text, &config), "model:", bad[i].part1,
                      bad[i].part2);
    check_refused(starlin__model_config_parse(NULL, &config), "model:", "gbps", "missing");
    CHECK_EQ_INT(config.ranks, 99);

    CHECK_STATUS(starlin__model_config_parse("gbps=12.5", &config), STARLIN_SUCCESS);
    CHECK(config.gbps == 12.5 && config.latency_us == 0);
    CHECK_EQ_INT(config.ctas, 8);
    CHECK_EQ_INT(config.ranks, 2);
    CHECK_STATUS(starlin__model_config_parse("ranks=4,ctas=1,latency_us=20.25,gbps=0.5", &config),
                 STARLIN_SUCCESS);
    CHECK(config.gbps == 0.5 && config.latency_us == 20.25);
    CHECK_EQ_INT(config.ctas, 1);
    CHECK_EQ_INT(config.ranks, 4);

    /* 20.25 us + 2 * 3/4 * 1e6 bytes / 0.5 GB/s */
    CHECK(starlin__model_config_time_us(&config, 1e6) == 20.25 + 3000);
    CHECK(starlin__model_config_time_us(&config, 0) == 20.25);
}

int main(void)
{
    environment_clear();
    test_defaults();
    test_precedence();
    test_environment();
    test_bad_environment();
    test_bad_fields();
    test_bind();
    test_model();
    return CHECK_RESULT();
}
