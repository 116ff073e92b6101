# Tests of the repository itself: layers, budgets, pages of programs, toolkit check, installed package. Of the other documents
# tests/scripts/test_documents.py is the test.
find_package(Python COMPONENTS Interpreter REQUIRED)
add_test(NAME layers COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/check_layers.py)
add_test(NAME budgets COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/check_budgets.py)
add_test(NAME links COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/check_links.py)
add_executable(environment_page docs/environment_page.cpp)
target_compile_options(environment_page PRIVATE ${TENSORCRAFT_WARNINGS})
target_link_libraries(environment_page PRIVATE tensorcraft)
add_test(NAME environment_page COMMAND environment_page ${PROJECT_SOURCE_DIR}/docs/environment.md --check)
add_executable(requirements_page docs/requirements_page.cpp)
target_compile_options(requirements_page PRIVATE ${TENSORCRAFT_WARNINGS})
target_link_libraries(requirements_page PRIVATE tensorcraft_test_support)
add_test(NAME requirements_page COMMAND requirements_page ${PROJECT_SOURCE_DIR}/docs/install.md --check)
add_test(NAME cuda_toolkit COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}
                                   -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/cuda_toolkit_test.cmake)
add_test(NAME compiler COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/compiler
                               -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/compiler_test.cmake)
add_test(NAME googletest COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/googletest
                                 -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/googletest_test.cmake)
add_test(NAME cli11 COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/cli11
                            -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/cli11_test.cmake)
add_test(NAME google_benchmark COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}
                                       -DWORK=${CMAKE_CURRENT_BINARY_DIR}/google_benchmark
                                       -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/google_benchmark_test.cmake)
add_test(NAME nanobind COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/nanobind
                               -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/nanobind_test.cmake)
add_test(NAME library COMMAND ${CMAKE_COMMAND} -DLIBRARY=$<TARGET_FILE:tensorcraft>
                              -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/library_test.cmake)
set_tests_properties(layers budgets links environment_page requirements_page cuda_toolkit compiler googletest cli11
                     google_benchmark nanobind library PROPERTIES LABELS cpu TIMEOUT 300)
# Users' programs are built without a sanitizer, and its library must be the first of a process.
if(NOT CMAKE_CXX_FLAGS MATCHES "sanitize")
  add_test(NAME package COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DROOT=${PROJECT_SOURCE_DIR}
                                -DWORK=${CMAKE_CURRENT_BINARY_DIR}/package -DNVCC=${TENSORCRAFT_NVCC}
                                -DLAUNCHER=${CCACHE_PROGRAM}
                                -DCUDA_FLAGS=${tensorcraft_fast_compile_flag} -P ${CMAKE_CURRENT_SOURCE_DIR}/package/run.cmake)
  set_tests_properties(package PROPERTIES LABELS cpu TIMEOUT 900)  # nvcc compiles every launcher in it
endif()
