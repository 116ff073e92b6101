# cmake -DROOT=<repository> -DWORK=<scratch> -P cli11_test.cmake
# Without an installed CLI11, a forbidden download is named.
file(WRITE ${WORK}/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.23)
   project(needs_cli11 LANGUAGES CXX)
   include(\"${ROOT}/cmake/cli11.cmake\")")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK} -B ${WORK}/forbidden -G Ninja
                        -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON -DTENSORCRAFT_FETCH=OFF
                RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(result EQUAL 0 OR NOT text MATCHES "TENSORCRAFT_FETCH[ \n]+is[ \n]+OFF")
  message(SEND_ERROR "a forbidden download was not refused by name: ${text}")
endif()
