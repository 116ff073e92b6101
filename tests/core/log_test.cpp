// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/log.hpp"

#include "tensorcraft/core/version.hpp"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

template <class Call>
std::string written_by(Call&& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Log, WritesWhatTheLevelLetsThrough) {
  const std::string text = written_by([] {
    log_error("an {error}");
    log_warn("a warning");
    log_info("some information");
    log_debug("details");
  });
  EXPECT_EQ(count(text, "an {error}"), log_enabled(LogLevel::error));
  EXPECT_EQ(count(text, "a warning"), log_enabled(LogLevel::warn));
  EXPECT_EQ(count(text, "some information"), log_enabled(LogLevel::info));
  EXPECT_EQ(count(text, "details"), log_enabled(LogLevel::debug));
  EXPECT_FALSE(log_enabled(LogLevel::off));
  if (!std::getenv("TENSORCRAFT_LOG") && config().log == LogLevel::warn) {
    EXPECT_EQ(count(text, "[tensorcraft]"), 2u) << text;
  }
}

TEST(Log, WarnsOnceForAKey) {
  const std::string text = written_by([] {
    for (int i = 0; i < 3; ++i) log_warn_once("log_test first", "the first");
    log_warn_once("log_test second", "the second");
  });
  EXPECT_EQ(count(text, "the first"), log_enabled(LogLevel::warn)) << text;
  EXPECT_EQ(count(text, "the second"), log_enabled(LogLevel::warn)) << text;
}

TEST(Version, HasThreeNumbers) { EXPECT_EQ(count(std::string(version()), "."), 2u); }

}  // namespace
}  // namespace tensorcraft
