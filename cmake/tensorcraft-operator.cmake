# tensorcraft_add_operator(NAME [FOLDER folder]): the shared library NAME of an operator outside the library's tree.
# The folder, by default NAME beside the CMakeLists.txt, holds what a folder of tensorcraft/ops holds, and is included
# as "tensorcraft/ops/NAME/...": *.cpp for the host, *.cuh and params.h for kernels, with one function
# tensorcraft::ops::NAME() that gives its operators. Device text is embedded, so that a GPU's compiler gets it;
# tensorcraft::add_library() and Python's tc.add_library() load the result.
set(TENSORCRAFT_OPERATOR_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})

function(tensorcraft_add_operator name)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "FOLDER" "")
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$" OR given_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tensorcraft_add_operator: got \"${name} ${given_UNPARSED_ARGUMENTS}\"; expected a name in "
                        "snake_case, which C++ and Python can have, and perhaps FOLDER with the folder of its files.")
  endif()
  if(NOT given_FOLDER)
    set(given_FOLDER ${name})
  endif()
  get_filename_component(folder ${given_FOLDER} ABSOLUTE)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB device_text CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.cuh ${folder}/params.h)
  if(NOT sources)
    message(FATAL_ERROR "tensorcraft_add_operator: ${folder} has no .cpp file; expected the files of the operator "
                        "\"${name}\" there, or their folder after FOLDER.")
  endif()

  # The folder under the name by which its files include each other.
  set(root ${CMAKE_CURRENT_BINARY_DIR}/${name}.operator)
  file(MAKE_DIRECTORY ${root}/tensorcraft/ops)
  file(CREATE_LINK ${folder} ${root}/tensorcraft/ops/${name} SYMBOLIC)
  list(TRANSFORM device_text PREPEND ${root}/tensorcraft/ops/${name}/)
  list(JOIN device_text "\n" lines)
  file(CONFIGURE OUTPUT ${root}/device_text.txt CONTENT "${lines}" @ONLY)
  set(embedded ${root}/embedded.cpp)
  add_custom_command(
    OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DLIST=${root}/device_text.txt -DNAME=TextOf_${name} -DOUT=${embedded}
            -P ${TENSORCRAFT_OPERATOR_CMAKE_DIR}/embed.cmake
    DEPENDS ${device_text} ${root}/device_text.txt ${TENSORCRAFT_OPERATOR_CMAKE_DIR}/embed.cmake
    VERBATIM
    COMMENT "Embedding the device text of ${name}")
  configure_file(${TENSORCRAFT_OPERATOR_CMAKE_DIR}/operator.cpp.in ${root}/operator.cpp @ONLY)

  add_library(${name} SHARED ${sources} ${embedded} ${root}/operator.cpp)
  target_include_directories(${name} PUBLIC ${root})
  target_link_libraries(${name} PUBLIC tensorcraft::tensorcraft)
endfunction()
