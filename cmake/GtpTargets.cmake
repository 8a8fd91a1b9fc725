# gtp_add_library(NAME sources...): a static library of the half that needs no
# LLVM, with the project's warnings and include paths.
set(GTP_WARNINGS -Wall -Wextra -Wpedantic -Werror)
if(GTP_SANITIZE)
  string(REPLACE ";" "," gtp_sanitize "${GTP_SANITIZE}")
  add_compile_options(-fsanitize=${gtp_sanitize} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${gtp_sanitize})
endif()

function(gtp_add_library name)
  add_library(${name} STATIC ${ARGN})
  target_compile_options(${name} PRIVATE ${GTP_WARNINGS})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                            ${PROJECT_BINARY_DIR}/include)
endfunction()

function(gtp_add_executable name)
  add_executable(${name} ${ARGN})
  target_compile_options(${name} PRIVATE ${GTP_WARNINGS})
endfunction()

# gtp_add_unittest(NAME sources... [LIBS libraries...]): a GoogleTest binary that
# ctest knows under its name.
function(gtp_add_unittest name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  gtp_add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
