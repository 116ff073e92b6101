# Third-party libraries, all private: none appears in an installed header or as a link dependency.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
set(Boost_USE_STATIC_LIBS ON)  # users have no Boost
find_package(Boost REQUIRED COMPONENTS context)
# The database of what is tuned. Static: users need no SQLite, and one of theirs never meets ours.
set(shared_first ${CMAKE_FIND_LIBRARY_SUFFIXES})
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
find_package(SQLite3 REQUIRED)
set(CMAKE_FIND_LIBRARY_SUFFIXES ${shared_first})

add_library(tensorcraft_dependencies INTERFACE)
target_include_directories(tensorcraft_dependencies INTERFACE ${XXHASH_INCLUDE})
target_link_libraries(tensorcraft_dependencies INTERFACE
  fmt::fmt-header-only spdlog::spdlog_header_only nlohmann_json::nlohmann_json Threads::Threads Boost::context
  SQLite::SQLite3 ${CMAKE_DL_LIBS} m)

# oneDNN is opened at run time; only its header is needed to build.
if(TENSORCRAFT_WITH_ONEDNN)
  find_package(dnnl 3 CONFIG QUIET)
  if(dnnl_FOUND)
    get_target_property(onednn_include DNNL::dnnl INTERFACE_INCLUDE_DIRECTORIES)
    target_include_directories(tensorcraft_dependencies SYSTEM INTERFACE ${onednn_include})
    target_compile_definitions(tensorcraft_dependencies INTERFACE TENSORCRAFT_ONEDNN=1)
  endif()
  message(STATUS "TensorCraft: oneDNN headers ${dnnl_FOUND} ${dnnl_DIR}")
endif()

# NVTX is headers alone, of a CUDA toolkit or of Python's package nvidia-nvtx. They are linked into a
# folder of their own, so that nothing else of a toolkit is found by accident.
file(GLOB nvtx_hints "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages" /usr/local/cuda)
find_path(NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${nvtx_hints} ${CMAKE_PREFIX_PATH}  # that of a build for a wheel
          PATH_SUFFIXES include nvidia/cu13/include nvidia/nvtx/include)
if(NVTX_INCLUDE)
  set(nvtx_links "${PROJECT_BINARY_DIR}/nvtx")
  file(MAKE_DIRECTORY "${nvtx_links}")
  file(CREATE_LINK "${NVTX_INCLUDE}/nvtx3" "${nvtx_links}/nvtx3" SYMBOLIC)
  target_include_directories(tensorcraft_dependencies SYSTEM INTERFACE "${nvtx_links}")
  target_compile_definitions(tensorcraft_dependencies INTERFACE TENSORCRAFT_NVTX=1)
endif()
message(STATUS "TensorCraft: headers of NVTX ${NVTX_INCLUDE}")
