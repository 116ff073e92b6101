// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorcraft::test {

// Expects an error of a kind whose text has `part` in it.
template <class Action>
void expect_mention(ErrorKind kind, Action action, const std::string& part) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace tensorcraft::test
