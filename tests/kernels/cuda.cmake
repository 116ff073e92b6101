# Programs that nvcc compiles: the launchers' own tests, and what compares them on a GPU. Only where there is an nvcc.
set(CMAKE_CUDA_COMPILER ${TENSORCRAFT_NVCC})
set(TENSORCRAFT_CUDA_ARCHITECTURES 90a CACHE STRING "Architectures of the programs that nvcc compiles")
set(CMAKE_CUDA_ARCHITECTURES ${TENSORCRAFT_CUDA_ARCHITECTURES})
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know C++20 of nvcc; the library asks for it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)  # runs where there is no toolkit

function(tensorcraft_cuda_options name)
  set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES "${TENSORCRAFT_CUDA_ARCHITECTURES}")
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler -Wall>")
  target_link_libraries(${name} PRIVATE tensorcraft::kernels)
endfunction()

function(tensorcraft_cuda_program name label)
  cmake_parse_arguments(PROGRAM "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${PROGRAM_SOURCES})
  tensorcraft_cuda_options(${name})
  target_link_libraries(${name} PRIVATE ${PROGRAM_LIBRARIES})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 900 SKIP_RETURN_CODE 77)
endfunction()

set(launchers_sources kernels/compiled_sets_test.cu kernels/convolution_test.cu kernels/elementwise_test.cu kernels/gemm_grouped_test.cu kernels/gemm_test.cu
                      kernels/launch_test.cu kernels/launchers_test.cu)
set_source_files_properties(kernels/elementwise_test.cu PROPERTIES COMPILE_OPTIONS --extended-lambda)
tensorcraft_cuda_program(launchers_tests cpu SOURCES ${launchers_sources} LIBRARIES GTest::gtest_main)
# Without a GPU no test waits for these kernels, and the compiler need not take long over them. The example in tests/package
# compiles kernels to the end, and so does launchers_gpu_tests: of what is not optimised the driver's compiler finishes no wgmma.
list(TRANSFORM TENSORCRAFT_CUDA_ARCHITECTURES REPLACE "^([0-9]+[a-z]?).*" "\\1-virtual" OUTPUT_VARIABLE virtual_architectures)
set_target_properties(launchers_tests PROPERTIES CUDA_ARCHITECTURES "${virtual_architectures}")
include(CheckCompilerFlag)
check_compiler_flag(CUDA -Ofc=max tensorcraft_fast_compile)
if(tensorcraft_fast_compile)
  set(tensorcraft_fast_compile_flag -Ofc=max)
endif()
set(fast_compile $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<CONFIG:Debug>>>:${tensorcraft_fast_compile_flag}>)  # not with -G
target_compile_options(launchers_tests PRIVATE ${fast_compile} $<$<COMPILE_LANGUAGE:CUDA>:-O0>)
# GCC and nvcc must give a kernel one name (kernels/launch.cuh): a K stands for const, and no launch would find that kernel.
add_test(NAME launchers_names COMMAND sh -c "nm $<TARGET_FILE:launchers_tests> | grep -c Constant && ! nm $<TARGET_FILE:launchers_tests> | grep tlK")
set_tests_properties(launchers_names PROPERTIES LABELS cpu)
# What scripts/gpu_test.sh builds and runs: the launchers' tests, the example, which tests/package builds as a user does, and a
# comparison with the JIT.
add_executable(launchers_gpu_tests EXCLUDE_FROM_ALL ${launchers_sources})
tensorcraft_cuda_options(launchers_gpu_tests)
target_link_libraries(launchers_gpu_tests PRIVATE GTest::gtest_main)
add_executable(aot_launchers EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/examples/aot/main.cu)
file(GLOB aot_routes CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/benchmarks/aot_routes/*.cu)
add_executable(aot_routes EXCLUDE_FROM_ALL ${aot_routes})
tensorcraft_cuda_options(aot_launchers)
tensorcraft_cuda_options(aot_routes)
target_link_libraries(aot_routes PRIVATE tensorcraft)

# Each header of a launcher stands alone, and each instance compiles for the oldest GPU. The device half alone, in a third of
# the time: launchers_tests and the example in tests/package compile the launchers whole.
file(GLOB launcher_headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tensorcraft/kernels/*.cuh)
foreach(header IN LISTS launcher_headers)
  get_filename_component(stem ${header} NAME_WE)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${stem}.cu)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
  list(APPEND launcher_sources ${source})
endforeach()
add_library(launcher_headers OBJECT ${launcher_sources} kernels/instances.cu)
set_target_properties(launcher_headers PROPERTIES CUDA_PTX_COMPILATION ON CUDA_ARCHITECTURES 80)
target_compile_options(launcher_headers PRIVATE ${fast_compile})
target_link_libraries(launcher_headers PRIVATE tensorcraft::kernels)
