// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/error.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace tensorcraft::test {

// "\"name\":{...}", one member of a header's object.
inline std::string tensor_entry(std::string_view name, std::string_view dtype,
                                std::string_view shape, uint64_t begin, uint64_t end) {
  return join('"', name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape, ",\"data_offsets\":[",
              begin, ',', end, "]}");
}

// The bytes of a file with this header and this many data bytes 0, 1, 2, ...
inline std::string file_bytes(std::string_view header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += header;
  for (size_t i = 0; i < data_bytes; ++i) bytes += char(i);
  return bytes;
}

using test::TemporaryFolder;

// The Error that a call throws, or nothing.
template <class Call>
std::optional<Error> error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace tensorcraft::test
