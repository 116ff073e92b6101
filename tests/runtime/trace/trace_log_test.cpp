// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/trace/trace_log.hpp"

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tensorcraft {
namespace {

using nlohmann::json;
using std::chrono::microseconds;

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The events of a file whose list has no end yet.
std::vector<json> events_of(const std::string& path) {
  std::string text = text_of(path);
  EXPECT_TRUE(text.starts_with("[\n") && text.ends_with(",\n")) << text;
  text.resize(text.size() - 2);
  return json::parse(text + "]").get<std::vector<json>>();
}

TEST(TraceLog, WritesSpansAndInstantsOnTracksWithNames) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("t.json");
  {
    TraceLog log(path);
    log.span("lane \"a\"", "copy", microseconds(1500), microseconds(4000), {{"bytes", "12"}});
    log.instant("decisions", "admit", microseconds(2000));
    log.span("lane \"a\"", "bad \xff text", microseconds(5000), microseconds(5001));
  }
  const std::vector<json> events = events_of(path);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].at("name"), "process_name");
  EXPECT_EQ(events[1].at("args").at("name"), "lane \"a\"");
  EXPECT_EQ(events[2].at("ts"), 1500.0);
  EXPECT_EQ(events[2].at("dur"), 2500.0);
  EXPECT_EQ(events[2].at("args").at("bytes"), "12");
  EXPECT_EQ(events[2].at("tid"), events[1].at("tid"));
  EXPECT_EQ(events[4].at("ph"), "i");
  EXPECT_EQ(events[4].at("ts"), 2000.0);
  EXPECT_NE(events[4].at("tid"), events[2].at("tid"));
  EXPECT_EQ(events[5].at("tid"), events[2].at("tid"));
}

TEST(TraceLog, TakesManyThreadsAndSeveralWritersOfOneFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("t.json");
  constexpr int kThreads = 4, kEvents = 2000;
  {
    TraceLog one(path), other(path);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEvents; ++i)
          (t % 2 ? one : other)
              .span(std::to_string(t), std::to_string(i), microseconds(i), microseconds(i + 1));
      });
  }
  std::set<std::pair<int, std::string>> seen;
  for (const json& event : events_of(path))
    if (event.at("ph") == "X") seen.emplace(event.at("tid"), event.at("name"));
  EXPECT_EQ(seen.size(), size_t(2 * kEvents));  // each writer numbers its tracks from 1
}

TEST(TraceLog, LeavesWhatWasFlushed) {
  const test::TemporaryFolder folder;
  TraceLog log(folder.file("t.json"));
  log.instant("a", "before", TraceLog::now());
  log.flush();
  EXPECT_EQ(events_of(folder.file("t.json")).size(), 3u);
}

TEST(TraceLog, SaysWhatFileItCannotWrite) {
  test::expect_error(
      ErrorKind::io, [] { TraceLog("/no/such/folder/t.json"); },
      "trace: /no/such/folder/t.json cannot be written: No such file or directory");
}

TEST(TraceLog, AFullDiskEndsTheTraceAndNotTheProgram) {
  TraceLog log("/dev/full");
  for (int i = 0; i < 5000; ++i) log.instant("a", "event", TraceLog::now());
  log.flush();
}

}  // namespace
}  // namespace tensorcraft
