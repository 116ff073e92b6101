// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/reduce/problem.hpp"

#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/row_sums.hpp"
#include "tensorcraft/ops/reduce/plan.h"
#include "tensorcraft/ops/reduce/reducer.cuh"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace tensorcraft::kernel::reduce {
namespace {

constexpr int64_t kChunk = 2048;      // elements that are converted at once
constexpr int64_t kPart = 64 * 1024;  // elements of a part of a long reduction
constexpr int64_t kWidth = 2048;      // neighbouring outputs that are computed together
constexpr int64_t kLines = 1024;      // lines of those, at least, in a part
constexpr int64_t kMostLines = 4096;  // and at most, as a variance takes them one by one

// n elements of x from `at` on, `stride` apart, as float or int64_t, in their place or in `to`; a
// bool becomes 0 or 1.
template <class V>
const V* load(V* to, const Problem& q, int64_t at, int64_t stride, int64_t n) {
  const DType dtype = q.x.dtype();
  const std::byte* from = q.x.data_as<const std::byte>() + at * int64_t(dtype_bytes(dtype));
  constexpr DType same = std::is_same_v<V, float> ? DType::float32 : DType::int64;
  if (dtype == same && stride == 1) return reinterpret_cast<const V*>(from);
  if constexpr (std::is_same_v<V, float>) {
    host::load_row(to, from, dtype, stride, n);
  } else if (dtype == DType::bool_) {
    host::for_each_pair(to, 1, from, stride, n, [](V& y, std::byte x) { y = x != std::byte(0); });
  } else {
    host::with_element_type(dtype, [&]<class T>(T*) {
      if constexpr (std::is_integral_v<T>)
        host::for_each_pair(to, 1, reinterpret_cast<const T*>(from), stride, n,
                            [](V& y, T x) { y = x; });
    });
  }
  return to;
}

// The sum of f(x[i]), in a few partial sums.
template <class F>
float sum_of(const float* x, int64_t n, F f) {
  constexpr int kSums = 32;
  float sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int k = 0; k < kSums; ++k) sums[k] += f(x[i + k]);
  for (; i < n; ++i) sums[0] += f(x[i]);
  float sum = 0;
  for (const float one : sums) sum += one;
  return sum;
}

// n more factors, many of which are multiplied side by side.
template <class R, class V>
void multiply(typename R::State& s, const V* x, int64_t n) {
  constexpr int kAtOnce = 32;
  int64_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) R::template add<kAtOnce>(s, x + i, i, 1);
  for (; i < n; ++i) add_one<R>(s, x[i], i);
}

// Takes up to kChunk elements, from the first one on. No sum exceeds the largest float unless the
// variance does.
template <class R>
typename R::State moments(const float* x, int64_t n) {
  constexpr float kShare = 1.0f / kChunk;
  const float whole = float(kChunk) / float(n), first = x[0] * (R::kUnit * kShare);
  const auto share = [=](float v) { return v * (R::kUnit * kShare) - first; };
  const float mean = sum_of(x, n, share) * whole;
  const float squares = sum_of(x, n, [=](float v) {
    const float apart = share(v) * float(kChunk) - mean;
    return apart * apart * kShare;
  });
  return {float(n), mean, squares * whole, x[0] * R::kUnit};
}

// One more element for each of n neighbours, all of which have seen as many.
template <class R, class State>
void add_to_moments(State* s, const float* x, int64_t n) {
  const float count = s[0].count + 1, share = 1 / count, rest = 1 - share;
  for (int64_t e = 0; e < n; ++e) {
    const float pivot = s[0].count == 0 ? x[e] * R::kUnit : s[e].pivot;
    const float apart = (x[e] * R::kUnit - pivot) - s[e].mean;
    const float of_one = x[e] - x[e];  // 0, or NaN of an infinity
    s[e] = {s[e].count, s[e].mean + apart * share,
            (s[e].variance * rest + of_one) + apart * (apart * (rest * share)), pivot};
  }
  for (int64_t e = 0; e < n; ++e) s[e].count = count;
}

template <Operation operation, class V>
constexpr bool is_float_product = operation == Operation::float_prod ||
                                  (operation == Operation::prod && std::is_same_v<V, float>);

// n neighbours, the first of which has this index in the reduction.
template <Operation operation, class V, class State>
void add_chunk(State& s, const V* x, int64_t n, int64_t index) {
  using R = Reducer<V, operation>;
  constexpr bool is_float = std::is_same_v<V, float>;
  if constexpr (is_float_product<operation, V>) {
    multiply<R>(s, x, n);
  } else if constexpr (is_float && operation == Operation::max) {
    s = R::combine(s, {host::row_max(x, n)});
  } else if constexpr (is_float && is_spread(operation)) {
    s = R::combine(s, moments<R>(x, n));
  } else if constexpr (is_float && operation == Operation::argmax) {
    const float top = host::row_max(x, n);
    if (!R::is_better(top, s.value)) return;
    s = {index + host::row_find(x, top, n), top};
  } else {
    for (int64_t i = 0; i < n; ++i) add_one<R>(s, x[i], index + i);
  }
}

// x[e] to s[e], which both lie side by side.
template <Operation operation, class V, class State>
void add_line(State* s, const V* x, int64_t n, int64_t index) {
  constexpr bool is_max = operation == Operation::max, is_min = operation == Operation::min;
  if constexpr (std::is_same_v<V, float> && (is_max || is_min)) {
    static_assert(sizeof(State) == sizeof(float));
    (is_max ? host::row_maximum : host::row_minimum)(&s->value, x, n);
  } else if constexpr (std::is_same_v<V, float> && is_spread(operation)) {
    add_to_moments<Reducer<V, operation>>(s, x, n);
  } else {
    for (int64_t e = 0; e < n; ++e) add_one<Reducer<V, operation>>(s[e], x[e], index);
  }
}

// Outputs are taken one by one, or kWidth neighbours if they lie side by side; long reductions
// in parts, so that few outputs use every core too. Parts depend on sizes alone.
template <Operation operation, class V>
class Reduction {
 public:
  using R = Reducer<V, operation>;
  using State = typename R::State;

  explicit Reduction(const Problem& q) : q_(q), p_(params(q)) {
    is_column_ = column_refusal(p_).empty();
    if (is_column_) p_ = column_params(p_);
    inner_ = is_column_ ? p_.inner : 1;
    width_ = std::min(inner_, kWidth);
    blocks_ = div_ceil(inner_, width_);
    length_ = p_.segments * p_.cols;
    each_ = is_column_ ? std::clamp(kPart / width_, kLines, kMostLines) : kPart;
    parts_ = std::max<int64_t>(1, div_ceil(length_, each_));
    states_.assign(size_t(p_.rows * inner_ * parts_), R::identity());
  }

  void run() {
    const int64_t job = std::max<int64_t>(1, std::min(each_, length_) * width_);
    const int64_t grain = std::max<int64_t>(1, kPart / 4 / job);
    host::parallel_for(p_.rows * blocks_ * parts_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        add_part(i / parts_ / blocks_, i / parts_ % blocks_ * width_, i % parts_);
    });
    host::parallel_for(p_.rows, std::max<int64_t>(1, kChunk / inner_),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t row = begin; row < end; ++row) finish(row);
                       });
  }

 private:
  // Can one element settle the result, so that the rest need not be read?
  static constexpr bool kDecides = operation == Operation::any || operation == Operation::all;

  // Are elements added in float?
  static constexpr bool kAdds =
      std::is_same_v<V, float> && (operation == Operation::sum || operation == Operation::mean);

  State* states(int64_t row, int64_t column, int64_t part) {
    return states_.data() + (row * parts_ + part) * inner_ + column;
  }

  void add_part(int64_t row, int64_t column, int64_t part) {
    State* const s = states(row, column, part);
    const int64_t base = row_offset(p_, Params::kX, row) + column,
                  n = std::min(width_, inner_ - column);
    const int64_t end = std::min(length_, (part + 1) * each_);
    alignas(64) V buffer[kChunk];
    const bool adds_lines = kAdds && is_column_ && end - part * each_ > host::kFloatChain;
    host::RowSums lines(adds_lines ? n : 0);
    double total = 0;  // of a row
    for (int64_t i = part * each_; i < end;) {
      const int64_t col = i % p_.cols, at = base + row_offset(p_, Params::kSegments, i / p_.cols);
      const int64_t here = std::min({p_.cols - col, end - i, kDecides ? kChunk / 8 : kChunk});
      if (is_column_) {
        for (int64_t line = 0; line < here; ++line) {
          const V* x = load(buffer, q_, at + (col + line) * p_.x_step, 1, n);
          if constexpr (kAdds) {
            adds_lines ? lines.add(x) : host::row_add(&s->value, x, n);
          } else {
            add_line<operation>(s, x, n, i + line);
          }
        }
      } else {
        const V* x = load(buffer, q_, at + col * p_.x_step, p_.x_step, here);
        if constexpr (kAdds)
          total += double(host::row_sum(x, here));
        else
          add_chunk<operation>(*s, x, here, i);
        if constexpr (kDecides)
          if (s->found) return;
      }
      i += here;
    }
    if constexpr (kAdds) {
      static_assert(sizeof(State) == sizeof(float));
      lines.divided(&s->value, 1);
      if (!is_column_) s->value = float(total);
    }
  }

  void finish(int64_t row) {
    for (int64_t column = 0; column < inner_; ++column) {
      for (int64_t step = 1; step < parts_; step *= 2)  // neighbours, then pairs of them
        for (int64_t part = 0; part + step < parts_; part += 2 * step) {
          State& s = *states(row, column, part);
          s = R::combine(s, *states(row, column, part + step));
        }
      const auto value = R::finish(*states(row, column, 0), p_);
      const int64_t at = row_offset(p_, Params::kOut, row) + column * p_.out_inner;
      host::with_element_type(q_.out.dtype(), [&]<class T>(T*) {
        if constexpr (std::is_constructible_v<T, decltype(value)>)
          q_.out.data_as<T>()[at] = converted<T>(value);
      });
    }
  }

  const Problem& q_;
  CallParams p_;
  bool is_column_;
  int64_t inner_, width_, blocks_, length_, each_, parts_;
  std::vector<State> states_;
};

template <Operation operation>
void run(const Problem& q) {
  constexpr bool of_floats = operation != Operation::float_prod;
  constexpr bool of_integers = operation != Operation::mean && !is_spread(operation);
  if constexpr (of_floats)
    if (is_floating(q.x.dtype())) return Reduction<operation, float>(q).run();
  if constexpr (of_integers) Reduction<operation, int64_t>(q).run();
}

// fraction * 2^exponent: a part of a product may exceed double where all of it does not.
struct ScaledDouble {
  double fraction = 1;
  int64_t exponent = 0;

  void multiply(const ScaledDouble& by) {
    int moved = 0;
    const int64_t sum = exponent + by.exponent;
    fraction = std::frexp(fraction * by.fraction, &moved);
    exponent = std::isfinite(fraction) ? sum + moved : 0;
  }
};

// The elements of one output, in double or as integers.
struct Elements {
  const host::Elements& x;
  int64_t first, n;

  double sum() const {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[first + i];
    return sum;
  }
  int64_t integer_sum() const {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += uint64_t(x.integer(first + i));
    return int64_t(sum);
  }
  double product(int64_t repeats) const {
    ScaledDouble once, power;
    for (int64_t i = 0; i < n; ++i) once.multiply({x[first + i]});
    for (; repeats > 0; repeats /= 2) {
      if (repeats % 2) power.multiply(once);
      once.multiply(once);
    }
    return std::ldexp(power.fraction, int(std::clamp<int64_t>(power.exponent, -10000, 10000)));
  }
  int64_t integer_product(int64_t repeats) const {
    uint64_t product = 1, power = 1;
    for (int64_t i = 0; i < n; ++i) product *= uint64_t(x.integer(first + i));
    for (int64_t i = 0; i < repeats; ++i) power *= product;
    return int64_t(power);
  }
  int64_t count() const {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += x[first + i] != 0;
    return count;
  }
  double squares() const {
    const double mean = sum() / double(n);
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += (x[first + i] - mean) * (x[first + i] - mean);
    return squares;
  }
  bool any(bool nonzero) const {
    for (int64_t i = 0; i < n; ++i)
      if ((x[first + i] != 0) == nonzero) return true;
    return false;
  }
  // The first element that is larger than all before; with `smaller`, the first smaller one.
  int64_t extreme(bool is_float, bool smaller) const {
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i) {
      if (!is_float) {
        const int64_t a = x.integer(first + i), b = x.integer(first + best);
        if (smaller ? a < b : a > b) best = i;
        continue;
      }
      const double a = x[first + i], b = x[first + best];
      if (std::isnan(b)) break;
      if (std::isnan(a) || (smaller ? a < b : a > b)) best = i;
    }
    return best;
  }
};

}  // namespace

void cpu(const Problem& q) {
  switch (q.operation) {
    case Operation::sum:
      return run<Operation::sum>(q);
    case Operation::count:
      return run<Operation::count>(q);
    case Operation::mean:
      return run<Operation::mean>(q);
    case Operation::max:
      return run<Operation::max>(q);
    case Operation::min:
      return run<Operation::min>(q);
    case Operation::argmax:
      return run<Operation::argmax>(q);
    case Operation::argmin:
      return run<Operation::argmin>(q);
    case Operation::prod:
      return run<Operation::prod>(q);
    case Operation::float_prod:
      return run<Operation::float_prod>(q);
    case Operation::var:
      return run<Operation::var>(q);
    case Operation::std:
      return run<Operation::std>(q);
    case Operation::any:
      return run<Operation::any>(q);
    case Operation::all:
      return run<Operation::all>(q);
  }
}

void reference(const Problem& q) {
  const host::Elements to(q.out), from(q.x);
  const bool is_float = is_floating(q.x.dtype());
  const int64_t n = q.length();
  for (int64_t o = 0; o < q.outputs(); ++o) {
    const Elements x{from, o * n, n};
    const auto set_integer = [&](int64_t value) {
      is_floating(q.out.dtype()) ? to.set(o, double(value)) : to.set_integer(o, value);
    };
    switch (q.operation) {
      case Operation::sum:
        is_float ? to.set(o, x.sum() * double(q.repeats))
                 : set_integer(int64_t(uint64_t(x.integer_sum()) * uint64_t(q.repeats)));
        break;
      case Operation::count:
        set_integer(x.count() * q.repeats);
        break;
      case Operation::prod:
        is_float ? to.set(o, x.product(q.repeats)) : set_integer(x.integer_product(q.repeats));
        break;
      case Operation::float_prod:
        to.set(o, x.product(q.repeats));
        break;
      case Operation::mean:
        to.set(o, x.sum() / double(n));
        break;
      case Operation::var:
        to.set(o, x.squares() / q.divisor());
        break;
      case Operation::std:
        to.set(o, std::sqrt(x.squares() / q.divisor()));
        break;
      case Operation::argmax:
      case Operation::argmin:
        to.set_integer(o, x.extreme(is_float, q.operation == Operation::argmin));
        break;
      case Operation::max:
      case Operation::min: {
        const int64_t at = o * n + x.extreme(is_float, q.operation == Operation::min);
        is_float ? to.set(o, from[at]) : to.set_integer(o, from.integer(at));
        break;
      }
      case Operation::any:
        to.set_integer(o, x.any(true));
        break;
      case Operation::all:
        set_integer(!x.any(false));
        break;
    }
  }
}

}  // namespace tensorcraft::kernel::reduce
