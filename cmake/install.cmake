# The installed package: find_package(tensorcraft) gives tensorcraft::tensorcraft and tensorcraft::kernels.
include(CMakePackageConfigHelpers)
set(tensorcraft_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tensorcraft)
install(TARGETS tensorcraft tensorcraft_kernels EXPORT tensorcraft FILE_SET HEADERS)
install(EXPORT tensorcraft NAMESPACE tensorcraft:: FILE tensorcraft-config.cmake
        DESTINATION ${tensorcraft_cmake_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tensorcraft-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tensorcraft-config-version.cmake
        DESTINATION ${tensorcraft_cmake_dir})
