# SPDX-License-Identifier: BSD-3-Clause
# Finds CUPTI's headers: CUPTI_FOUND and CUPTI_INCLUDE_DIR. The library is looked for at run time.
# They come with the CUDA toolkit, in its include directory or in extras/CUPTI.
set(hints "")
foreach(directory IN LISTS CUDAToolkit_INCLUDE_DIRS)
  list(APPEND hints ${directory} ${directory}/../extras/CUPTI/include ${directory}/../../../extras/CUPTI/include)
endforeach()
find_path(CUPTI_INCLUDE_DIR cupti.h HINTS ${hints} ${CUDAToolkit_TARGET_DIR}/extras/CUPTI/include
          ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include ENV CUDA_HOME PATH_SUFFIXES extras/CUPTI/include)
mark_as_advanced(CUPTI_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUPTI REQUIRED_VARS CUPTI_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "set CUPTI_INCLUDE_DIR to the directory of cupti.h, or turn STARLIN_USE_CUPTI off")
