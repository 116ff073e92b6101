// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/expression/evaluate.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/expression/host_functions.hpp"
#include "tensorcraft/op/expression/runs.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <bit>
#include <memory>

namespace tensorcraft::expression {
namespace {

constexpr int64_t kPart = 512;  // elements that pass through the steps at a time

// n floats rounded to a dtype and back.
void round_to(DType dtype, float* values, int64_t n) {
  if (dtype == DType::float32) return;
  uint16_t narrow[kPart];
  host::store_row(narrow, values, dtype, 1, n);
  host::load_row(values, narrow, dtype, 1, n);
}

template <class To, class From>
void convert_values(DType dtype, To* to, const From* from, int64_t n) {
  host::with_element_type(dtype, [&]<class T>(T*) {
    for (int64_t i = 0; i < n; ++i) {
      const T element = convert_element<T>(from[i]);
      if constexpr (FloatingPoint<T>)
        to[i] = To(float(element));
      else
        to[i] = To(element);
    }
  });
}

template <class X>
void compare_values(Operation operation, int64_t* y, const X* a, const X* b, int64_t n) {
  const auto each = [=](auto holds) {
    for (int64_t i = 0; i < n; ++i) y[i] = holds(a[i], b[i]);
  };
  switch (operation) {
    case Operation::equal:
      return each([](X u, X v) { return u == v; });
    case Operation::not_equal:
      return each([](X u, X v) { return u != v; });
    case Operation::less:
      return each([](X u, X v) { return u < v; });
    default:
      return each([](X u, X v) { return u <= v; });
  }
}

// The values of one part of every slot: floats as float, the rest as int64_t. One a thread.
class Machine {
 public:
  explicit Machine(const ExpressionProblem& q) : q_(q), program_(q.program), out_(q.out) {
    const size_t slots = kFirstStep + size_t(program_.num_steps);
    memory_ = std::make_unique_for_overwrite<int64_t[]>(slots * kPart);
    slots_.resize(slots);
    for (size_t i = 0; i < slots; ++i) slots_[i] = memory_.get() + i * kPart;
    for (const TensorView& t : q.inputs) inputs_.emplace_back(t);
    for (int i = 0; i < program_.num_numbers; ++i) fill_number(i);
  }

  void run(int64_t begin, int64_t n) {
    for (int i = 0; i < program_.num_inputs; ++i) read_input(i, begin, n);
    for (int i = 0; i < program_.num_steps; ++i) {
      const Step& s = program_.steps[size_t(i)];
      if (s.integer)
        take<int64_t>(s, kFirstStep + i, n);
      else
        take<float>(s, kFirstStep + i, n);
    }
    const int last = kFirstStep + program_.num_steps - 1;
    if (is_floating(q_.out.dtype()))
      write(out_, begin, n, values<float>(last));
    else
      write(out_, begin, n, values<int64_t>(last));
  }

 private:
  template <class V>
  const V* values(int slot) const {
    return static_cast<const V*>(slots_[size_t(slot)]);
  }
  template <class V>
  V* buffer(int slot) {
    return reinterpret_cast<V*>(memory_.get() + slot * kPart);
  }

  void fill_number(int i) {
    const uint64_t bits = program_.numbers[size_t(i)];
    const int slot = kFirstNumber + i;
    if (is_floating(program_.slot_type(slot)))
      std::fill_n(buffer<float>(slot), kPart, std::bit_cast<float>(uint32_t(bits)));
    else
      std::fill_n(buffer<int64_t>(slot), kPart, int64_t(bits));
  }

  void read_input(int i, int64_t begin, int64_t n) {
    const Runs& t = inputs_[size_t(i)];
    slots_[size_t(i)] = is_floating(t.dtype())
                            ? static_cast<const void*>(read(t, begin, n, buffer<float>(i)))
                            : read(t, begin, n, buffer<int64_t>(i));
  }

  // Step s of operands V into a slot.
  template <class V>
  void take(const Step& s, int slot, int64_t n) {
    const auto operation = Operation(s.operation);
    const DType dtype = DType(s.dtype);
    const V* a = values<V>(operation == Operation::where ? s.b : s.a);
    const V* b = values<V>(operation == Operation::where ? s.c : s.b);
    if (operation == Operation::astype) {
      if (is_floating(dtype))
        convert_values(dtype, buffer<float>(slot), a, n);
      else
        convert_values(dtype, buffer<int64_t>(slot), a, n);
      return;
    }
    if (operation >= Operation::equal && operation != Operation::where)
      return compare_values(operation, buffer<int64_t>(slot), a, b, n);
    V* y = buffer<V>(slot);
    if (operation == Operation::nextafter) return next_values(dtype, buffer<float>(slot), s, n);
    if (operation == Operation::where) {
      const int64_t* condition = values<int64_t>(s.a);
      for (int64_t i = 0; i < n; ++i) y[i] = condition[i] ? a[i] : b[i];
    } else if constexpr (std::is_same_v<V, float>) {
      compute(operation, y, a, b, b[0], n);
    } else {
      compute(operation, y, a, b, n);
    }
    if constexpr (std::is_same_v<V, float>) {
      if (host::is_row_dtype(dtype)) round_to(dtype, y, n);
    } else if (dtype != DType::int64) {
      convert_values(dtype, y, y, n);
    }
  }

  void next_values(DType dtype, float* y, const Step& s, int64_t n) const {
    const float *a = values<float>(s.a), *b = values<float>(s.b);
    for (int64_t i = 0; i < n; ++i) y[i] = next_value(dtype, a[i], b[i]);
  }

  const ExpressionProblem& q_;
  const Program& program_;
  const Runs out_;
  std::unique_ptr<int64_t[]> memory_;
  std::vector<const void*> slots_;
  std::vector<Runs> inputs_;
};

}  // namespace

void evaluate(const ExpressionProblem& q) {
  host::parallel_for(q.out.size(), kGrain, [&](int64_t begin, int64_t end) {
    Machine machine(q);
    for (int64_t at = begin; at < end; at += kPart) machine.run(at, std::min(kPart, end - at));
  });
}

}  // namespace tensorcraft::expression
