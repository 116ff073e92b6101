// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/problem.hpp"

#include "tensorcraft/op/host/element_bits.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/expression/host_functions.hpp"
#include "tensorcraft/op/expression/runs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tensorcraft::kernel::elementwise {
namespace {

// f(y, a, b, n) on blocks of values of type V.
template <class V, class F>
void for_each_block(const Problem& q, F&& f) {
  const Runs a(q.a), b(q.b), out(q.out);
  const bool has_b = num_inputs(q.operation) > 1;
  const bool direct = out.holds<V>();
  host::parallel_for(q.out.size(), kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) V buffers[3][kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      const V* x = read(a, at, n, buffers[0]);
      const V* y = has_b ? read(b, at, n, buffers[1]) : x;
      V* result = direct ? reinterpret_cast<V*>(out.address(at)) : buffers[2];
      f(result, x, y, n);
      if (!direct) write(out, at, n, result);
    }
  });
}

// Bits from one place to another. T has the size of the dtype.
template <class T>
void move_elements(const TensorView& to, const TensorView& from) {
  const Runs target(to), source(from);
  host::parallel_for(to.size(), kGrain, [&](int64_t begin, int64_t end) {
    T buffer[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      T* block = target.is_contiguous() ? reinterpret_cast<T*>(target.address(at)) : buffer;
      source.for_each(at, n, [&](const std::byte* x, int64_t stride, int64_t i, int64_t count) {
        const T* values = reinterpret_cast<const T*>(x);
        if (stride == 1)
          std::memmove(block + i, values, size_t(count) * sizeof(T));
        else
          for (int64_t j = 0; j < count; ++j) block[i + j] = values[j * stride];
      });
      if (target.is_contiguous()) continue;
      target.for_each(at, n, [&](std::byte* x, int64_t stride, int64_t i, int64_t count) {
        T* values = reinterpret_cast<T*>(x);
        for (int64_t j = 0; j < count; ++j) values[j * stride] = block[i + j];
      });
    }
  });
}

void move_elements(const TensorView& to, const TensorView& from) {
  host::with_bits_of_size(dtype_bytes(to.dtype()),
                          [&]<class T>(T*) { move_elements<T>(to, from); });
}

void fill(const Problem& q) {
  uint64_t bits = host::element_bits(q.out.dtype(), q.value);
  const TensorView one(&bits, q.out.dtype(), Dims{});
  move_elements(q.out, one.broadcast_to(q.out.shape()));
}

template <class V>
void convert(const TensorView& to, const TensorView& from) {
  const Runs target(to), source(from);
  const bool direct = target.holds<V>();
  host::parallel_for(to.size(), kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) V buffer[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      V* const block = direct ? reinterpret_cast<V*>(target.address(at)) : buffer;
      const V* values = read(source, at, n, block);
      if (!direct || values != block) write(target, at, n, values);
    }
  });
}

void convert(const Problem& q) {
  const DType from = q.a.dtype(), to = q.out.dtype();
  // A float would round an integer of 32 bits or more before a bfloat16 does.
  const bool is_exact = dtype_bytes(from) < 4 || to != DType::bfloat16;
  const bool by_float = is_floating(from) || (is_floating(to) && is_exact);
  by_float ? convert<float>(q.out, q.a) : convert<int64_t>(q.out, q.a);
}

void reference_copy(const Problem& q) {
  const host::Elements to(q.out), from(q.a);
  const size_t bytes = dtype_bytes(q.out.dtype());
  for (int64_t i = 0; i < q.out.size(); ++i) std::memmove(to.address(i), from.address(i), bytes);
}

}  // namespace

void cpu(const Problem& q) {
  if (q.operation == Operation::fill) return fill(q);
  if (q.operation == Operation::copy) return move_elements(q.out, q.a);
  if (q.operation == Operation::astype) return convert(q);
  if (is_floating(q.out.dtype()))
    for_each_block<float>(q, [&](float* y, const float* a, const float* b, int64_t n) {
      compute(q.operation, y, a, b, q.alpha, n);
    });
  else
    for_each_block<int64_t>(q, [&](int64_t* y, const int64_t* a, const int64_t* b, int64_t n) {
      compute(q.operation, y, a, b, n);
    });
}

void reference(const Problem& q) {
  if (q.operation == Operation::fill) return fill(q);
  if (q.operation == Operation::copy) return reference_copy(q);
  reference_step(q.operation, q.out, q.a, q.b, q.alpha);
}

}  // namespace tensorcraft::kernel::elementwise
