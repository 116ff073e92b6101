// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/simt/instance.hpp"

#include <algorithm>

namespace tensorcraft::simt {
namespace {

bool serves(const Instance& one, std::span<const unsigned char> config) {
  for (size_t i = 0; i < config.size(); ++i)
    if ((one.config[i] ^ config[i]) & ~one.any[i]) return false;
  return true;
}

}  // namespace

const Instance* find(const InstanceList& list, std::span<const DType> types,
                     std::span<const unsigned char> config) {
  for (const Instance& one : list)
    if (std::equal(types.begin(), types.end(), one.types.begin(),
                   one.types.begin() + one.num_types) &&
        serves(one, config))
      return &one;
  return nullptr;
}

bool compiles(DType type) { return type != DType::float16 || kCompiles<f16>; }

}  // namespace tensorcraft::simt
