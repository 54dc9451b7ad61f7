# SPDX-License-Identifier: BSD-3-Clause
# Tests on a device. They skip themselves where none is visible, and run one at a time. gpu_all.sh runs the same
# programs without ctest: keep the two alike.
foreach(name gpu_device gpu_gemm gpu_paced gpu_nccl gpu_caller_cuda gpu_policies gpu_steady gpu_memory gpu_streams
        gpu_handles gpu_timeline)
  starlin_add_test(${name} gpu)
  list(APPEND gpu_tests ${name})
endforeach()
target_link_libraries(test_gpu_caller_cuda PRIVATE CUDA::cudart)
target_link_libraries(test_gpu_streams PRIVATE CUDA::cudart)
target_link_libraries(test_gpu_steady PRIVATE ${CMAKE_DL_LIBS})

# lies beside the programs, where test_gpu_steady looks for it
add_library(counter_cuda MODULE counter_cuda.c)
target_link_libraries(counter_cuda PRIVATE CUDA::cudart ${CMAKE_DL_LIBS} starlin_warnings)
set_target_properties(counter_cuda PROPERTIES PREFIX "" C_VISIBILITY_PRESET default
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
add_dependencies(test_gpu_steady counter_cuda)

# gpu_mpi_run(NAME RANKS COMMAND [VARIABLE=VALUE...])
function(gpu_mpi_run name ranks command)
  starlin_add_mpi_run(${name} ${ranks} "${command}" gpu)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT STARLIN_SHARE_GPU=1 ${ARGN})
  set(gpu_tests ${gpu_tests} ${name} PARENT_SCOPE)
endfunction()

if(STARLIN_USE_MPI)
  foreach(name gpu_nccl_ranks gpu_operators gpu_order)
    starlin_add_program(${name})
    target_link_libraries(test_${name} PRIVATE MPI::MPI_C)
  endforeach()
  foreach(ranks 2 4)
    starlin_add_mpi_run(gpu_nccl_ranks_${ranks} ${ranks} $<TARGET_FILE:test_gpu_nccl_ranks> gpu)
    list(APPEND gpu_tests gpu_nccl_ranks_${ranks})
    foreach(comm nccl mpi)
      gpu_mpi_run(gpu_operators_${comm}_${ranks} ${ranks} $<TARGET_FILE:test_gpu_operators> STARLIN_COMM=${comm})
    endforeach()
  endforeach()
  foreach(comm self nccl mpi)
    gpu_mpi_run(gpu_operators_${comm}_1 1 $<TARGET_FILE:test_gpu_operators> STARLIN_COMM=${comm})
  endforeach()
  gpu_mpi_run(gpu_operators_model_1 1 $<TARGET_FILE:test_gpu_operators> STARLIN_COMM=model:gbps=200)
  foreach(comm nccl model:gbps=200)
    string(REGEX REPLACE ":.*" "" short ${comm})
    gpu_mpi_run(gpu_order_${short}_1 1 $<TARGET_FILE:test_gpu_order> STARLIN_COMM=${comm})
  endforeach()
  foreach(chunks 1 4)
    gpu_mpi_run(gpu_failure_nccl_2_${chunks} 2 "$<TARGET_FILE:test_failure>;6;${chunks}" STARLIN_COMM=nccl)
  endforeach()
  gpu_mpi_run(gpu_order_nccl_2 2 "$<TARGET_FILE:test_gpu_order>;40" STARLIN_COMM=nccl)

  add_test(NAME gpu_agree COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/gpu_agree.sh $<TARGET_FILE_DIR:test_gpu_operators>)
  list(APPEND gpu_tests gpu_agree)
endif()

add_test(NAME gpu_sanitizer COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/gpu_sanitizer.sh $<TARGET_FILE_DIR:test_gpu_gemm>)
list(APPEND gpu_tests gpu_sanitizer)
set_tests_properties(${gpu_tests} PROPERTIES RUN_SERIAL ON LABELS gpu SKIP_RETURN_CODE 77 TIMEOUT 300)
set_tests_properties(gpu_sanitizer gpu_policies PROPERTIES TIMEOUT 900)
