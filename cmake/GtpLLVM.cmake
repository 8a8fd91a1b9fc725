# LLVM and MLIR 22, always through the shared libraries: mixing them with the
# static archives makes two copies of MLIR's state.
find_program(LLVM22_CONFIG NAMES llvm-config-22 REQUIRED)
execute_process(COMMAND ${LLVM22_CONFIG} --prefix OUTPUT_VARIABLE LLVM22_PREFIX
                OUTPUT_STRIP_TRAILING_WHITESPACE)
list(APPEND CMAKE_PREFIX_PATH ${LLVM22_PREFIX})
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(MLIR 22.1 REQUIRED CONFIG)
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_EXTERNAL_LIT "${LLVM_TOOLS_BINARY_DIR}/lit" CACHE FILEPATH "")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(HandleLLVMOptions)
separate_arguments(llvm_defs NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_definitions(${llvm_defs})
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS})
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
                    ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)

# gtp_add_mlir_library(NAME sources... [DEPENDS targets...] [GTP_LIBS ours...]
#                      [MLIR_LIBS theirs...]): waits for all generated headers.
function(gtp_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;GTP_LIBS;MLIR_LIBS" ${ARGN})
  add_mlir_library(${name} ${ARG_UNPARSED_ARGUMENTS} DISABLE_INSTALL
                   EXCLUDE_FROM_LIBMLIR DEPENDS mlir-headers ${ARG_DEPENDS})
  target_compile_options(${name} PRIVATE ${GTP_WARNINGS} -Wno-unused-parameter)
  target_link_libraries(${name} PUBLIC ${ARG_GTP_LIBS})
  mlir_target_link_libraries(${name} PUBLIC ${ARG_MLIR_LIBS})
endfunction()
