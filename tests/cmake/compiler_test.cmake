# cmake -DROOT=<repository> -DWORK=<scratch> -P compiler_test.cmake
# A compiler with C++20 is accepted; one without, for which this one set to C++17 stands, is refused with what it lacks.
file(WRITE ${WORK}/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.23)
   project(needs_a_compiler LANGUAGES CXX)
   if(OLD)
     set(CMAKE_CXX20_STANDARD_COMPILE_OPTION -std=c++17)
   endif()
   include(\"${ROOT}/cmake/compiler.cmake\")")
foreach(old OFF ON)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK} -B ${WORK}/${old} -G Ninja -DOLD=${old}
                  RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  if(old AND (result EQUAL 0 OR NOT text MATCHES "needs a C\\+\\+20 compiler with concepts, ranges and std::source_location; [A-Za-z]+ [0-9.]+ lacks one"))
    message(SEND_ERROR "a compiler without C++20 was not refused with what it lacks: ${text}")
  elseif(NOT old AND NOT result EQUAL 0)
    message(SEND_ERROR "a compiler with C++20 was refused: ${text}")
  endif()
endforeach()
