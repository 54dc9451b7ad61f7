# SPDX-License-Identifier: BSD-3-Clause
# CUDA as a language, its libraries, and a StarPU that was built with it. Included with STARLIN_USE_CUDA.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(STARLIN_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  mark_as_advanced(STARLIN_NVCC)
  if(NOT STARLIN_NVCC)
    message(FATAL_ERROR "STARLIN_USE_CUDA=ON needs a CUDA toolkit: nvcc was found neither on PATH nor in CUDA_HOME "
                        "nor in /usr/local/cuda. Install one, or set CMAKE_CUDA_COMPILER.")
  endif()
  set(CMAKE_CUDA_COMPILER ${STARLIN_NVCC})
endif()
# a list that suits the H100 generation and the A100; later devices compile the last one's PTX
if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "Device architectures")
endif()
# StarPU and NCCL use the shared runtime: a second, static one would have streams and errors of its own
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
set(CMAKE_CUDA_STANDARD 14)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

include(CheckSymbolExists)
set(CMAKE_REQUIRED_INCLUDES ${STARPU_INCLUDE_DIRS} ${CUDAToolkit_INCLUDE_DIRS})
unset(STARLIN_STARPU_HAS_CUDA CACHE)
check_symbol_exists(STARPU_USE_CUDA starpu_config.h STARLIN_STARPU_HAS_CUDA)
unset(CMAKE_REQUIRED_INCLUDES)
if(NOT STARLIN_STARPU_HAS_CUDA)
  message(FATAL_ERROR "STARLIN_USE_CUDA=ON, but the StarPU ${STARPU_VERSION} in ${STARPU_PREFIX} was built without CUDA. "
                      "scripts/starpu builds one and prints its prefix; configure again in a fresh build directory with "
                      "PKG_CONFIG_PATH=PREFIX/lib/pkgconfig, or turn STARLIN_USE_CUDA off.")
endif()

target_compile_options(starlin_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<BOOL:${STARLIN_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>)

if(STARLIN_USE_NCCL)
  find_package(NCCL 2.18 REQUIRED)
endif()

# headers alone: both are looked for at run time
set(STARLIN_WITH_CUPTI OFF)
if(STARLIN_USE_CUPTI STREQUAL AUTO)
  find_package(CUPTI QUIET)
elseif(STARLIN_USE_CUPTI)
  find_package(CUPTI REQUIRED)
endif()
if(STARLIN_USE_CUPTI AND CUPTI_FOUND)
  set(STARLIN_WITH_CUPTI ON)
  list(APPEND STARLIN_OPTIONAL_INCLUDE_DIRS ${CUPTI_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS})
endif()
find_path(STARLIN_NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(STARLIN_NVTX_INCLUDE_DIR)
if(STARLIN_NVTX_INCLUDE_DIR)
  list(APPEND STARLIN_OPTIONAL_INCLUDE_DIRS ${STARLIN_NVTX_INCLUDE_DIR})
endif()
