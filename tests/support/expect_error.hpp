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

// Likewise if a part of the text is enough.
template <class Call>
void expect_error_with(ErrorKind kind, const std::string& part, Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(to_string(e.kind()), to_string(kind));
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
        << e.what() << "\nwithout " << part;
    return;
  }
  ADD_FAILURE() << "nothing was thrown; expected: " << part;
}

}  // namespace tensorcraft::test
