# SPDX-License-Identifier: BSD-3-Clause
# starlin_registry(KIND VARIABLE BACKEND...): writes KIND_registry.c, the table of the backends that are built,
# in the given order, and appends it and their sources to the variable. A backend is its source without `.c`.
function(starlin_registry kind variable)
  set(entries "")
  set(files ${${variable}})
  foreach(backend IN LISTS ARGN)
    get_filename_component(name ${backend} NAME)
    string(APPEND entries "&starlin__${name}_ops, ")
    list(APPEND files ${CMAKE_CURRENT_SOURCE_DIR}/${backend}.c)
  endforeach()
  set(STARLIN_REGISTRY_ENTRIES "${entries}")
  set(registry ${CMAKE_CURRENT_BINARY_DIR}/${kind}_registry.c)
  configure_file(${kind}/${kind}_registry.c.in ${registry} @ONLY)
  set(${variable} ${files} ${registry} PARENT_SCOPE)
endfunction()
