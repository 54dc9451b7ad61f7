# SPDX-License-Identifier: BSD-3-Clause
# Warnings and sanitizers for our own targets; imported headers are system headers.
add_library(starlin_warnings INTERFACE)
target_compile_options(starlin_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla>
  $<$<AND:$<BOOL:${STARLIN_WERROR}>,$<COMPILE_LANGUAGE:C>>:-Werror>)
if(STARLIN_SANITIZE)
  target_compile_options(starlin_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-fsanitize=${STARLIN_SANITIZE} -fno-omit-frame-pointer -g>)
  target_link_options(starlin_warnings INTERFACE -fsanitize=${STARLIN_SANITIZE})
  # every program, so that a leak can be told by its library
  target_sources(starlin_warnings INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${PROJECT_SOURCE_DIR}/tests/keep_modules.c>)
endif()
