// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/device/latent_row.h"
#include "tensorcraft/op/host/element_type.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/checks/rows.hpp"
#include "tensorcraft/ops/append_kv/problem.hpp"
#include "tensorcraft/ops/append_kv/token.cuh"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

namespace tensorcraft::kernel::append_kv {
namespace {

void check_indices(const Problem& q) {
  const host::Elements slots(q.slots);
  for (int64_t i = 0; i < q.slots.size(); ++i)
    if (slots.integer(i) >= q.places())
      fail(ErrorKind::index, "append_kv: slots: element ", i, " is ", slots.integer(i),
           ", expected one below ", q.places(),
           ", the rows of all blocks of k_cache, or a negative one to skip the token");
  if (!q.cos) return;
  const host::Elements positions(*q.positions);
  for (int64_t i = 0; i < q.positions->size(); ++i)
    if (const int64_t at = positions.integer(i); at < 0 || at >= q.cos->shape(0))
      fail(ErrorKind::index, "append_kv: positions: element ", i, " is ", at, ", expected [0, ",
           q.cos->shape(0), "), the rows of cos");
}

template <class Float>
std::vector<Float> numbers(const std::optional<TensorView>& t) {
  std::vector<Float> all;
  if (!t) return all;
  const host::Elements elements(*t);
  for (int64_t i = 0; i < t->size(); ++i) all.push_back(Float(elements[i]));
  return all;
}

// dim elements from `offset` on, `step` apart.
template <class Float>
void load(Float* to, const TensorView& t, int64_t offset, int64_t step, int64_t dim) {
  host::with_element_type(t.dtype(), [&](auto* type) {
    const auto* from = static_cast<const std::remove_pointer_t<decltype(type)>*>(t.data()) + offset;
    for (int64_t i = 0; i < dim; ++i) to[i] = Float(float(from[i * step]));
  });
}

template <class Float>
void store(const TensorView& t, int64_t offset, int64_t step, const Float* x, int64_t dim,
           Float scale) {
  host::with_element_type(t.dtype(), [&](auto* type) {
    using Element = std::remove_pointer_t<decltype(type)>;
    auto* to = t.data_as<Element>() + offset;
    for (int64_t i = 0; i < dim; ++i) {
      const auto quotient = float(scale == 1 ? x[i] : x[i] / scale);
      if constexpr (std::is_same_v<Element, int8_t>)
        to[i * step] = to_code<int8_t>(quotient);
      else
        to[i * step] = Element(quotient);
    }
  });
}

// A row of 656 bytes, of its 576 elements.
template <class Float>
void store_latent_row(const LatentRowOut& row, const Float* x) {
  for (int group = 0; group < LatentRow::kGroups; ++group) {
    const Float* const from = x + group * LatentRow::kGroup;
    float amax = 0;
    for (int i = 0; i < LatentRow::kGroup; ++i) amax = fmax_nan(amax, fabsf(float(from[i])));
    const float scale = row.scale(group) = code_scale<e4m3>(amax);
    for (int i = 0; i < LatentRow::kGroup; ++i)
      row.code(group * LatentRow::kGroup + i) = e4m3(float(from[i] / Float(scale)));
  }
  for (int i = 0; i < LatentRow::kRope; ++i) row.rope(i) = bf16(float(x[LatentRow::kLatent + i]));
}

// Computes a call with Floats.
template <class Float>
class Writer {
 public:
  explicit Writer(const Problem& q)
      : q_(q),
        slots_(q.slots),
        q_weight_(numbers<Float>(q.q_weight)),
        k_weight_(numbers<Float>(q.k_weight)),
        k_scale_(numbers<Float>(q.k_scale)),
        v_scale_(numbers<Float>(q.v_scale)),
        k_tokens_(tokens_of(q.k)) {
    if (q.v) v_tokens_ = tokens_of(*q.v);
    if (q.k_pe) k_pe_tokens_ = tokens_of(*q.k_pe);
    if (q.q) {
      q_tokens_ = tokens_of(*q.q);
      q_out_tokens_ = tokens_of(*q.q_out);
    }
    if (q.cos) positions_.emplace(*q.positions);
  }

  void write(int64_t token) const {
    load_angles(token);
    if (q_.q) {
      const TensorView &from = *q_.q, &to = *q_.q_out;
      const int head = from.rank() - 2;
      for (int64_t h = 0; h < from.shape(head); ++h) {
        std::vector<Float>& x =
            read(from, q_tokens_.offset(token) + h * from.stride(head), q_weight_);
        rotate(x);
        store(to, q_out_tokens_.offset(token) + h * to.stride(head), to.stride(head + 1), x.data(),
              int64_t(x.size()), Float(1));
      }
    }
    const int64_t slot = slots_.integer(token);
    if (slot < 0) return;
    write_keys(token, slot);
    if (q_.v) write_values(token, slot);
  }

 private:
  static RowMap tokens_of(const TensorView& t) {
    return op::element_map(t.select(t.rank() - 1, 0).select(t.rank() - 2, 0));
  }

  // Head i % heads of token i / heads has it: one number is for all, one a head for all tokens.
  static Float scale_of(const std::vector<Float>& scale, int64_t i) {
    return scale.empty() ? Float(1) : scale[size_t(i) % scale.size()];
  }

  void write_keys(int64_t token, int64_t slot) const {
    const int head = q_.k.rank() - 2;
    for (int64_t h = 0; h < q_.k.shape(head); ++h) {
      std::vector<Float>& x =
          read(q_.k, k_tokens_.offset(token) + h * q_.k.stride(head), k_weight_);
      if (q_.k_pe) append(x, *q_.k_pe, k_pe_tokens_.offset(token) + h * q_.k_pe->stride(head));
      rotate(x);
      put(q_.k_cache_out, slot, h, x, scale_of(k_scale_, token * q_.k.shape(head) + h));
    }
  }
  void write_values(int64_t token, int64_t slot) const {
    const int head = q_.v->rank() - 2;
    for (int64_t h = 0; h < q_.v->shape(head); ++h)
      put(*q_.v_cache_out, slot, h,
          read(*q_.v, v_tokens_.offset(token) + h * q_.v->stride(head), {}),
          scale_of(v_scale_, token * q_.v->shape(head) + h));
  }
  // A head of a slot.
  static void put(const TensorView& cache, int64_t slot, int64_t head, const std::vector<Float>& x,
                  Float scale) {
    const int64_t size = cache.shape(1);
    const int64_t at =
        slot / size * cache.stride(0) + slot % size * cache.stride(1) + head * cache.stride(2);
    if (cache.dtype() == DType::uint8)
      store_latent_row(LatentRowOut{cache.data_as<uint8_t>() + at}, x.data());
    else
      store(cache, at, cache.stride(3), x.data(), int64_t(x.size()), scale);
  }

  // Holds the angles of the token that the thread is at.
  struct Angles {
    std::vector<Float> coses, sines;
  };
  static Angles& angles() {
    thread_local Angles of_thread;
    return of_thread;
  }
  void load_angles(int64_t token) const {
    if (!q_.cos) return;
    const auto row = [at = positions_->integer(token), half = q_.half()](std::vector<Float>& to,
                                                                         const TensorView& t) {
      to.resize(size_t(half));
      load(to.data(), t, at * t.stride(0), t.stride(1), half);
    };
    row(angles().coses, *q_.cos);
    row(angles().sines, *q_.sin);
  }

  // A head, normalised; the vector is the thread's.
  std::vector<Float>& read(const TensorView& from, int64_t offset,
                           const std::vector<Float>& weight) const {
    thread_local std::vector<Float> x;
    const int64_t dim = from.shape(from.rank() - 1);
    x.resize(size_t(dim));
    load(x.data(), from, offset, from.stride(from.rank() - 1), dim);
    if (!weight.empty()) {
      Float squares = 0;
      for (const Float v : x) squares += v * v;
      const Float unit = 1 / std::sqrt(squares / Float(dim) + Float(q_.eps));
      for (size_t i = 0; i < x.size(); ++i) x[i] *= unit * weight[i];
    }
    return x;
  }
  // Elements behind a head.
  static void append(std::vector<Float>& x, const TensorView& from, int64_t offset) {
    const int64_t dim = from.shape(from.rank() - 1), before = int64_t(x.size());
    x.resize(size_t(before + dim));
    load(x.data() + before, from, offset, from.stride(from.rank() - 1), dim);
  }
  // The first elements of a head, or of a latent cache the last ones.
  void rotate(std::vector<Float>& x) const {
    const auto half = size_t(q_.half()), first = q_.v ? 0 : x.size() - 2 * half;
    const auto& [coses, sines] = angles();
    for (size_t i = 0; i < half; ++i) {
      Float &a = x[first + i], &b = x[first + i + half];
      const Float cos = coses[i], sin = sines[i], before = a;
      a = before * cos - b * sin;
      b = b * cos + before * sin;
    }
  }

  const Problem& q_;
  host::Elements slots_;
  std::optional<host::Elements> positions_;
  std::vector<Float> q_weight_, k_weight_, k_scale_, v_scale_;
  RowMap q_tokens_{}, q_out_tokens_{}, k_tokens_, k_pe_tokens_{}, v_tokens_{};
};

void copy(const TensorView& to, const TensorView& from) {
  if (to.data() == from.data()) return;
  const size_t bytes = dtype_bytes(to.dtype());
  const host::Elements out(to), in(from);
  host::parallel_for(to.size(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(out.address(i), in.address(i), bytes);
  });
}

}  // namespace

void cpu(const Problem& q) {
  check_indices(q);
  copy(q.k_cache_out, q.k_cache);
  if (q.v) copy(*q.v_cache_out, *q.v_cache);
  const Writer<float> writer(q);
  constexpr int64_t kGrainTokens = 64;
  host::parallel_for(q.slots.size(), kGrainTokens, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) writer.write(token);
  });
}

void reference(const Problem& q) {
  check_indices(q);
  copy(q.k_cache_out, q.k_cache);
  if (q.v) copy(*q.v_cache_out, *q.v_cache);
  const Writer<double> writer(q);
  for (int64_t token = 0; token < q.slots.size(); ++token) writer.write(token);
}

}  // namespace tensorcraft::kernel::append_kv
