// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/config.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

// Processes tell of themselves for `tensorcraft top`: each that has the setting `status` on writes
// a small file once a second. There is no server.
namespace tensorcraft::status {

// One thing that a process has: its pool of a device, a scheduler.
struct Item {
  // "memory", "scheduler"; its name; and its numbers by their names.
  std::string kind, name;
  std::vector<std::pair<std::string, double>> numbers;
};

// A process as its file shows it.
struct Process {
  // As the operating system knows it, and when it began to tell and last told, since 1970.
  int64_t pid = 0;
  std::string program;
  double begun = 0, written = 0;  // seconds
  std::vector<Item> items;
};

// Where the files are: of this user alone. Empty without a cache folder.
std::string folder(const Config& config = tensorcraft::config());
// The processes that tell something and live, by pid. What cannot be read is left out; files of
// processes that ended are removed.
std::vector<Process> read_all(const std::string& folder);

// Adds what `items` returns to what this process tells, until it goes. `items` is called by another
// thread, once a second and only if the setting is on.
class Source {
 public:
  explicit Source(std::function<std::vector<Item>()> items);
  ~Source();  // `items` is not called later
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

 private:
  uint64_t id_ = 0;  // 0: the setting is off
};

}  // namespace tensorcraft::status
