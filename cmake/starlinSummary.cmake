# SPDX-License-Identifier: BSD-3-Clause
message(STATUS "starlin ${PROJECT_VERSION}: StarPU ${STARPU_VERSION}, hwloc ${HWLOC_VERSION}, MPI ${STARLIN_USE_MPI}, "
               "CUDA ${STARLIN_USE_CUDA}, NCCL ${STARLIN_USE_NCCL}, tests ${STARLIN_BUILD_TESTS}")
