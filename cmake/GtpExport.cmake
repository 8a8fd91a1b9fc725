# The runtime as a package of this build folder, for programs of --emit=cpp:
#   find_package(gtp CONFIG REQUIRED PATHS <build folder>)
#   target_link_libraries(program PRIVATE gtp::GtpMain)

# What a target of ours links, of ours, in `result`.
function(gtp_closure target result)
  set(found ${${result}} ${target})
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  foreach(library ${libraries})
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" library "${library}")
    if(NOT TARGET ${library} OR library IN_LIST found)
      continue()
    endif()
    get_target_property(imported ${library} IMPORTED)
    if(NOT imported)
      gtp_closure(${library} found)
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(gtp_exported "")
gtp_closure(GtpMain gtp_exported)
export(TARGETS ${gtp_exported} NAMESPACE gtp:: FILE ${PROJECT_BINARY_DIR}/gtpTargets.cmake)
configure_file(${PROJECT_SOURCE_DIR}/cmake/gtpConfig.cmake.in ${PROJECT_BINARY_DIR}/gtpConfig.cmake
               @ONLY)
