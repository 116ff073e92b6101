# The CUDA toolkit is optional: the library never links it. Tests and examples for nvcc users take one of 12.5 or newer.
set(TENSORCRAFT_CUDA_MINIMUM 12.5)

# Refuses a toolkit whose front end is too old for the text of the kernels: NVRTC 12.0 to 12.2 refuses all, 12.3 and 12.4 wgmma's.
function(tensorcraft_check_cuda_toolkit version)
  if(version VERSION_LESS TENSORCRAFT_CUDA_MINIMUM)
    message(FATAL_ERROR
      "TensorCraft needs CUDA toolkit ${TENSORCRAFT_CUDA_MINIMUM} or newer for its nvcc targets (older ones refuse kernels' text), "
      "but found ${version}. Install a newer toolkit, or hide nvcc: the library itself needs none.")
  endif()
endfunction()

# Sets TENSORCRAFT_NVCC to a usable nvcc, or to NOTFOUND if there is none.
function(tensorcraft_find_nvcc)
  find_program(TENSORCRAFT_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(TENSORCRAFT_NVCC)
    execute_process(COMMAND ${TENSORCRAFT_NVCC} --version OUTPUT_VARIABLE text)
    string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" found "${text}")
    tensorcraft_check_cuda_toolkit("${CMAKE_MATCH_1}")
  endif()
endfunction()
