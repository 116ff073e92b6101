// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bench/case.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <cstddef>
#include <deque>
#include <vector>

namespace tensorcraft::bench {

// Writes standard normal numbers into a tensor; of an integer dtype whole numbers in [0, below), of
// 8 bits all there are, of bool both. A pattern of a million elements that starts elsewhere for
// each `turn` repeats: what a kernel takes does not depend on which normal numbers they are.
void fill_random(const TensorView& tensor, int64_t below, uint64_t turn, StreamRef stream);

// As many copies of a call's arrays as keep those of one call out of a cache that holds those of
// the calls before.
int copies_for(size_t bytes, size_t cache_bytes);

// The arrays of a call in the memory of its device, several times, so that a call can take others
// than the one before it.
class Operands {
 public:
  // Allocates and fills `copies` of everything; waits until it is there.
  Operands(const Case& c, const diagnose::Request& request, StreamRef stream, int copies);

  // Bytes of one copy: all inputs and outputs.
  static size_t bytes_of(const diagnose::Request& request);

  int copies() const { return int(sets_.size()); }
  const diagnose::Request& request() const { return request_; }
  std::span<const TensorView> inputs(int copy) const { return sets_[size_t(copy)].inputs; }
  std::span<const TensorView> outputs(int copy) const { return sets_[size_t(copy)].outputs; }
  std::span<const op::Value> options(int copy) const { return sets_[size_t(copy)].options; }
  // The call with one copy, on the stream: checks, chooses, launches.
  void run(int copy, std::string_view variant) const;

 private:
  struct Set {
    std::vector<TensorView> inputs, outputs;
    std::vector<op::Value> options;
  };
  TensorView add(const TensorView& like, int64_t below, int64_t step = 0);

  const diagnose::Request& request_;
  StreamRef stream_;
  std::deque<Tensor> memory_;
  std::vector<Set> sets_;
};

}  // namespace tensorcraft::bench
