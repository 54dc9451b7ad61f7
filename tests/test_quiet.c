/* SPDX-License-Identifier: BSD-3-Clause */
/* A context prints nothing, not even where StarPU finds no files of its own and would say so, unless the user
 * has set StarPU's variable; the environment is as before. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "starlin/starlin.h"

extern char **environ;

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In any order: a variable that comes back is the last one. */
static void environment_text(char *text, size_t size)
{
    char *entries[1024];
    size_t used = 0, count = 0;

    while (environ[count] != NULL && count < sizeof entries / sizeof entries[0]) {
        entries[count] = environ[count];
        count++;
    }
    qsort(entries, count, sizeof entries[0], compare);
    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s\n", entries[i]);
}

/* Opens and closes a context in a home without files; returns how much it has printed. */
static long printed(void)
{
    static char before[1 << 16], after[1 << 16];
    char home[] = "/tmp/starlin-quiet-XXXXXX", command[64];
    int saved[2] = {dup(1), dup(2)};
    FILE *file = tmpfile();
    starlin_context_t *context = NULL;
    struct stat status = {.st_size = -1};

    CHECK(mkdtemp(home) != NULL && file != NULL);
    setenv("HOME", home, 1);
    environment_text(before, sizeof before);
    fflush(NULL);
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    starlin_status_t opened = starlin_context_create(NULL, &context);
    starlin_status_t closed = starlin_context_destroy(context);
    fflush(NULL);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    CHECK_STATUS(opened, STARLIN_SUCCESS);
    CHECK_STATUS(closed, STARLIN_SUCCESS);
    CHECK_EQ_INT(fstat(fileno(file), &status), 0);
    environment_text(after, sizeof after);
    CHECK_EQ_STR(after, before);
    fclose(file);
    close(saved[0]);
    close(saved[1]);
    snprintf(command, sizeof command, "rm -rf %s", home);
    CHECK_EQ_INT(system(command), 0);
    return (long)status.st_size;
}

int main(void)
{
    static const char *const variables[] = {"STARLIN_LOG",           "STARPU_SILENT",  "STARPU_HOME",
                                            "STARPU_PERF_MODEL_DIR", "XDG_CACHE_HOME", "STARPU_SCHED"};

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    CHECK_EQ_INT(printed(), 0);
    setenv("STARPU_SCHED", "starlin", 1); /* hidden from StarPU, which would warn */
    CHECK_EQ_INT(printed(), 0);
    setenv("STARPU_SILENT", "0", 1);
    CHECK(printed() > 0); /* StarPU's lines are the user's wish; without them this test could not fail */
    return CHECK_RESULT();
}
