// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::jit {

// A folder in which a compiler or another program runs.
class WorkFolder {
 public:
  // One of this process alone, gone with the object. `what` begins the text of errors. Those that
  // killed processes left are removed. Kind io if there is no place for it.
  explicit WorkFolder(std::string_view what);
  // A folder of the user's, made if it is not there, which stays.
  WorkFolder(std::string_view what, const std::string& path);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }
  // A file there, with the folders in its name. Kind io if it cannot be written.
  void write(std::string_view name, std::string_view text) const;
  std::string read(std::string_view name) const;  // empty if there is none
  // Runs a program there and keeps what it says. True if it says all is well; kind io if it cannot
  // be run.
  bool run(const std::vector<std::string>& command) const;
  // Returns the output of all commands.
  std::string log() const { return read(".log"); }

 private:
  const std::string what_;
  std::string path_;
  const bool stays_ = false;
  int lock_ = -1;  // a locked descriptor of the folder, which no killed process has
};

}  // namespace tensorcraft::jit
