/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds CUPTI at run time, so that a machine without it lacks nothing else. */
#define _GNU_SOURCE
#include "record/activity_cupti.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

starlin__cupti_t starlin__cupti;

starlin_status_t starlin__cupti_status(CUptiResult ret, const char *doing)
{
    const char *text = NULL;
    if (ret == CUPTI_SUCCESS)
        return STARLIN_SUCCESS;
    if (starlin__cupti.text(ret, &text) != CUPTI_SUCCESS || text == NULL)
        text = "unknown error";
    return starlin__error(STARLIN_ERR_UNSUPPORTED, "CUPTI: %s (%d) while %s", text, (int)ret, doing);
}

/* Beside the CUDA runtime that the process uses, or where the linker looks. */
static void *open_library(void)
{
    char name[32], path[4096];
    Dl_info info;
    void *runtime = dlsym(RTLD_DEFAULT, "cudaGetDeviceCount"), *library;
    snprintf(name, sizeof name, "libcupti.so.%d", CUDA_VERSION / 1000);
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL || runtime == NULL || dladdr(runtime, &info) == 0 || info.dli_fname == NULL)
        return library;
    const char *slash = strrchr(info.dli_fname, '/');
    int length = slash != NULL ? (int)(slash - info.dli_fname) : 0;
    static const char *const places[] = {"", "/../extras/CUPTI/lib64", "/../../../extras/CUPTI/lib64"};
    for (size_t i = 0; library == NULL && length > 0 && i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%.*s%s/%s", length, info.dli_fname, places[i], name);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static bool load_symbol(void *library, const char *name, void *function_p)
{
    void *symbol = dlsym(library, name);
    memcpy(function_p, &symbol, sizeof symbol);
    return symbol != NULL;
}

starlin_status_t starlin__cupti_load(void)
{
    static bool loaded;
    if (loaded)
        return STARLIN_SUCCESS;
    void *library = open_library();
    if (library == NULL)
        return starlin__error(STARLIN_ERR_UNSUPPORTED, "CUPTI: libcupti.so.%d is not found",
                              CUDA_VERSION / 1000);
    const struct {
        const char *name;
        void *function_p;
    } symbols[] = {{"cuptiActivityRegisterCallbacks", &starlin__cupti.register_callbacks},
                   {"cuptiActivityEnable", &starlin__cupti.enable},
                   {"cuptiActivityDisable", &starlin__cupti.disable},
                   {"cuptiActivityEnableDriverApi", &starlin__cupti.enable_driver},
                   {"cuptiActivityEnableRuntimeApi", &starlin__cupti.enable_runtime},
                   {"cuptiActivityFlushAll", &starlin__cupti.flush},
                   {"cuptiActivityGetNextRecord", &starlin__cupti.next},
                   {"cuptiGetTimestamp", &starlin__cupti.timestamp},
                   {"cuptiGetStreamIdEx", &starlin__cupti.stream_id},
                   {"cuptiActivityPushExternalCorrelationId", &starlin__cupti.push},
                   {"cuptiActivityPopExternalCorrelationId", &starlin__cupti.pop},
                   {"cuptiGetResultString", &starlin__cupti.text}};
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        if (!load_symbol(library, symbols[i].name, symbols[i].function_p))
            return starlin__error(STARLIN_ERR_UNSUPPORTED, "CUPTI: the library has no %s", symbols[i].name);
    loaded = true;
    return STARLIN_SUCCESS;
}
