# Run by the build: writes OUTPUT, a C++ file whose ARRAY holds name (without
# extension) and bytes of each of FILES, in the order given.
set(body "")
set(table "")
string(REPLACE "," ";" files "${FILES}")
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND body "static const char k_${name}[] = {${bytes}};\n")
  string(APPEND table "    {\"${name}\", {k_${name}, ${size}}},\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by EmbedFiles.cmake.
#include \"${HEADER}\"
${body}const std::vector<std::pair<std::string_view, std::string_view>> &${FUNCTION}() {
  static const std::vector<std::pair<std::string_view, std::string_view>> files = {
${table}  };
  return files;
}
")
