// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <gtest/gtest.h>

#include <cmath>
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

// A contiguous tensor with these elements, on any device.
template <class T>
Tensor tensor_of(DType dtype, const std::vector<T>& elements, const Dims& shape, Device device) {
  Tensor t(dtype, shape, device);
  t.copy_from_host(elements.data(), t.nbytes());
  return t;
}

inline Tensor integers(const std::vector<int32_t>& elements, Device device = Device::cpu()) {
  return tensor_of<int32_t>(DType::int32, elements, {int64_t(elements.size())}, device);
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

// Likewise, rounded to any dtype.
inline Tensor normal_tensor(const Dims& shape, DType dtype = DType::float32, unsigned seed = 1) {
  Tensor t(dtype, shape);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const host::Elements elements(t.view());
  for (int64_t i = 0; i < t.size(); ++i) elements.set(i, normal(random));
  return t;
}

// The elements of a tensor of any dtype and device.
inline std::vector<double> doubles(const Tensor& t) {
  const Tensor host = t.to(Device::cpu());
  const host::Elements elements(host.view());
  std::vector<double> all;
  for (int64_t i = 0; i < host.size(); ++i) all.push_back(elements[i]);
  return all;
}

inline void expect_close(const Tensor& x, const Tensor& y, double relative, double absolute) {
  const auto got = doubles(x), want = doubles(y);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - want[i]), absolute + relative * std::abs(want[i])) << "at " << i;
}

// The devices that run operators without a GPU: the host, and the emulator if it is built.
inline std::vector<Device> places() {
  std::vector<Device> all = {Device::cpu()};
  if (devices().back() == Device::simt()) all.push_back(Device::simt());
  return all;
}

}  // namespace tensorcraft::test
