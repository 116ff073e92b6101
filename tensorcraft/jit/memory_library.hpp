// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace tensorcraft::jit {

// A shared library that is no file, loaded from memory: nothing can change it between check and
// use. It is loaded as long as the object. Only in the race library it keeps a descriptor, from
// which reports of a race read lines.
class MemoryLibrary {
 public:
  // `what` begins the text of errors: kind io if there is no memory file, compile if the image
  // cannot be loaded.
  MemoryLibrary(const std::string& name, std::string_view image, std::string_view what);
  ~MemoryLibrary() { close(); }
  MemoryLibrary(const MemoryLibrary&) = delete;
  MemoryLibrary& operator=(const MemoryLibrary&) = delete;

  // Null if there is none.
  void* symbol(const std::string& name) const;
  // Keeps it loaded until the process ends.
  void stay_loaded() {
    handle_ = nullptr;
    file_ = -1;
  }

 private:
  void close();

  void* handle_ = nullptr;
  int file_ = -1;
};

// The file that the library itself was loaded from, which such images link to; empty if it is part
// of a program.
std::string own_library();

}  // namespace tensorcraft::jit
