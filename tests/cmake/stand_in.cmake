# What happens without an installed package, of which the project in ${WORK} makes a target or a function.

function(configure folder)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK} -B ${WORK}/${folder} -G Ninja ${ARGN}
                  RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(result "${result}" PARENT_SCOPE)
  set(text "${text}" PARENT_SCOPE)
endfunction()

# A forbidden download is refused by name.
function(expect_forbidden package)
  configure(forbidden -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON -DTENSORCRAFT_FETCH=OFF)
  if(result EQUAL 0 OR NOT text MATCHES "TENSORCRAFT_FETCH[ \n]+is[ \n]+OFF")
    message(SEND_ERROR "a forbidden download of ${package} was not refused by name: ${text}")
  endif()
endfunction()

# What would be downloaded is used; a project of the text given stands for it.
function(expect_download package text_of_project)
  string(TOUPPER ${package} name)
  file(WRITE ${WORK}/stand_in/CMakeLists.txt
       "cmake_minimum_required(VERSION 3.23)\nproject(stand_in LANGUAGES NONE)\n${text_of_project}\n")
  configure(fetched -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON -DFETCHCONTENT_SOURCE_DIR_${name}=${WORK}/stand_in)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "a download of ${package} does not serve: ${text}")
  endif()
endfunction()
