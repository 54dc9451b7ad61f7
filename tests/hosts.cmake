# SPDX-License-Identifier: BSD-3-Clause
# The BLAS that is loaded, and several hosts.

# preloaded objects and sanitizers do not go together
if(TARGET starlin-perf AND NOT STARLIN_SANITIZE)
  add_library(blas_fake MODULE blas_fake.c)
  set_target_properties(blas_fake PROPERTIES C_VISIBILITY_PRESET default)
  add_test(NAME blas_loaded COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/blas_loaded.sh $<TARGET_FILE:starlin-perf>
           $<TARGET_FILE:blas_fake>)
  set_tests_properties(blas_loaded PROPERTIES LABELS tool TIMEOUT 200)
endif()

# network namespaces with real TCP between them; skipped where these are not allowed
if(TARGET starlin-perf AND STARLIN_USE_MPI AND NOT STARLIN_SANITIZE)
  foreach(name script sums cut)
    add_test(NAME hosts_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/hosts_${name}.sh
             ${PROJECT_SOURCE_DIR}/scripts/hosts $<TARGET_FILE:starlin-perf>)
    set_tests_properties(hosts_${name} PROPERTIES LABELS hosts TIMEOUT 150 SKIP_RETURN_CODE 77)
  endforeach()
endif()
