# tensorcraft_threads: what has threads or locks of its own (the driver's layer, the runtime, the compiler's caches, the host's
# threads) under ThreadSanitizer, without operators and without their kernels. Programs link it in place of tensorcraft. Built when
# something asks for it; in a build that has a sanitizer everywhere there is none.
if(CMAKE_CXX_FLAGS MATCHES "sanitize")
  return()
endif()
file(GLOB_RECURSE threads_sources CONFIGURE_DEPENDS tensorcraft/core/*.cpp tensorcraft/cuda/*.cpp tensorcraft/jit/*.cpp
     tensorcraft/runtime/*.cpp tensorcraft/simt/*.cpp)
add_library(tensorcraft_threads STATIC EXCLUDE_FROM_ALL ${threads_sources} tensorcraft/op/host/parallel.cpp ${embedded})
target_compile_options(tensorcraft_threads PRIVATE ${TENSORCRAFT_WARNINGS} PUBLIC -fsanitize=thread -O1 -g1 -UNDEBUG -Wno-tsan)
target_link_options(tensorcraft_threads PUBLIC -fsanitize=thread)
target_compile_definitions(tensorcraft_threads PRIVATE TENSORCRAFT_VERSION="${PROJECT_VERSION}" TENSORCRAFT_SIMT=0)
target_include_directories(tensorcraft_threads PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(tensorcraft_threads PUBLIC tensorcraft_dependencies)
target_precompile_headers(tensorcraft_threads PRIVATE ${TENSORCRAFT_STANDARD_HEADERS})
tensorcraft_together(tensorcraft_threads 6 APART cache.cpp)
add_dependencies(tensorcraft_threads tensorcraft_host)  # one of them makes the text of kernels
