/* SPDX-License-Identifier: BSD-3-Clause */
/* Error texts of the tool. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

bool perf_error_set(perf_error_t *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return false;
}
