# The rungs as the emulator runs them, with flags of their own.
option(TENSORCRAFT_SIMT "Compile the rungs for the emulator" ON)

# The kinds of instrumentation. Each is a library of its own, linked from the host code that is there
# anyway and from kernels and the emulator compiled again: tensorcraft_asan, tensorcraft_race. They are
# built when something asks for them; the latter can be installed. In a build that has a sanitizer everywhere there is none.
set(TENSORCRAFT_INSTRUMENTATIONS asan race)
if(NOT TENSORCRAFT_SIMT OR CMAKE_CXX_FLAGS MATCHES "sanitize")
  set(TENSORCRAFT_INSTRUMENTATIONS "")
endif()
# -O1 keeps the accesses that the text has, -g1 has the lines that reports name; assertions are on.
set(instrumented_options -O1 -g1 -UNDEBUG -Wno-maybe-uninitialized)
set(TENSORCRAFT_ASAN_OPTIONS -fsanitize=address,undefined)

# The cases of the tests, which say too what is compiled ahead.
function(tensorcraft_cases)
  add_library(cases_objects OBJECT ${PROJECT_SOURCE_DIR}/tests/support/cases.cpp ${PROJECT_SOURCE_DIR}/tests/support/drawn_cases.cpp
                                      ${PROJECT_SOURCE_DIR}/tests/support/simt_cases.cpp)
  target_include_directories(cases_objects PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(cases_objects PRIVATE ${TENSORCRAFT_WARNINGS} ${TENSORCRAFT_QUICK_OPTIONS})
  target_compile_definitions(cases_objects PRIVATE TENSORCRAFT_CASES="${PROJECT_SOURCE_DIR}/tests/ops/cases")
  target_link_libraries(cases_objects PRIVATE nlohmann_json::nlohmann_json)
  tensorcraft_together(cases_objects 3)
endfunction()

# The kernels that are compiled ahead, as lists of sources that a program writes: tests/support/write_instances.cpp. `held` are
# the library's, `cases` those of the tests; what a call needs besides is compiled when it asks.
function(tensorcraft_write_instances held cases)
  if(NOT TENSORCRAFT_SIMT)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/instances/none.cpp CONTENT "// There is no emulator.\n")
    set(${held} ${PROJECT_BINARY_DIR}/instances/none.cpp PARENT_SCOPE)
    set(${cases} ${PROJECT_BINARY_DIR}/instances/none.cpp PARENT_SCOPE)
    return()
  endif()
  add_executable(write_instances tests/support/write_instances.cpp tests/support/sanitizer_options.cpp tests/support/untuned.cpp
                 $<TARGET_OBJECTS:cases_objects>
                 $<TARGET_OBJECTS:tensorcraft_host> $<TARGET_OBJECTS:tensorcraft_operators> $<TARGET_OBJECTS:tensorcraft_device>)
  target_include_directories(write_instances PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(write_instances PRIVATE ${TENSORCRAFT_WARNINGS} ${TENSORCRAFT_QUICK_OPTIONS})
  target_compile_definitions(write_instances PRIVATE TENSORCRAFT_SOURCE="${PROJECT_SOURCE_DIR}")
  target_link_libraries(write_instances PRIVATE nlohmann_json::nlohmann_json tensorcraft_dependencies)

  # A folder of many rungs has several files, for several cores.
  set(folder ${PROJECT_BINARY_DIR}/instances)
  file(GLOB operators CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tensorcraft/ops ${PROJECT_SOURCE_DIR}/tensorcraft/ops/*)
  foreach(operator IN LISTS operators)
    file(GLOB rungs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tensorcraft/ops/${operator}/*.cuh)
    if(rungs)
      list(LENGTH rungs count)
      math(EXPR last "(${count} - 1) / 6")
      foreach(part RANGE ${last})
        list(APPEND held_files held/${operator}_${part}.cpp)
        list(APPEND case_files cases/${operator}_${part}.cpp)
      endforeach()
    endif()
  endforeach()
  list(TRANSFORM held_files PREPEND ${folder}/ OUTPUT_VARIABLE held_paths)
  list(TRANSFORM case_files PREPEND ${folder}/ OUTPUT_VARIABLE case_paths)
  file(GLOB case_texts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/ops/cases/*.json)
  add_custom_command(
    OUTPUT ${held_paths} ${case_paths}
    COMMAND write_instances ${folder} ${held_files} ${case_files}
    DEPENDS write_instances ${case_texts}
    VERBATIM
    COMMENT "Writing the kernels that are compiled ahead")
  set(${held} ${held_paths} PARENT_SCOPE)
  set(${cases} ${case_paths} PARENT_SCOPE)
endfunction()

# Settings of a target that holds kernels for the emulator and nothing else: an object library of
# the instances, or of a test's kernels.
function(tensorcraft_simt_kernels target)  # [asan | race]
  set(kind "${ARGN}")
  # CUDA compilers know the pragmas of device text.
  target_compile_options(${target} PRIVATE ${TENSORCRAFT_WARNINGS} -Wno-unknown-pragmas)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  if(kind)
    target_compile_options(${target} PRIVATE ${instrumented_options})
    target_compile_definitions(${target} PRIVATE TENSORCRAFT_SIMT_INSTRUMENTED)
  endif()
  if(kind STREQUAL "asan")
    # Half of the cost of UBSan, and what it would find there ends the program anyway. Calls instead of
    # checks in place make unrolled loops a third cheaper to compile.
    target_compile_options(${target} PRIVATE ${TENSORCRAFT_ASAN_OPTIONS} -fno-sanitize=null,vptr,object-size,pointer-overflow
                                             -fno-sanitize-recover=undefined -fno-omit-frame-pointer
                                             "SHELL:--param asan-instrumentation-with-call-threshold=20")
  elseif(kind STREQUAL "race")
    # The emulator then sees every access of a kernel to memory: it defines the functions that
    # the instrumented code calls, so nothing is linked with the sanitizer's own library.
    target_compile_definitions(${target} PRIVATE TENSORCRAFT_SIMT_RACE)
    target_compile_options(${target} PRIVATE -fsanitize=thread -Wno-tsan)
  endif()
endfunction()

# tensorcraft_asan or tensorcraft_race.
function(tensorcraft_instrumented_library kind instances device)
  add_library(tensorcraft_${kind}_kernels OBJECT EXCLUDE_FROM_ALL ${instances})
  tensorcraft_simt_kernels(tensorcraft_${kind}_kernels ${kind})
  target_precompile_headers(tensorcraft_${kind}_kernels PRIVATE ${TENSORCRAFT_STANDARD_HEADERS})
  add_library(tensorcraft_${kind}_device OBJECT EXCLUDE_FROM_ALL ${device})
  target_include_directories(tensorcraft_${kind}_device PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(tensorcraft_${kind}_device PRIVATE ${TENSORCRAFT_WARNINGS} ${TENSORCRAFT_FLOAT_OPTIONS} -UNDEBUG)
  target_compile_definitions(tensorcraft_${kind}_device PRIVATE TENSORCRAFT_SIMT_INSTRUMENTED)
  target_link_libraries(tensorcraft_${kind}_device PRIVATE tensorcraft_dependencies)
  target_precompile_headers(tensorcraft_${kind}_device PRIVATE ${TENSORCRAFT_STANDARD_HEADERS})
  tensorcraft_together(tensorcraft_${kind}_device 6)
  # If several objects hold an inline function, the first is linked: the instrumented one.
  add_library(tensorcraft_${kind} SHARED EXCLUDE_FROM_ALL
              $<TARGET_OBJECTS:tensorcraft_${kind}_kernels> $<TARGET_OBJECTS:tensorcraft_${kind}_device>
              $<TARGET_OBJECTS:tensorcraft_host> $<TARGET_OBJECTS:tensorcraft_operators>)
  target_compile_features(tensorcraft_${kind} PUBLIC cxx_std_20)
  target_include_directories(tensorcraft_${kind} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  tensorcraft_link_library(tensorcraft_${kind})
  if(kind STREQUAL "asan")
    tensorcraft_simt_kernels(tensorcraft_asan_device asan)  # it copies for the kernels
    target_link_options(tensorcraft_asan PUBLIC ${TENSORCRAFT_ASAN_OPTIONS})
  else()
    target_compile_definitions(tensorcraft_race_device PRIVATE TENSORCRAFT_SIMT_RACE)
    # Installed, it is tensorcraft::race, and what links it is instrumented as the kernels of a test are.
    set_target_properties(tensorcraft_race PROPERTIES EXPORT_NAME race)
    target_include_directories(tensorcraft_race INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_compile_options(tensorcraft_race INTERFACE "$<INSTALL_INTERFACE:-fsanitize=thread;-Wno-tsan;-O1;-g>")
  endif()
endfunction()
