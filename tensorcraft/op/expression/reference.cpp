// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/expression/evaluate.hpp"

#include "tensorcraft/op/expression/host_functions.hpp"
#include "tensorcraft/op/host/element_bits.hpp"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/device/expression/convert.cuh"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <array>
#include <bit>
#include <optional>
#include <type_traits>

namespace tensorcraft::expression {
namespace {

void reference_astype(const TensorView& out, const TensorView& x) {
  const host::Elements to(out), from(x);
  const bool from_float = is_floating(x.dtype()), to_float = is_floating(out.dtype());
  for (int64_t i = 0; i < out.size(); ++i) {
    if (from_float && to_float)
      to.set(i, from[i]);
    else if (!from_float)
      host::with_element_type(out.dtype(), [&]<class T>(T*) {
        *reinterpret_cast<T*>(to.address(i)) = convert_element<T>(from.integer(i));
      });
    else
      host::with_element_type(out.dtype(), [&]<class T>(T*) {
        if constexpr (std::is_integral_v<T>)
          to.set_integer(i, int64_t(host::integer_of<T>(from[i])));
      });
  }
}

void reference_compare(Operation operation, const TensorView& out, const TensorView& x,
                       const TensorView& y) {
  const host::Elements to(out), a(x), b(y);
  const bool floats = is_floating(x.dtype()) || is_floating(y.dtype());
  for (int64_t i = 0; i < out.size(); ++i)
    to.set_integer(
        i, floats ? holds(operation, a[i], b[i]) : holds(operation, a.integer(i), b.integer(i)));
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

}  // namespace

void reference_step(Operation operation, const TensorView& out, const TensorView& x,
                    const TensorView& y, float parameter) {
  if (operation == Operation::astype) return reference_astype(out, x);
  if (operation >= Operation::equal) return reference_compare(operation, out, x, y);
  const host::Elements to(out), a(x), b(y);
  for (int64_t i = 0; i < out.size(); ++i) {
    if (operation == Operation::nextafter)
      to.set(i, next_value(out.dtype(), float(a[i]), float(b[i])));
    else if (is_floating(out.dtype()))
      to.set(i, compute(operation, a[i], b[i], double(parameter)));
    else
      to.set_integer(i, compute(operation, a.integer(i), b.integer(i)));
  }
}

// The definition: the reference of each step's operator, one after the other, on whole tensors.
void evaluate_reference(const ExpressionProblem& q) {
  const Program& p = q.program;
  const Dims& shape = q.out.shape();
  std::vector<std::optional<TensorView>> slots(kFirstStep + size_t(p.num_steps));
  for (size_t i = 0; i < q.inputs.size(); ++i) slots[i] = q.inputs[i];
  std::array<uint64_t, kMaxNumbers> numbers = p.numbers;
  for (int i = 0; i < p.num_numbers; ++i) {
    const bool is_float = is_floating(p.slot_type(kFirstNumber + i));
    const TensorView one(&numbers[size_t(i)], is_float ? DType::float32 : DType::int64, Dims{});
    slots[kFirstNumber + size_t(i)] = one.broadcast_to(shape);
  }
  std::vector<Tensor> results;
  results.reserve(size_t(p.num_steps));
  for (int i = 0; i < p.num_steps; ++i) {
    const Step& s = p.steps[size_t(i)];
    const Tensor& y = results.emplace_back(DType(s.dtype), shape, Device::cpu());
    slots[kFirstStep + size_t(i)] = y.view();
    const auto slot = [&](int n) -> const TensorView& { return *slots[size_t(n)]; };
    const bool has_number = s.b >= kFirstNumber && s.b < kFirstStep && !s.integer;
    const double parameter =
        has_number ? double(std::bit_cast<float>(uint32_t(numbers[size_t(s.b - kFirstNumber)])))
                   : 0;
    if (Operation(s.operation) == Operation::where)
      reference_where(y, slot(s.a), slot(s.b), slot(s.c));
    else
      reference_step(Operation(s.operation), y, slot(s.a), slot(s.b), float(parameter));
  }
  reference_step(Operation::astype, q.out, results.back(), results.back());
}

}  // namespace tensorcraft::expression
