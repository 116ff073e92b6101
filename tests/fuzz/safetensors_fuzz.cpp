// SPDX-License-Identifier: Apache-2.0
// The fuzz target: one function over a byte range, for libFuzzer and for safetensors_mutate.cpp.
#include "tensorcraft/runtime/safetensors/parser.hpp"

#include <cstdlib>
#include <limits>

namespace {

using namespace tensorcraft::safetensors;

void require(bool holds) {
  if (!holds) std::abort();
}

// Every user of an accepted header relies on this.
void check_accepted(const Header& header, uint64_t file_size) {
  uint64_t filled = 0;
  for (const TensorInfo& info : header.tensors) {
    require(info.begin == filled && info.end >= info.begin);
    require(info.shape.size() <= kMaxFileRank);
    uint64_t elements = 1;
    for (const int64_t size : info.shape) {
      require(size >= 0);
      require(!__builtin_mul_overflow(elements, uint64_t(size), &elements));
    }
    if (info.dtype) require(elements * tensorcraft::dtype_bytes(*info.dtype) == info.nbytes());
    filled = info.end;
  }
  require(header.data_offset + filled == file_size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  require(header_extent(bytes, size) <= size);
  const auto result = parse_header(bytes, size);
  if (const auto* header = std::get_if<Header>(&result)) check_accepted(*header, size);
  if (const auto* refused = std::get_if<Refused>(&result)) {
    require(!refused->message.empty() && !to_string(refused->reason).empty());
    // A larger file must not make the parser read past the bytes it was given.
    parse_header(bytes, std::numeric_limits<uint64_t>::max());
  }
  const auto index = parse_index({reinterpret_cast<const char*>(data), size});
  if (const auto* map = std::get_if<ShardMap>(&index))
    for (const auto& [tensor, shard] : *map) require(shard.find('/') == shard.npos);
  return 0;
}
