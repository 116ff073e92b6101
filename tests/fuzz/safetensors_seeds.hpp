// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The seeds of both fuzzers: right files and known attacks.
namespace tensorcraft::fuzz {

struct Tensor {
  std::string name, dtype, shape, offsets;
};
// A file as the mutator sees it: parts of text, so that one part can be wrong in a right file.
struct File {
  std::vector<Tensor> tensors;
  std::string extra;  // more members, as they stand
  std::string tail;   // after the object
  size_t data_bytes = 0;
  int64_t length_error = 0;  // added to the true length of the header
};

std::string bytes_of(const File& file);
std::vector<File> seeds();

}  // namespace tensorcraft::fuzz
