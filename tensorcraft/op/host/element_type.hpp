// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/element_type.hpp"
#include "tensorcraft/core/error.hpp"

namespace tensorcraft::host {

using tensorcraft::with_element_type;

// Calls f with a null pointer of the unsigned integer that has the size of a dtype in bytes: for
// elements that are moved and not looked at.
template <class F>
auto with_bits_of_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(static_cast<uint8_t*>(nullptr));
    case 2:
      return f(static_cast<uint16_t*>(nullptr));
    case 4:
      return f(static_cast<uint32_t*>(nullptr));
    case 8:
      return f(static_cast<uint64_t*>(nullptr));
    default:
      fail(ErrorKind::internal, "no dtype has ", bytes, " bytes");
  }
}

// f(to[i], from[i]) for n elements; neighbours apart from the rest, as only those become vector
// code.
template <class To, class From, class F>
void for_each_pair(To* to, int64_t to_stride, const From* from, int64_t from_stride, int64_t n,
                   F&& f) {
  if (to_stride == 1 && from_stride == 1) {
    for (int64_t i = 0; i < n; ++i) f(to[i], from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) f(to[i * to_stride], from[i * from_stride]);
  }
}

}  // namespace tensorcraft::host
