// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorcraft::safetensors {

// A regular file open for reading, and what it was when it was opened. Moves and copies: none.
class InputFile {
 public:
  // Kind not_found for a missing path, io for no permission or anything but a regular file.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return identity_.size; }
  // Fills `to` from `offset`; kind io with both byte counts if the file ends before.
  void read(void* to, size_t bytes, uint64_t offset) const;
  // Kind io if the path or the open file is no longer what was opened.
  void check_unchanged() const;

 private:
  struct Identity {
    uint64_t size, device, inode;
    int64_t modified_ns;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  Identity identity_of_open_file() const;

  std::string path_;
  int descriptor_;
  Identity identity_{};
};

}  // namespace tensorcraft::safetensors
