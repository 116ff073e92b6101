# The installed package: find_package(tensorcraft) reads cmake/tensorcraft-config.cmake, which says what it gives.
include(CMakePackageConfigHelpers)
set(tensorcraft_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tensorcraft)
install(TARGETS tensorcraft tensorcraft_kernels EXPORT tensorcraft FILE_SET HEADERS)
install(EXPORT tensorcraft NAMESPACE tensorcraft:: FILE tensorcraft-targets.cmake
        DESTINATION ${tensorcraft_cmake_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tensorcraft-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tensorcraft-config-version.cmake
              cmake/tensorcraft-config.cmake cmake/tensorcraft-operator.cmake cmake/operator.cpp.in cmake/embed.cmake
        DESTINATION ${tensorcraft_cmake_dir})
# The race library, for kernels of users' own: cmake --build BUILD --target tensorcraft_race, then
# cmake --install BUILD --component race. Nothing else builds or installs it.
if(TARGET tensorcraft_race)
  install(TARGETS tensorcraft_race EXPORT tensorcraft_race COMPONENT race EXCLUDE_FROM_ALL)
  install(EXPORT tensorcraft_race NAMESPACE tensorcraft:: FILE tensorcraft-race.cmake
          DESTINATION ${tensorcraft_cmake_dir} COMPONENT race EXCLUDE_FROM_ALL)
endif()
