/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of measured numbers. */
#ifndef STARLIN_NUMBERS_H
#define STARLIN_NUMBERS_H

#include <stddef.h>

/* In rising order, in place. */
void starlin__numbers_sort(double *numbers, size_t count);

#endif
