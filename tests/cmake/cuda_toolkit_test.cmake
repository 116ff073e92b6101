# cmake -DROOT=<repository> -P cuda_toolkit_test.cmake : old toolkits are refused by name, newer ones accepted.
if(VERSION)  # the inner run, with one faked version
  include(${ROOT}/cmake/cuda_toolkit.cmake)
  tensorcraft_check_cuda_toolkit(${VERSION})
  return()
endif()
foreach(version 10.2 11.8 12.0 12.4 12.5 13.0)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DROOT=${ROOT} -DVERSION=${version} -P ${CMAKE_CURRENT_LIST_FILE}
    RESULT_VARIABLE result ERROR_VARIABLE text)
  if(version VERSION_LESS 12.5)
    if(result EQUAL 0 OR NOT text MATCHES "12\\.5" OR NOT text MATCHES "found ${version}")
      message(SEND_ERROR "toolkit ${version} was not refused with both versions named: ${text}")
    endif()
  elseif(NOT result EQUAL 0)
    message(SEND_ERROR "toolkit ${version} was refused: ${text}")
  endif()
endforeach()
