# Third-party libraries, all private: none appears in an installed header or as a link dependency.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
set(Boost_USE_STATIC_LIBS ON)  # users have no Boost
find_package(Boost REQUIRED COMPONENTS context)

add_library(tensorcraft_dependencies INTERFACE)
target_include_directories(tensorcraft_dependencies INTERFACE ${XXHASH_INCLUDE})
target_link_libraries(tensorcraft_dependencies INTERFACE
  fmt::fmt-header-only spdlog::spdlog_header_only nlohmann_json::nlohmann_json Threads::Threads Boost::context
  ${CMAKE_DL_LIBS})

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
