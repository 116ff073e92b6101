// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error_reporter.hpp"

#include "tensorcraft/core/error.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tensorcraft {
namespace {

TEST(ErrorReporter, HasTheKindAndTheSentence) {
  const ErrorReporter reporter(Error(ErrorKind::value, "gemm: a has 3 dimensions"));
  EXPECT_EQ(reporter.kind(), "value");
  EXPECT_EQ(reporter.message(), "gemm: a has 3 dimensions");
  EXPECT_EQ(reporter.line("tensorcraft"), "tensorcraft: gemm: a has 3 dimensions");
}

TEST(ErrorReporter, TellsARefusalFromWhatTheMachineLacks) {
  const auto refuses = [](ErrorKind kind) { return ErrorReporter(Error(kind, "")).is_refusal(); };
  for (const ErrorKind kind :
       {ErrorKind::value, ErrorKind::type, ErrorKind::index, ErrorKind::key, ErrorKind::axis})
    EXPECT_TRUE(refuses(kind)) << to_string(kind);
  for (const ErrorKind kind :
       {ErrorKind::unsupported, ErrorKind::out_of_memory, ErrorKind::io, ErrorKind::not_found,
        ErrorKind::device_lost, ErrorKind::internal, ErrorKind::kernel_fault})
    EXPECT_FALSE(refuses(kind)) << to_string(kind);
}

TEST(ErrorReporter, AnExceptionOfAnotherLibraryIsInternal) {
  const ErrorReporter reporter(std::runtime_error("basic_string"));
  EXPECT_EQ(reporter.kind(), "internal");
  EXPECT_FALSE(reporter.is_refusal());
  EXPECT_EQ(reporter.line("tool"), "tool: basic_string");
}

}  // namespace
}  // namespace tensorcraft
