/* SPDX-License-Identifier: BSD-3-Clause */
/* The page template trace_page.html as a string; the definition is made by the build. */
#ifndef STARLIN_TRACE_PAGE_H
#define STARLIN_TRACE_PAGE_H

extern const char starlin__trace_page[];

#endif
