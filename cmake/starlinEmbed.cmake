# SPDX-License-Identifier: BSD-3-Clause
# starlin_embed_page(HTML HEADER SYMBOL OUTPUT_VARIABLE SCRIPT...): a C file that defines SYMBOL, as HEADER
# declares it: the page with the scripts, one after the other, in place of its @SCRIPT@. Made again when one
# of the files changes.
function(starlin_embed_page html header symbol output_variable)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${html} ${ARGN})
  file(READ ${html} page HEX)
  set(scripts "")
  foreach(script IN LISTS ARGN)
    file(READ ${script} bytes HEX)
    string(APPEND scripts "${bytes}")
  endforeach()
  string(HEX "@SCRIPT@" mark)
  string(REPLACE "${mark}" "${scripts}" page "${page}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," page "${page}")
  get_filename_component(name ${html} NAME_WE)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
       "#include \"${header}\"\n\nconst char ${symbol}[] = {${page}0};\n")
  set(${output_variable} ${output} PARENT_SCOPE)
endfunction()
