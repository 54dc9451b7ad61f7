# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` puts where. Nothing that is installed holds a path of the build or of the prefix, so the
# tree can be moved; starlin_core is for the unit tests and stays out.
set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/starlin)

install(TARGETS starlin EXPORT starlinTargets
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/starlin DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT starlinTargets NAMESPACE starlin:: DESTINATION ${package_directory})

if(TARGET starlin-perf)
  install(TARGETS starlin-perf RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES docs/starlin-perf.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
if(TARGET starlin_sched) # the scheduling policy as a plug-in for any StarPU program
  install(TARGETS starlin_sched LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# a shared library brings its dependencies itself; who links the archive needs them by name
set(STARLIN_STATIC_PACKAGES "")
if(NOT BUILD_SHARED_LIBS)
  set(STARLIN_STATIC_PACKAGES "${STARPU_MODULE_NAME}, hwloc, ${CBLAS_MODULE_NAME}")
endif()
file(RELATIVE_PATH STARLIN_PREFIX_FROM_PKGCONFIG
     ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/starlin.pc.in starlin.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/starlin.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

configure_package_config_file(cmake/starlinConfig.cmake.in starlinConfig.cmake
                              INSTALL_DESTINATION ${package_directory} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(starlinConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/starlinConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/starlinConfigVersion.cmake DESTINATION ${package_directory})
