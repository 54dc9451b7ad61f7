/* SPDX-License-Identifier: BSD-3-Clause */
/* What a context changes in its process is as before when it is gone: the thread's cores, the environment,
 * the BLAS library's threads. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "linear.h"

extern char **environ;
__attribute__((weak)) void openblas_set_num_threads(int nthreads);
__attribute__((weak)) int openblas_get_num_threads(void);

static void environment_text(char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (char **entry = environ; *entry != NULL && used < size; entry++)
        used += (size_t)snprintf(text + used, size - used, "%s\n", *entry);
}

static void use_context(void)
{
    linear_t linear = {.m = 8, .n = 5, .k = 3, .count = 2};

    CHECK_STATUS(starlin_context_create(NULL, &linear.context), STARLIN_SUCCESS);
    if (linear.context != NULL)
        linear_check(&linear);
    CHECK_STATUS(starlin_context_destroy(linear.context), STARLIN_SUCCESS);
}

int main(void)
{
    static char before[1 << 16], after[1 << 16];
    cpu_set_t cores_before, cores_after;

    setenv("STARPU_SILENT", "1", 0);
    environment_text(before, sizeof before);
    CHECK_EQ_INT(sched_getaffinity(0, sizeof cores_before, &cores_before), 0);
    if (openblas_set_num_threads != NULL)
        openblas_set_num_threads(2);
    for (int i = 0; i < 2; i++)
        use_context();
    environment_text(after, sizeof after);
    CHECK_EQ_STR(after, before);
    CHECK_EQ_INT(sched_getaffinity(0, sizeof cores_after, &cores_after), 0);
    CHECK(CPU_EQUAL(&cores_before, &cores_after));
    if (openblas_get_num_threads != NULL) {
        CHECK_EQ_INT(openblas_get_num_threads(), 2);
        openblas_set_num_threads(1);
        use_context();
        CHECK_EQ_INT(openblas_get_num_threads(), 1);
    }
    return CHECK_RESULT();
}
