// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/choice/rung.h"
#include "tensorcraft/ops/causal_conv1d/params.h"

// How each rung is chosen and started; host only.
namespace tensorcraft::kernel::causal_conv1d {

using Choice = op::Choice<Config>;
using Start = op::Start<Config>;
struct Given {  // what choices look at besides Params
  int element_bytes;
};

inline Choice naive(const Params& p, const Given&, const op::Gpu&) {
  const int64_t steps = p.tokens + (p.new_state ? p.width - 1 : 0);
  return Start{{}, div_ceil<int64_t>(p.batch * steps * p.channels, Config().threads)};
}

// 4 tokens of a thread: 7 inputs in registers, each read once, for 4 times 4 products.
constexpr Config vectorized_config(int vector, int width) {
  return {.vector = vector, .width = width, .tokens = 4};
}

inline Choice vectorized(const Params& p, const Given& given, const op::Gpu&) {
  const int vector = 16 / given.element_bytes;
  const auto takes = [&](const void* data, const Strides& at) {
    return !data || (at.channel == 1 && at.sample % vector == 0 && at.token % vector == 0 &&
                     op::is_vector_aligned(data));
  };
  if (p.width < 2 || p.width > 4) return op::refuse("needs a width of 2 to 4");
  if (p.channels % vector != 0) return op::refuse("needs channels of whole units of 16 bytes");
  if (!takes(p.x, p.x_at) || !takes(p.out, p.out_at) || !takes(p.state, p.state_at) ||
      !takes(p.new_state, p.new_state_at))
    return op::refuse("needs channels side by side, at multiples of 16 bytes");
  const Config c = vectorized_config(vector, int(p.width));
  const int64_t pieces = div_ceil(p.tokens, int64_t(c.tokens)) + (p.new_state ? 1 : 0);
  return Start{c, div_ceil(p.batch * pieces * (p.channels / vector), int64_t(c.threads))};
}

inline constexpr op::Rung<Params, Given, Config> kRungs[] = {
    {.name = "vectorized",
     .file = "01_vectorized.cuh",
     .idea = "16 bytes of channels and some tokens a thread: each input is read once",
     .choose = vectorized},
    {.name = "naive",
     .file = "00_naive.cuh",
     .idea = "one thread an element; any strides",
     .choose = naive},
};

}  // namespace tensorcraft::kernel::causal_conv1d
