# find_package(tensorcraft): tensorcraft::tensorcraft, tensorcraft::kernels, tensorcraft_add_operator(), and
# tensorcraft::race if that library was installed too (docs/first_kernel.md).
include(${CMAKE_CURRENT_LIST_DIR}/tensorcraft-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/tensorcraft-race.cmake OPTIONAL)
include(${CMAKE_CURRENT_LIST_DIR}/tensorcraft-operator.cmake)
