// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/dtype.hpp"
#include "tensorcraft/runtime/safetensors/refusal.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tensorcraft::safetensors {

inline constexpr uint64_t kLengthBytes = 8;
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr size_t kMaxFileRank = 32;

// One tensor of a file. Offsets count from the end of the header.
struct TensorInfo {
  std::string name;
  std::string_view format;     // the file's word, "F32"
  std::optional<DType> dtype;  // none if the library has no such type (F64, U16, ...)
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;

  uint64_t nbytes() const { return end - begin; }
};

// Holds a parsed header: tensors in the order of their data, which they fill without gap or
// overlap.
struct Header {
  std::vector<TensorInfo> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
  uint64_t data_offset = 0;  // of the first tensor's first byte in the file
};

// "F32, F16, ...": the types a tensor can be loaded with.
std::string loadable_formats();

// How many bytes of the file parse_header() wants, given the first eight or all of a shorter file.
// A length that no header may have gives just those, enough for parse_header() to refuse it.
uint64_t header_extent(std::span<const std::byte> first_bytes, uint64_t file_size);

// Checks every rule of the format on the first bytes of a file, with no access to the rest. Never
// throws but for memory.
std::variant<Header, Refused> parse_header(std::span<const std::byte> first_bytes,
                                           uint64_t file_size);

// The tensor-to-shard map of an index file, in its order; names of shards are plain file names.
using ShardMap = std::vector<std::pair<std::string, std::string>>;
std::variant<ShardMap, Refused> parse_index(std::string_view text);

}  // namespace tensorcraft::safetensors
