# SPDX-License-Identifier: BSD-3-Clause
# Third-party libraries as imported targets. What an option asks for is required.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_search_module(STARPU REQUIRED IMPORTED_TARGET GLOBAL starpu-1.4 starpu-1.3)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET GLOBAL hwloc>=2.1)
pkg_search_module(CBLAS REQUIRED IMPORTED_TARGET GLOBAL openblas cblas blas-netlib)
# Debian gives every BLAS the name libblas.so.3 and tells them apart by folder. What is loaded may differ again, which the
# library says at run time.
foreach(library IN LISTS CBLAS_LINK_LIBRARIES)
  file(REAL_PATH "${library}" file)
  if(file MATCHES "/(lib(ref|gslc|c)?blas)\\.[^/]*$" AND NOT file MATCHES "openblas|blis|mkl|atlas")
    message(WARNING "The BLAS found is a reference implementation (${file}): gemms will be many times slower than with "
                    "OpenBLAS (Debian: libopenblas-dev) or another optimized one.")
  endif()
endforeach()
# StarPU's headers pull in CUDA's, whose deprecation warnings are not ours
foreach(package STARPU HWLOC CBLAS)
  get_target_property(directories PkgConfig::${package} INTERFACE_INCLUDE_DIRECTORIES)
  if(directories)
    set_target_properties(PkgConfig::${package} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${directories}")
  endif()
endforeach()

if(STARLIN_USE_MPI)
  find_package(MPI REQUIRED COMPONENTS C)
endif()
if(STARLIN_BUILD_EXAMPLES)
  pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET GLOBAL jansson)
endif()
