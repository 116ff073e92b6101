# The rungs as the SIMT device runs them: <op>_simt.cpp, with flags of their own.
option(TENSORCRAFT_SIMT "Compile the rungs for the SIMT device" ON)
# The SIMT device then sees every access of a kernel to memory: it defines the functions that the
# instrumented code calls, so nothing is linked with the sanitizer's own library.
option(TENSORCRAFT_SIMT_RACE "Instrument kernels compiled for the SIMT device with -fsanitize=thread" OFF)

# What a target needs that holds kernels for the SIMT device and nothing else: an object library of
# the instances, or of a test's kernels.
function(tensorcraft_simt_kernels target)
  # CUDA compilers know the pragmas of device text.
  target_compile_options(${target} PRIVATE ${TENSORCRAFT_WARNINGS} -Wno-unknown-pragmas)
  if(TENSORCRAFT_SIMT_RACE)
    target_compile_options(${target} PRIVATE -fsanitize=thread -Wno-tsan)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE TENSORCRAFT_SIMT=$<BOOL:${TENSORCRAFT_SIMT}>)
endfunction()
