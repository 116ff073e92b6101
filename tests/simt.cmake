# What `ctest -L simt` runs, and the tests of each instrumented library of cmake/simt.cmake, under the label and
# configuration of its name: `ctest -C race -L race`. scripts/simt.sh calls each.
file(GLOB simt_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/simt/*_test.cpp)
file(GLOB planted_faults CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/simt/faults/*_faults.cpp)
file(GLOB wrapper_cases CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/wrappers/*_cases.cpp)

# Host code, which the programs of all libraries share.
set(here ${CMAKE_CURRENT_SOURCE_DIR})
add_library(ops_objects OBJECT ${here}/ops/conformance_test.cpp ${here}/ops/determinism_test.cpp
                               ${here}/ops/far_strides_test.cpp ${here}/ops/properties_products_test.cpp
                               ${here}/ops/properties_test.cpp ${here}/ops/simt_instances_test.cpp)
add_library(wrappers_objects OBJECT wrappers/wrappers_test.cpp wrappers/coverage_test.cpp)
target_compile_definitions(wrappers_objects PRIVATE TENSORCRAFT_SOURCE="${PROJECT_SOURCE_DIR}")
foreach(objects ops_objects wrappers_objects)
  tensorcraft_simt_kernels(${objects})
  tensorcraft_program_objects(${objects})
  tensorcraft_together(${objects} 6)
  target_compile_options(${objects} PRIVATE $<$<CONFIG:Release>:-O1>)  # what compares every element of every case
  target_precompile_headers(${objects} REUSE_FROM tensorcraft_test_base)
  target_link_libraries(${objects} PRIVATE GTest::gtest nlohmann_json::nlohmann_json)
endforeach()

# The programs and tests of one library; `kind` is asan, race, or nothing for the plain library.
function(tensorcraft_simt_suite kind)
  set(suite simt)
  set(library tensorcraft)
  if(kind)
    set(suite ${kind})
    set(library tensorcraft_${kind})
    set(end _${kind})
    set(excluded EXCLUDE_FROM_ALL)
    set(configuration CONFIGURATIONS ${kind})
  endif()

  add_library(planted_faults${end} OBJECT ${excluded} ${planted_faults})
  tensorcraft_simt_kernels(planted_faults${end} ${kind})
  if(kind STREQUAL "race")
    target_compile_options(planted_faults_race PRIVATE -g)  # docs/simt.md debugs one
  endif()

  # Instrumented objects first: if several hold an inline function, the first is linked.
  add_executable(simt_tests${end} ${excluded} ${simt_tests} simt/faults/faults_test.cpp
                 $<TARGET_OBJECTS:planted_faults${end}>)
  add_executable(simt_faults_page${end} ${excluded} docs/simt_faults_page.cpp $<TARGET_OBJECTS:planted_faults${end}>)
  add_executable(wrappers_tests${end} ${excluded} ${wrapper_cases} $<TARGET_OBJECTS:wrappers_objects>)
  set(programs simt_tests${end} simt_faults_page${end} wrappers_tests${end})
  foreach(program ${programs})
    tensorcraft_simt_kernels(${program} ${kind})
    target_compile_options(${program} PRIVATE ${TENSORCRAFT_QUICK_OPTIONS})  # they run for a moment
    if(NOT kind)
      target_precompile_headers(${program} REUSE_FROM tensorcraft_test_base)
    elseif(program STREQUAL "simt_tests${end}")
      target_precompile_headers(${program} PRIVATE <gtest/gtest.h> ${TENSORCRAFT_STANDARD_HEADERS})
    elseif(program STREQUAL "wrappers_tests${end}")
      target_precompile_headers(${program} REUSE_FROM simt_tests${end})
    endif()
  endforeach()
  add_executable(ops_simt_tests${end} ${excluded} $<TARGET_OBJECTS:ops_objects> $<TARGET_OBJECTS:cases_objects>)
  if(NOT kind)  # an instrumented library has them
    target_sources(ops_simt_tests PRIVATE $<TARGET_OBJECTS:tensorcraft_case_instances>)
  endif()
  list(APPEND programs ops_simt_tests${end})
  foreach(program ${programs})
    target_link_libraries(${program} PRIVATE ${library} GTest::gtest_main)
  endforeach()
  add_custom_target(${suite}_suite DEPENDS ${programs})

  # A kernel that fails is not unwound, so what it had allocated is lost.
  set(environment ASAN_OPTIONS=detect_leaks=0)
  add_test(NAME simt${end} ${configuration} COMMAND simt_tests${end})
  add_test(NAME simt_faults_page${end} ${configuration}
           COMMAND simt_faults_page${end} ${PROJECT_SOURCE_DIR}/docs/simt.md --check)
  add_test(NAME wrappers${end} ${configuration} COMMAND wrappers_tests${end})
  set_tests_properties(simt${end} simt_faults_page${end} wrappers${end}
                       PROPERTIES LABELS ${suite} TIMEOUT 900 ENVIRONMENT "${environment}")
  # Each library runs each kernel of each case once: the plain one and asan hold the results against the
  # reference; race runs them at every seed instead, and reports what is not ordered at any.
  set(chosen *simt*)
  set(left_out *Determinism*)
  if(kind STREQUAL "race")
    set(left_out *Conformance*:*FarStrides*)  # strides are for memory that it does not see
  elseif(NOT kind)
    set(chosen *simt*:SimtDevice*)
  endif()
  string(APPEND left_out :*PropertyOfVariants*)  # random calls of all variants: ops_drawn has them
  if(kind)
    string(APPEND left_out :*PropertyOfSparse*)
  endif()
  # Nothing is compiled one by one: the library holds the kernels of all cases.
  set(held TENSORCRAFT_CONFIG=${CMAKE_CURRENT_SOURCE_DIR}/simt/jit_off.json)
  # In parts, for a machine of two cores: most grids are smaller than that. The longest begin first.
  foreach(shard RANGE 1)
    add_test(NAME simt_ops${end}_gemm_${shard} ${configuration} COMMAND ops_simt_tests${end})
    set_tests_properties(simt_ops${end}_gemm_${shard} PROPERTIES LABELS ${suite} TIMEOUT 1800 COST 1000
      ENVIRONMENT "${held};GTEST_FILTER=*simt*gemm*:*gemm*simt*-${left_out};GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${shard}")
  endforeach()
  foreach(shard RANGE 4)
    add_test(NAME simt_ops${end}_${shard} ${configuration} COMMAND ops_simt_tests${end})
    set_tests_properties(simt_ops${end}_${shard} PROPERTIES LABELS ${suite} TIMEOUT 900
      ENVIRONMENT "${held};GTEST_FILTER=${chosen}-*gemm*:${left_out};GTEST_TOTAL_SHARDS=5;GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

if(TENSORCRAFT_SIMT)
  foreach(kind "" ${TENSORCRAFT_INSTRUMENTATIONS})
    tensorcraft_simt_suite("${kind}")
  endforeach()
endif()
