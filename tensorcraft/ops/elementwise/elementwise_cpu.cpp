// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/problem.hpp"

#include "tensorcraft/op/host/element_bits.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/ops/elementwise/host_functions.hpp"
#include "tensorcraft/ops/elementwise/runs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

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
  // An integer becomes a float by way of float32 anyway.
  const bool by_float = is_floating(q.a.dtype()) || is_floating(q.out.dtype());
  by_float ? convert<float>(q.out, q.a) : convert<int64_t>(q.out, q.a);
}

void reference_astype(const Problem& q) {
  const host::Elements to(q.out), from(q.a);
  const bool from_float = is_floating(q.a.dtype()), to_float = is_floating(q.out.dtype());
  for (int64_t i = 0; i < q.out.size(); ++i) {
    if (from_float && to_float)
      to.set(i, from[i]);
    else if (to_float)
      to.set(i, double(float(from.integer(i))));
    else if (!from_float)
      to.set_integer(i, from.integer(i));
    else
      host::with_element_type(q.out.dtype(), [&]<class T>(T*) {
        if constexpr (std::is_integral_v<T>)
          to.set_integer(i, int64_t(host::integer_of<T>(from[i])));
      });
  }
}

void reference_compare(const Problem& q) {
  const host::Elements to(q.out), a(q.a), b(q.b);
  const bool floats = is_floating(q.a.dtype()) || is_floating(q.b.dtype());
  for (int64_t i = 0; i < q.out.size(); ++i)
    to.set_integer(i, floats ? holds(q.operation, a[i], b[i])
                             : holds(q.operation, a.integer(i), b.integer(i)));
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

void reference_where(const TensorView& out, const TensorView& condition, const TensorView& a,
                     const TensorView& b) {
  const host::Elements to(out), holds(condition), x(a), y(b);
  for (int64_t i = 0; i < out.size(); ++i) {
    const host::Elements& from = holds.integer(i) ? x : y;
    if (is_floating(out.dtype()))
      to.set(i, from[i]);
    else
      to.set_integer(i, from.integer(i));
  }
}

void reference(const Problem& q) {
  if (q.operation == Operation::astype) return reference_astype(q);
  if (q.operation >= Operation::equal) return reference_compare(q);
  const host::Elements to(q.out), a(q.a), b(q.b);
  const size_t bytes = dtype_bytes(q.out.dtype());
  const uint64_t filling = host::element_bits(q.out.dtype(), q.value);
  for (int64_t i = 0; i < q.out.size(); ++i) {
    if (q.operation == Operation::fill)
      std::memcpy(to.address(i), &filling, bytes);
    else if (q.operation == Operation::copy)
      std::memmove(to.address(i), a.address(i), bytes);
    else if (q.operation == Operation::nextafter)
      to.set(i, next_value(q.out.dtype(), float(a[i]), float(b[i])));
    else if (is_floating(q.out.dtype()))
      to.set(i, compute(q.operation, a[i], b[i], double(q.alpha)));
    else
      to.set_integer(i, compute(q.operation, a.integer(i), b.integer(i)));
  }
}

}  // namespace tensorcraft::kernel::elementwise
