// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tensorcraft::jit {

// A stamp tells that a file changed, by the file system and without reading it.
struct FileStamp {
  std::string path;
  uint64_t device = 0, number = 0;
  int64_t bytes = 0, modified_ns = 0, changed_ns = 0;
};
// None if the file is not there, and while it is so new that a change now could leave the same
// times: file systems count them in steps of up to two seconds.
std::optional<FileStamp> stamp_of(const std::string& path);
// Is the file as it was?
bool holds(const FileStamp& stamp);

}  // namespace tensorcraft::jit
