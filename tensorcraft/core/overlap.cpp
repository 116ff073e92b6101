// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/tensor_view.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <span>

// Whether views share memory is a question of whole numbers: do two sums of strides, one for each
// view, name the same byte? Then the distance of the two addresses is a sum of steps, each taken as
// often as its axis allows.
namespace tensorcraft {
namespace {

// A step that can be taken 0 to `most` times.
struct Step {
  int64_t size, most;
};

// The steps whose sum is asked for.
class Steps {
 public:
  void add(int64_t size, int64_t most) {
    if (most > 0) steps_[count_++] = {size, most};
  }
  // Is `sum` one of the sums? `maybe` if that takes too long to say.
  Overlap reach(int64_t sum) {
    join();
    return reach(sum, 0);
  }

 private:
  // Sorts the steps, longest first, and joins what can be one: equal steps, and a step to where the
  // shorter ones lead without a gap, as the rows of a contiguous tensor are.
  void join() {
    const auto all = std::span(steps_).first(count_);
    std::ranges::sort(all, {}, &Step::size);
    size_t kept = 0;
    for (const Step& s : all) {
      Step* const last = kept > 0 ? &steps_[kept - 1] : nullptr;
      if (last && s.size % last->size == 0 && s.size / last->size <= last->most + 1)
        last->most += s.size / last->size * s.most;
      else
        steps_[kept++] = s;
    }
    count_ = kept;
    std::ranges::reverse(std::span(steps_).first(count_));
    rest_[count_] = 0;
    for (size_t i = count_; i-- > 0;) rest_[i] = rest_[i + 1] + steps_[i].size * steps_[i].most;
  }

  // With the steps from number `i` on. What the shorter ones reach together is rarely much more
  // than the longer step, so few numbers of it are to be tried.
  Overlap reach(int64_t sum, size_t i) {
    if (sum == 0) return Overlap::certain;
    if (sum < 0 || sum > rest_[i] || is_between(sum, i)) return Overlap::none;
    if (--tries_ < 0) return Overlap::maybe;
    const auto [size, most] = steps_[i];
    const int64_t shorter = rest_[i + 1];
    const int64_t least = sum > shorter ? (sum - shorter + size - 1) / size : 0;
    for (int64_t n = std::min(most, sum / size); n >= least; --n)
      if (const Overlap o = reach(sum - n * size, i + 1); o != Overlap::none) return o;
    return Overlap::none;
  }
  // Some steps lead to multiples of what divides them all. Is the sum further behind one than the
  // shorter steps reach?
  bool is_between(int64_t sum, size_t i) const {
    int64_t unit = 0;
    for (; i < count_; ++i) {
      unit = std::gcd(unit, steps_[i].size);
      if (sum % unit > rest_[i + 1]) return true;
    }
    return false;
  }

  static constexpr size_t kMost = 2 * kMaxRank + 2;
  std::array<Step, kMost> steps_;
  std::array<int64_t, kMost + 1> rest_;  // the longest way with the steps from this one on
  size_t count_ = 0;
  int tries_ = 1000;
};

// Adds the bytes of a view: an axis can be walked from either end.
void add_bytes(Steps& steps, const TensorView& t) {
  const auto bytes = int64_t(dtype_bytes(t.dtype()));
  for (int i = 0; i < t.rank(); ++i)
    if (t.stride(i) != 0) steps.add(std::abs(t.stride(i)) * bytes, t.shape(i) - 1);
  steps.add(1, bytes - 1);
}

// Do two indices lead to one element? They differ by up to `most` either way along each axis, and
// along the last axis along which they do, forward.
bool meets_itself(std::span<const Step> axes) {
  for (size_t last = 0; last < axes.size(); ++last) {
    Steps steps;
    int64_t back = 0;  // from the smallest difference to none
    for (const Step& s : axes.first(last)) {
      steps.add(s.size, 2 * s.most);
      back += s.size * s.most;
    }
    steps.add(axes[last].size, axes[last].most - 1);
    if (steps.reach(back + axes[last].size * axes[last].most) != Overlap::none) return true;
  }
  return false;
}

}  // namespace

ByteRange byte_range(const TensorView& t) {
  if (t.size() == 0) return {0, 0};
  const auto bytes = int64_t(dtype_bytes(t.dtype()));
  ByteRange range{0, bytes};
  for (int i = 0; i < t.rank(); ++i) {
    const int64_t reach = (t.shape(i) - 1) * t.stride(i) * bytes;
    (reach < 0 ? range.begin : range.end) += reach;
  }
  return range;
}

Overlap overlap_of(const TensorView& a, const TensorView& b) {
  if (a.size() == 0 || b.size() == 0 || a.device() != b.device()) return Overlap::none;
  if (!a.data() || !b.data()) return Overlap::none;
  if (a.data() == b.data()) return Overlap::certain;
  const ByteRange x = byte_range(a), y = byte_range(b);
  const int64_t begin_a = reinterpret_cast<intptr_t>(a.data()) + x.begin;
  const int64_t begin_b = reinterpret_cast<intptr_t>(b.data()) + y.begin;
  const int64_t end_a = begin_a + (x.end - x.begin), end_b = begin_b + (y.end - y.begin);
  if (begin_a >= end_b || begin_b >= end_a) return Overlap::none;
  if (a.is_contiguous() && b.is_contiguous()) return Overlap::certain;
  // A byte of a, counted from its first one, is a byte of b, counted back from its last one.
  Steps steps;
  add_bytes(steps, a);
  add_bytes(steps, b);
  return steps.reach(end_b - 1 - begin_a);
}

bool overlaps_itself(const TensorView& t) {
  if (t.size() == 0) return false;
  std::array<Step, kMaxRank> axes;
  size_t count = 0;
  for (int i = 0; i < t.rank(); ++i)
    if (t.shape(i) > 1) axes[count++] = {std::abs(t.stride(i)), t.shape(i) - 1};
  std::ranges::sort(std::span(axes).first(count), {}, &Step::size);
  int64_t shorter = 0;  // the last element that the axes so far touch
  bool interleaves = false;
  for (size_t i = 0; i < count; ++i) {
    if (axes[i].size == 0) return true;
    interleaves |= axes[i].size <= shorter;
    shorter += axes[i].size * axes[i].most;
  }
  return interleaves && meets_itself(std::span(axes).first(count));
}

}  // namespace tensorcraft
