// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <random>
#include <vector>

namespace tensorcraft::test {

// The elements of a contiguous tensor, on any device.
template <class T = float>
std::vector<T> values(const Tensor& t) {
  std::vector<T> all(size_t(t.size()));
  t.copy_to_host(all.data(), t.nbytes());
  return all;
}

// An element of a float32 tensor whose memory the host sees.
inline float at(const Tensor& t, int64_t i) { return t.data_as<float>()[i]; }

// 0, 1, 2, ... in float32, on a device whose memory the host sees.
inline Tensor counting_tensor(const Dims& shape, Device device = Device::cpu()) {
  Tensor t(DType::float32, shape, device);
  for (int64_t i = 0; i < t.size(); ++i) t.data_as<float>()[i] = float(i);
  return t;
}

// float32 on a device whose memory the host sees.
inline Tensor normal_tensor(const Dims& shape, std::mt19937& random, float mean = 0,
                            float deviation = 1, Device device = Device::cpu()) {
  Tensor t(DType::float32, shape, device);
  std::normal_distribution<float> normal(mean, deviation);
  for (int64_t i = 0; i < t.size(); ++i) t.data_as<float>()[i] = normal(random);
  return t;
}

// The devices that run operators without a GPU: the host, and the SIMT device if it is built.
inline std::vector<Device> places() {
  std::vector<Device> all = {Device::cpu()};
  if (devices().back() == Device::simt()) all.push_back(Device::simt());
  return all;
}

}  // namespace tensorcraft::test
