/* SPDX-License-Identifier: BSD-3-Clause */
/* The BLAS that is loaded, which need not be the one that the build was linked with: distributions swap the
 * object behind libblas.so.3, and LD_PRELOAD does too. It is asked where it can tell what it is, else known
 * by the name of its file. */
#ifndef STARLIN_BLAS_H
#define STARLIN_BLAS_H

#include "compute/compute.h"

typedef void (*starlin__blas_fn_t)(void);

/* Identifies the object that `gemm` is a function of, and writes the identity to compute->library,
 * compute->version and compute->warning. */
void starlin__blas_identify(starlin__blas_fn_t gemm, starlin__compute_t *compute);

/* Sets the number of BLAS threads, if it is not 0, and returns the number before; 0 if the library of `gemm`
 * has no call for it. */
unsigned starlin__blas_set_threads(starlin__blas_fn_t gemm, unsigned nthreads);

#endif
