// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/kernels/launch.cuh"
#include "tensorcraft/tensorcraft.hpp"

#include <functional>
#include <string>
#include <vector>

// What the comparisons of launchers and library share: arrays on the GPU, and the report.
namespace aot_routes {

using namespace tensorcraft;
namespace tk = tensorcraft::kernels;

inline const Device kGpu = Device::cuda(0);

inline DType dtype_of(float) { return DType::float32; }
inline DType dtype_of(bf16) { return DType::bfloat16; }
inline DType dtype_of(f16) { return DType::float16; }
inline DType dtype_of(int32_t) { return DType::int32; }
inline DType dtype_of(int64_t) { return DType::int64; }

// Values of a fixed pseudo-random sequence in [-2, 2), or indices in [0, limit).
template <class T>
Tensor filled(const Dims& shape, uint32_t seed, uint32_t limit = 4096) {
  Tensor t(dtype_of(T{}), shape, kGpu);
  std::vector<T> values(size_t(t.size()));
  uint32_t state = seed * 2654435761u + 1;
  for (T& x : values) {
    state = state * 1664525u + 1013904223u;
    if constexpr (std::is_integral_v<T>)
      x = T((state >> 8) % limit);
    else
      x = T(float(state >> 8) * 0x1p-22f - 2.0f);
  }
  t.copy_from_host(values.data(), t.nbytes());
  return t;
}

template <class T>
T* data(const Tensor& t) {
  return t.data_as<T>();
}

inline cudaStream_t stream() { return current_stream(0).handle(); }

// One call by both routes. Both write `outputs`; the launcher returns the variant that it launched,
// the library is given that name. `prepare` runs before each of the two calls that are compared.
struct Comparison {
  std::string name;
  std::vector<Tensor*> outputs;
  std::function<std::string_view()> launcher;
  std::function<void(std::string_view)> library;
  std::function<void()> prepare = [] {};
};

// Prints a row of JSON a comparison: whether the bits are equal, and the time of both routes.
class Report {
 public:
  void compare(const Comparison& comparison);
  bool all_equal() const { return all_equal_; }

 private:
  int count_ = 0;
  bool all_equal_ = true;
};

inline constexpr int kRounds = 15;

// Each compares some operators, one file each.
void compare_rows(Report& report);
void compare_codes(Report& report);
void compare_channels(Report& report);
void compare_sums(Report& report);
void compare_products(Report& report);
void compare_elements(Report& report);
void compare_moves(Report& report);
void compare_convolutions(Report& report);

}  // namespace aot_routes
