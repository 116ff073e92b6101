# Tests of the repository itself: layers, toolkit check, installed package.
find_package(Python COMPONENTS Interpreter REQUIRED)
add_test(NAME layers COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/check_layers.py)
add_test(NAME cuda_toolkit COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}
                                   -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/cuda_toolkit_test.cmake)
add_test(NAME package COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/package
                              -DWORK=${CMAKE_CURRENT_BINARY_DIR}/package -P ${CMAKE_CURRENT_SOURCE_DIR}/package/run.cmake)
set_tests_properties(layers cuda_toolkit package PROPERTIES LABELS cpu TIMEOUT 300)
