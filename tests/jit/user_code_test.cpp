// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/user_code.hpp"

#include "tensorcraft/core/error.hpp"
#include "tests/support/expect_error.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tensorcraft::jit {
namespace {

TEST(UserCode, ThrowsWhatACallerCanRead) {
  int runs = 0;
  run_user_code("f", [&] { ++runs; });
  EXPECT_EQ(runs, 1);
  EXPECT_THROW(run_user_code("f", [] { throw std::out_of_range("a"); }), std::out_of_range);
  test::expect_error(
      ErrorKind::key, [] { run_user_code("f", [] { fail(ErrorKind::key, "b"); }); }, "b");
  test::expect_error(
      ErrorKind::type, [] { run_user_code("f", [] { throw "text"; }); },
      "f: throws char const*, which is no std::exception; throw tensorcraft::Error "
      "or a std::runtime_error");
}

}  // namespace
}  // namespace tensorcraft::jit
