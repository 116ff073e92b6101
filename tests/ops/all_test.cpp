// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/all.hpp"

#include "tensorcraft/ops/registry.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

// A library that adds an operator is built and loaded by tests/package and
// tests/python/test_library.py.
namespace tensorcraft {
namespace {

using test::expect_error;

TEST(AddOperators, LeavesAloneWhatIsThere) {
  const size_t count = operators().size();
  add_operators({&find_operator("softmax"), &find_operator("gemm")});
  add_operators({});
  EXPECT_EQ(operators().size(), count);
}

TEST(AddOperators, RefusesANameThatIsTakenAndAddsNothing) {
  const size_t count = operators().size();
  expect_error(
      ErrorKind::value, [] { add_operators(ops::l2_normalize()); },
      "add_operators: an operator is named \"l2_normalize\" already; give yours another name");
  EXPECT_EQ(operators().size(), count);
}

TEST(AddLibrary, SaysWhatIsWrongWithAFile) {
  expect_error(
      ErrorKind::not_found, [] { add_library("/nowhere/librow_center.so"); },
      "add_library: there is no file \"/nowhere/librow_center.so\"");
  const test::TemporaryFolder folder;
  const std::string path = folder.write("text.so", "no library\n");
  try {
    add_library(path);
    ADD_FAILURE() << "loaded a text";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value);
    EXPECT_TRUE(std::string_view(e.what()).starts_with("add_library: cannot load " + path));
  }
}

TEST(AddLibrary, RefusesALibraryOfNoOperators) {
  Dl_info library;  // wherever it was carried
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&operators), &library), 0);
  const std::string path = library.dli_fname;
  expect_error(
      ErrorKind::value, [&] { add_library(path); },
      "add_library: " + path +
          " has no function tensorcraft_built_for; make the library with "
          "tensorcraft_add_operator() of the CMake package");
}

}  // namespace
}  // namespace tensorcraft
