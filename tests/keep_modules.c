/* SPDX-License-Identifier: BSD-3-Clause */
/* For sanitized programs: the leak list names libraries that keep memory for the life of the process, so each
 * leak must be traced to its library. Plug-ins of MPI and hwloc therefore stay loaded (an unloaded module has
 * no name), and stacks are unwound through code without frame pointers. */
int dlclose(void *handle);
const char *__asan_default_options(void);

__attribute__((visibility("default"))) int dlclose(void *handle)
{
    (void)handle;
    return 0;
}

__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "fast_unwind_on_malloc=0";
}
