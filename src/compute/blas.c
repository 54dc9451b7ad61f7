/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "compute/blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The object that holds a gemm. */
typedef struct object {
    char path[PATH_MAX]; /* symbolic links resolved: Debian's alternatives are such */
    void *handle;        /* NULL: the program itself */
    bool own;            /* a static BLAS, in the object that holds this code as well */
} object_t;

/* Only for a static BLAS, whose functions dlsym() need not see. */
__attribute__((weak)) void openblas_set_num_threads(int nthreads);
__attribute__((weak)) int openblas_get_num_threads(void);
__attribute__((weak)) char *openblas_get_config(void);
__attribute__((weak)) char *openblas_get_corename(void);

static void object_open(starlin__blas_fn_t gemm, object_t *object)
{
    Dl_info info, here;
    starlin__blas_fn_t self = (starlin__blas_fn_t)starlin__blas_identify;
    void *gemm_address, *self_address;

    /* ISO C knows no cast from a function to an object pointer, POSIX promises that both look alike */
    memcpy(&gemm_address, &gemm, sizeof gemm_address);
    memcpy(&self_address, &self, sizeof self_address);
    memset(object, 0, sizeof *object);
    if (dladdr(gemm_address, &info) == 0 || info.dli_fname == NULL)
        return;
    if (realpath(info.dli_fname, object->path) == NULL)
        snprintf(object->path, sizeof object->path, "%s", info.dli_fname);
    object->own = dladdr(self_address, &here) != 0 && here.dli_fbase == info.dli_fbase;
    object->handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

static void object_close(object_t *object)
{
    if (object->handle != NULL)
        dlclose(object->handle);
}

/* Writes the address of the function `name` of the object, or of one that it depends on, to the function
 * pointer at function_p; false where it has none. */
static bool object_has(const object_t *object, const char *name, void *function_p)
{
    void *address = dlsym(object->handle != NULL ? object->handle : RTLD_DEFAULT, name);

    memcpy(function_p, &address, sizeof address);
    return address != NULL;
}

/* ------------------------------------------------------------- libraries */

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." */
static bool ask_openblas(const object_t *object, starlin__compute_library_t *library)
{
    char *(*get_config)(void) = openblas_get_config, *(*get_corename)(void) = openblas_get_corename;

    if (!object_has(object, "openblas_get_config", &get_config))
        get_config = object->own ? openblas_get_config : NULL;
    if (!object_has(object, "openblas_get_corename", &get_corename))
        get_corename = object->own ? openblas_get_corename : NULL;
    if (get_config == NULL)
        return false;
    snprintf(library->name, sizeof library->name, "OpenBLAS");
    (void)sscanf(get_config(), "OpenBLAS %23s", library->version);
    if (get_corename != NULL)
        snprintf(library->kernel, sizeof library->kernel, "%.23s", get_corename());
    return true;
}

/* "Intel(R) oneAPI Math Kernel Library Version 2023.1-Product Build 20230303 for ..." */
static bool ask_mkl(const object_t *object, starlin__compute_library_t *library)
{
    void (*get_version_string)(char *text, int size);
    char text[256] = "";
    const char *version;

    if (!object_has(object, "MKL_Get_Version_String", &get_version_string))
        return false;
    get_version_string(text, (int)sizeof text - 1);
    snprintf(library->name, sizeof library->name, "MKL");
    version = strstr(text, "Version ");
    if (version != NULL)
        (void)sscanf(version, "Version %23[0-9.]", library->version);
    return true;
}

static bool ask_blis(const object_t *object, starlin__compute_library_t *library)
{
    const char *(*get_version)(void), *(*arch_string)(int arch);
    int (*query_arch)(void);

    if (!object_has(object, "bli_info_get_version_str", &get_version))
        return false;
    snprintf(library->name, sizeof library->name, "BLIS");
    snprintf(library->version, sizeof library->version, "%.23s", get_version());
    if (object_has(object, "bli_arch_query_id", &query_arch) &&
        object_has(object, "bli_arch_string", &arch_string))
        snprintf(library->kernel, sizeof library->kernel, "%.23s", arch_string(query_arch()));
    return true;
}

/* Its libcblas.so.3 is thin; libatlas.so.3, which that depends on, prints what it is, but does not say it. */
static bool ask_atlas(const object_t *object, starlin__compute_library_t *library)
{
    void (*buildinfo)(void);

    if (!object_has(object, "ATL_buildinfo", &buildinfo))
        return false;
    snprintf(library->name, sizeof library->name, "ATLAS");
    return true;
}

/* What cannot tell is known by its file: ".../atlas/libblas.so.3.10.3", ".../blas/libblas.so.3.11.0". The
 * plain names are a reference BLAS's only where no folder of the path names another library, for Debian gives
 * every one of them the name libblas.so.3. */
static void know_by_file(const object_t *object, starlin__compute_library_t *library)
{
    static const struct {
        const char *word, *name;
        bool whole_path, is_reference;
    } known[] = {
        {"openblas", "OpenBLAS", true, false},
        {"blis", "BLIS", true, false},
        {"mkl", "MKL", true, false},
        {"atlas", "ATLAS", true, false},
        {"libflexiblas", "FlexiBLAS", false, false},
        {"libarmpl", "Arm PL", false, false},
        {"libnvpl_blas", "NVPL BLAS", false, false},
        {"libgslcblas", "GSL CBLAS", false, true},
        {"libblas.", "reference BLAS", false, true},
        {"libcblas.", "reference BLAS", false, true},
        {"librefblas", "reference BLAS", false, true},
    };
    const char *slash = strrchr(object->path, '/'), *file = slash != NULL ? slash + 1 : object->path;
    const char *version = strstr(file, ".so.");

    snprintf(library->name, sizeof library->name, "%.31s", file[0] != '\0' ? file : "unknown BLAS");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].whole_path ? strstr(object->path, known[i].word) == NULL
                                : strncmp(file, known[i].word, strlen(known[i].word)) != 0)
            continue;
        snprintf(library->name, sizeof library->name, "%s", known[i].name);
        library->is_reference = known[i].is_reference;
        if (version != NULL && strchr(version + 4, '.') != NULL) /* "3" alone is the interface's version */
            snprintf(library->version, sizeof library->version, "%.23s", version + 4);
        return;
    }
}

/* --------------------------------------------------------------- threads */

static unsigned object_set_threads(const object_t *object, unsigned nthreads)
{
    int (*get_int)(void);
    void (*set_int)(int nthreads);
    int64_t (*get_dim)(void);
    void (*set_dim)(int64_t nthreads);
    long before = 0;

    if (object_has(object, "bli_thread_get_num_threads", &get_dim) &&
        object_has(object, "bli_thread_set_num_threads", &set_dim)) {
        before = (long)get_dim();
        if (nthreads > 0)
            set_dim((int64_t)nthreads);
        return before > 0 ? (unsigned)before
                          : 1; /* BLIS says -1 where nobody has said anything: it uses one */
    }
    if (!(object_has(object, "openblas_get_num_threads", &get_int) &&
          object_has(object, "openblas_set_num_threads", &set_int)) &&
        !(object_has(object, "MKL_Get_Max_Threads", &get_int) &&
          object_has(object, "MKL_Set_Num_Threads", &set_int))) {
        get_int = object->own ? openblas_get_num_threads : NULL;
        set_int = object->own ? openblas_set_num_threads : NULL;
    }
    if (get_int == NULL || set_int == NULL)
        return 0;
    before = get_int();
    if (nthreads > 0)
        set_int((int)nthreads);
    return before > 0 ? (unsigned)before : 0;
}

unsigned starlin__blas_set_threads(starlin__blas_fn_t gemm, unsigned nthreads)
{
    object_t object;
    unsigned before;

    object_open(gemm, &object);
    before = object_set_threads(&object, nthreads);
    object_close(&object);
    return before;
}

/* "OpenBLAS 0.3.21, Zen kernel, 1 thread" */
static void describe(const starlin__compute_library_t *library, const char *path, starlin__compute_t *compute)
{
    char kernel[40] = "", threads[24] = "";

    if (library->kernel[0] != '\0')
        snprintf(kernel, sizeof kernel, ", %s kernel", library->kernel);
    if (library->nthreads > 0)
        snprintf(threads, sizeof threads, ", %u thread%s", library->nthreads,
                 library->nthreads > 1 ? "s" : "");
    snprintf(compute->version, sizeof compute->version, "%s%s%s%s%s", library->name,
             library->version[0] != '\0' ? " " : "", library->version, kernel, threads);
    compute->warning[0] = '\0';
    if (library->is_reference)
        snprintf(compute->warning, sizeof compute->warning,
                 "a reference BLAS is loaded (%.280s): gemms are many times slower than with OpenBLAS or "
                 "another optimized one",
                 path);
}

void starlin__blas_identify(starlin__blas_fn_t gemm, starlin__compute_t *compute)
{
    starlin__compute_library_t *library = &compute->library;
    object_t object;

    memset(library, 0, sizeof *library);
    object_open(gemm, &object);
    if (!ask_openblas(&object, library) && !ask_mkl(&object, library) && !ask_blis(&object, library) &&
        !ask_atlas(&object, library))
        know_by_file(&object, library);
    library->nthreads = object_set_threads(&object, 0);
    describe(library, object.path, compute);
    object_close(&object);
}
