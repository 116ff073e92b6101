# Compiles through ccache if it is installed; a launcher given by the user stays. Names below the
# source folder count from there, so a copy of it elsewhere, as the wheel is built from, finds what
# was compiled here.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(settings CCACHE_BASEDIR=${CMAKE_CURRENT_SOURCE_DIR} CCACHE_SLOPPINESS=pch_defines,time_macros)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    list(APPEND settings CCACHE_NOHASHDIR=1)  # debuggers ask which folder a file was compiled in
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER env ${settings} ${CCACHE_PROGRAM})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # or ccache would not see through one
elseif(CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)  # a launcher may know nothing of them
endif()
