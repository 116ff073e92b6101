// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"

#include <string>

#include <gtest/gtest.h>

namespace tensorcraft::test {

// The call throws Error of this kind with exactly this text.
template <class Call>
void expect_error(ErrorKind kind, Call&& call, const std::string& text) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(to_string(e.kind()), to_string(kind));
    EXPECT_EQ(std::string(e.what()), text);
    return;
  }
  ADD_FAILURE() << "nothing was thrown; expected: " << text;
}

}  // namespace tensorcraft::test
