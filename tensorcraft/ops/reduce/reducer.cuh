// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each operation keeps of the elements that were seen, and how two such states become one.
// A Reducer has State, Out, identity(), add() of N elements, combine() and finish(), and nothing(),
// an element that changes nothing, if that is no slower than a branch around what does not
// exist. States are words of 4 bytes, so that shuffles and the workspace carry all of them alike.
#include "tensorcraft/device/concepts.h"
#include "tensorcraft/device/math.cuh"
#include "tensorcraft/device/ptx/math.cuh"
#include "tensorcraft/device/store_as.cuh"
#include "tensorcraft/device/vec.cuh"
#include "tensorcraft/ops/reduce/params.h"
#include "tensorcraft/ops/reduce/scaled_float.cuh"

namespace tensorcraft::kernel::reduce {

// What elements are computed as: floats in float32, integers in 64 bits.
template <class T>
struct NumberOf {
  using type = int64_t;
};
template <FloatingPoint T>
struct NumberOf<T> {
  using type = float;
};
template <class T>
using Number = typename NumberOf<T>::type;

// f of pairs, then of pairs of those: the depth is log2(N), and so is the growth of rounding. The
// values are lost.
template <int N, class V, class F>
TC_DEVICE V tree(V (&values)[N], F f) {
  for (int half = N / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) values[i] = f(values[i], values[i + half]);
  return values[0];
}

struct Plus {
  TC_DEVICE float operator()(float a, float b) const { return a + b; }
  TC_DEVICE uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
};
struct Times {
  TC_DEVICE float operator()(float a, float b) const { return a * b; }
  TC_DEVICE uint64_t operator()(uint64_t a, uint64_t b) const { return a * b; }
};
// NaN survives.
struct Larger {
  TC_DEVICE float operator()(float a, float b) const { return fmax_nan(a, b); }
  TC_DEVICE int64_t operator()(int64_t a, int64_t b) const { return a > b ? a : b; }
};
struct Smaller {
  TC_DEVICE float operator()(float a, float b) const { return fmin_nan(a, b); }
  TC_DEVICE int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

inline constexpr int64_t kLargest = 0x7fffffffffffffff;
template <class V>
TC_DEVICE V lowest() {
  if constexpr (FloatingPoint<V>)
    return V(-kInfinity);
  else
    return V(-1) < V(0) ? V(uint64_t(1) << (8 * sizeof(V) - 1)) : V(0);
}
template <class V>
TC_DEVICE V highest() {
  if constexpr (FloatingPoint<V>)
    return V(kInfinity);
  else
    return V(-1 - lowest<V>());
}

// NaN is not 0.
template <class T>
TC_DEVICE bool is_true(T x) {
  if constexpr (FloatingPoint<T>)
    return float(x) != 0.0f;
  else
    return x != T(0);
}

// One value, and an associative function of two. Integers that add up or multiply wrap.
template <class T, class V, class F, bool nonzero = false>
struct Fold {
  struct State {
    V value;
  };
  template <int N, class Values>
  TC_DEVICE static void add(State& s, const Values& x, int64_t, int64_t) {
    V values[N];
    for (int i = 0; i < N; ++i) {
      if constexpr (nonzero)
        values[i] = V(is_true(x[i]));
      else
        values[i] = V(Number<T>(x[i]));
    }
    s.value = F()(s.value, tree(values, F()));
  }
  TC_DEVICE static State combine(const State& a, const State& b) { return {F()(a.value, b.value)}; }
};

// What sums and products are taken in, and become. Unsigned, since signed ones may not wrap in C++.
template <class T, bool as_float = FloatingPoint<T>>
struct Total {
  using Value = uint64_t;
  using Out = int64_t;
};
template <FloatingPoint T>
struct Total<T, true> {
  using Value = float;
  using Out = T;
};
template <class T>
  requires(!FloatingPoint<T>)
struct Total<T, true> {
  using Value = float;
  using Out = float;
};

template <class T, bool counts = false>
struct Sum : Fold<T, typename Total<T, FloatingPoint<T> && !counts>::Value, Plus, counts> {
  using Of = Total<T, FloatingPoint<T> && !counts>;
  using State = typename Fold<T, typename Of::Value, Plus, counts>::State;
  using Out = typename Of::Out;
  TC_DEVICE static State identity() { return {0}; }
  TC_DEVICE static T nothing() { return T{}; }
  TC_DEVICE static typename Of::Value finish(const State& s, const Params& p) {
    return s.value * typename Of::Value(p.repeats);
  }
};
template <class T>
struct Mean : Sum<T> {
  using State = typename Sum<T>::State;
  TC_DEVICE static float finish(const State& s, const Params& p) { return s.value / p.count; }
};

// R's state to the power of n.
template <class R, class State>
TC_DEVICE State power(const State& s, int64_t n) {
  State result = R::identity(), square = s;
  for (; n > 0; n /= 2) {
    if (n % 2) result = R::combine(result, square);
    square = R::combine(square, square);
  }
  return result;
}

// Of integers, which wrap.
template <class T, bool as_float = FloatingPoint<T>>
struct Product : Fold<T, uint64_t, Times> {
  using State = typename Fold<T, uint64_t, Times>::State;
  using Out = int64_t;
  TC_DEVICE static State identity() { return {1}; }
  TC_DEVICE static T nothing() { return T(1); }
  TC_DEVICE static uint64_t finish(const State& s, const Params& p) {
    return power<Product>(s, p.repeats).value;
  }
};

// Of floats, or of integers as floats: no part of the product exceeds float32 or vanishes there, so
// it is infinite or 0 only if all of it is. Exponents stop at kFar, where only elements in the
// millions that are as far on the other side could bring them back.
template <class T>
struct Product<T, true> {
  using State = ScaledFloat;
  using Out = typename Total<T, true>::Out;
  static constexpr int32_t kFar = 1 << 29;

  TC_DEVICE static State identity() { return {1, 0}; }
  TC_DEVICE static T nothing() { return T(1.0f); }
  template <int N, class Values>
  TC_DEVICE static void add(State& s, const Values& x, int64_t, int64_t) {
    static_assert(N <= 64, "the product of the fractions is a float");
    float fractions[N];
    int32_t exponent = 0;
    for (int i = 0; i < N; ++i) {
      const auto one = ScaledFloat::of(float(Number<T>(x[i])));
      fractions[i] = one.fraction;
      exponent += one.exponent;
    }
    s = joined(s.fraction * tree(fractions, Times()), s.exponent + exponent);
  }
  TC_DEVICE static State combine(const State& a, const State& b) {
    return joined(a.fraction * b.fraction, a.exponent + b.exponent);
  }
  TC_DEVICE static float finish(const State& s, const Params& p) {
    return power<Product>(s, p.repeats).value();
  }

 private:
  TC_DEVICE static State joined(float fraction, int32_t exponent) {
    const auto s = ScaledFloat::of(fraction);
    const int32_t sum = s.exponent + exponent;
    return {s.fraction, sum > kFar ? kFar : sum < -kFar ? -kFar : sum};
  }
};

template <class T>
struct Maximum : Fold<T, Number<T>, Larger> {
  using State = typename Fold<T, Number<T>, Larger>::State;
  using Out = T;
  TC_DEVICE static State identity() { return {lowest<Number<T>>()}; }
  TC_DEVICE static T nothing() { return lowest<T>(); }
  TC_DEVICE static T finish(const State& s, const Params&) { return T(s.value); }
};
template <class T>
struct Minimum : Fold<T, Number<T>, Smaller> {
  using State = typename Fold<T, Number<T>, Smaller>::State;
  using Out = T;
  TC_DEVICE static State identity() { return {highest<Number<T>>()}; }
  TC_DEVICE static T nothing() { return highest<T>(); }
  TC_DEVICE static T finish(const State& s, const Params&) { return T(s.value); }
};

// Where the best element is, the largest or the smallest: the first of equals, and a NaN is better
// than any number. An index of kLargest belongs to no element, or to elements that are all as bad
// as can be.
template <class T, bool smallest>
struct ArgBest {
  using Out = int64_t;
  struct State {
    int64_t index;
    Number<T> value;
  };
  TC_DEVICE static bool is_better(Number<T> a, Number<T> b) {
    const bool is_beyond = smallest ? a < b : a > b;
    if constexpr (FloatingPoint<T>)
      return is_beyond || (a != a && b == b);
    else
      return is_beyond;
  }
  TC_DEVICE static State identity() {
    return {kLargest, smallest ? highest<Number<T>>() : lowest<Number<T>>()};
  }
  // Elements come in the order of their indices, so a later one must be better.
  template <int N, class Values>
  TC_DEVICE static void add(State& s, const Values& x, int64_t index, int64_t step) {
    for (int i = 0; i < N; ++i) {
      const auto value = Number<T>(x[i]);
      if (!is_better(value, s.value)) continue;
      s.value = value;
      s.index = index + i * step;
    }
  }
  TC_DEVICE static State combine(const State& a, const State& b) {
    const bool second =
        is_better(b.value, a.value) || (!is_better(a.value, b.value) && b.index < a.index);
    return {second ? b.index : a.index, second ? b.value : a.value};
  }
  TC_DEVICE static int64_t finish(const State& s, const Params&) {
    return s.index == kLargest ? 0 : s.index;
  }
};

// Mean and variance, merged by Chan's formula. The mean counts from a pivot, the first element a
// thread saw, so a mean of 1e9 with a deviation of 1 keeps its digits. All are of a quarter of the
// elements, so that no difference of two exceeds the largest float: infinite is only a variance,
// and NaN only what comes of elements that are not finite.
template <class T, bool root>
struct Moments {
  using Out = T;
  static constexpr float kUnit = 0.25f;
  struct State {
    float count, mean, variance, pivot;
  };
  TC_DEVICE static State identity() { return {0, 0, 0, 0}; }
  template <int N, class Values>
  TC_DEVICE static void add(State& s, const Values& x, int64_t, int64_t) {
    const float pivot = s.count == 0 ? float(x[0]) * kUnit : s.pivot;
    float shares[N], squares[N];
    for (int i = 0; i < N; ++i)
      shares[i] = squares[i] = fmaf(float(x[i]), kUnit / N, pivot * (-1.0f / N));
    const float mean = tree(shares, Plus());
    for (int i = 0; i < N; ++i) {
      const float apart = fmaf(squares[i], float(N), -mean);
      squares[i] = apart * apart;
    }
    s = combine(s, {float(N), mean, tree(squares, Plus()) * (1.0f / N), pivot});
  }
  TC_DEVICE static State combine(const State& a, const State& b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const float count = a.count + b.count, share = b.count * ptx::rcp_approx_ftz(count);
    const float rest = 1 - share, apart = (b.pivot - a.pivot) + (b.mean - a.mean);
    return {count, a.mean + apart * share,
            a.variance * rest + b.variance * share + apart * (apart * (rest * share)), a.pivot};
  }
  TC_DEVICE static float finish(const State& s, const Params& p) {
    const float variance = s.variance * (p.count / p.divisor * (1 / (kUnit * kUnit)));
    return root ? sqrtf(variance) : variance;
  }
};

// Is there an element that decides: one that is not 0 for any, one that is 0 for all.
template <class T, bool deciding>
struct Truth {
  using Out = bool;
  struct State {
    int32_t found;
  };
  TC_DEVICE static State identity() { return {0}; }
  TC_DEVICE static T nothing() { return T(deciding ? 0.0f : 1.0f); }
  template <int N, class Values>
  TC_DEVICE static void add(State& s, const Values& x, int64_t, int64_t) {
    for (int i = 0; i < N; ++i) s.found |= int32_t(is_true(x[i]) == deciding);
  }
  TC_DEVICE static State combine(const State& a, const State& b) { return {a.found | b.found}; }
  TC_DEVICE static bool finish(const State& s, const Params&) { return (s.found != 0) == deciding; }
};

// clang-format off
template <class T, Operation operation> struct ReducerOf;
template <class T> struct ReducerOf<T, Operation::sum> { using type = Sum<T>; };
template <class T> struct ReducerOf<T, Operation::count> { using type = Sum<T, true>; };
template <class T> struct ReducerOf<T, Operation::mean> { using type = Mean<T>; };
template <class T> struct ReducerOf<T, Operation::max> { using type = Maximum<T>; };
template <class T> struct ReducerOf<T, Operation::min> { using type = Minimum<T>; };
template <class T> struct ReducerOf<T, Operation::argmax> { using type = ArgBest<T, false>; };
template <class T> struct ReducerOf<T, Operation::argmin> { using type = ArgBest<T, true>; };
template <class T> struct ReducerOf<T, Operation::prod> { using type = Product<T>; };
template <class T> struct ReducerOf<T, Operation::float_prod> { using type = Product<T, true>; };
template <class T> struct ReducerOf<T, Operation::var> { using type = Moments<T, false>; };
template <class T> struct ReducerOf<T, Operation::std> { using type = Moments<T, true>; };
template <class T> struct ReducerOf<T, Operation::any> { using type = Truth<T, true>; };
template <class T> struct ReducerOf<T, Operation::all> { using type = Truth<T, false>; };
// clang-format on
template <class T, Operation operation>
using Reducer = typename ReducerOf<T, operation>::type;

// Does R have an element that changes nothing?
template <class R>
inline constexpr bool has_nothing = requires { R::nothing(); };

// The result to out[at].
template <Operation operation, class R>
TC_DEVICE void store(const Params& p, int64_t at, const typename R::State& s) {
  const auto value = R::finish(s, p);
  if constexpr (converts<operation>)
    if (p.out_type != OutputType::own) return store_as(p.out_type, p.out, at, value);
  static_cast<typename R::Out*>(p.out)[at] = typename R::Out(value);
}

// The unsigned integer of so many bytes.
template <int bytes>
using Bits = Select<bytes == 8, uint64_t,
                    Select<bytes == 4, uint32_t, Select<bytes == 2, uint16_t, uint8_t>>>;

// N elements as they came from memory: 4 bytes a register until they are used.
template <class T, int N>
struct Packed {
  using Word = Bits<int(sizeof(T)) * N % 4 || sizeof(T) == 8 ? int(sizeof(T)) : 4>;
  static constexpr int kBits = 8 * int(sizeof(T)), kShare = int(sizeof(Word) / sizeof(T));
  AlignedVector<Word, N / kShare> words;

  TC_DEVICE void load(const T* from) {
    words = load_vector<N / kShare>(reinterpret_cast<const Word*>(from));
  }
  TC_DEVICE void fill(T x) {
    Word word = 0;
    for (int i = 0; i < kShare; ++i) word |= Word(bit_cast<Bits<sizeof(T)>>(x)) << i * kBits;
    for (int w = 0; w < N / kShare; ++w) words[w] = word;
  }
  TC_DEVICE T operator[](int i) const {
    return bit_cast<T>(Bits<sizeof(T)>(words[i / kShare] >> i % kShare * kBits));
  }
};

// One element.
template <class R, class T>
TC_DEVICE void add_one(typename R::State& s, T x, int64_t index) {
  R::template add<1>(s, AlignedVector<T, 1>{{x}}, index, 1);
}

}  // namespace tensorcraft::kernel::reduce
