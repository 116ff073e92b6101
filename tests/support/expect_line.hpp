// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/source_location.hpp"

#include <string_view>

#include <gtest/gtest.h>

namespace tensorcraft::test {

// The call, which stands on the line of this one, throws an Error that names that line.
template <class Call>
void expect_line(Call&& call, std::source_location here = std::source_location::current()) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.where().line(), here.line()) << e.what();
    EXPECT_EQ(std::string_view(e.where().file_name()), here.file_name()) << e.what();
    return;
  }
  ADD_FAILURE() << here.file_name() << ':' << here.line() << ": nothing was thrown";
}

}  // namespace tensorcraft::test
