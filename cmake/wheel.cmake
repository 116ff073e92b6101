# Inside a wheel build: the library goes beside the extension with its headers, which modules of users
# include, and the bindings find the target of this build instead of an installed package.
# A wheel has no links: a file of the full version beside it would be the library a second time.
set_target_properties(tensorcraft PROPERTIES VERSION 0)
install(TARGETS tensorcraft
        LIBRARY DESTINATION tensorcraft COMPONENT python NAMELINK_SKIP
        FILE_SET HEADERS DESTINATION tensorcraft/include COMPONENT python)
set(tensorcraft_DIR ${CMAKE_CURRENT_BINARY_DIR}/find)
file(WRITE ${tensorcraft_DIR}/tensorcraft-config.cmake "")  # the target exists already
add_subdirectory(bindings/python)
