// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/source_location.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"

#include <optional>
#include <string_view>

namespace tensorcraft {

// Arguments of causal_conv1d() besides the arrays that it needs.
struct CausalConv1dOptions {
  std::optional<TensorView> bias = {};  // [channels]
  bool silu = false;                    // the result is activated
  std::optional<TensorView> state =
      {};                     // [batch, width - 1, channels]: what came before x; none: 0
  bool return_state = false;  // the allocating form gives new_state too
  // An output: the last width - 1 tokens of state and x, shape of state.
  std::optional<TensorView> new_state = {};
  std::string_view variant = {};         // by name; empty: the best that accepts
  std::optional<StreamRef> stream = {};  // none: the thread's current one of the device
  std::source_location where = std::source_location::current();  // the line that errors name
};

// The two results of the allocating form.
struct CausalConv1dResult {
  Tensor out;        // shape and dtype of x
  Tensor new_state;  // if return_state, else empty
};

// out[b, t, c] = sum of w[c, i] x[b, t - (width - 1) + i, c] over i < width, + bias[c]: each
// channel by itself, over the tokens before t and at t. x: [batch, tokens, channels]; w: [channels,
// width], width 1 to 16; any strides; float32, float16 or bfloat16, all of one dtype; sums are
// float32. What comes before the first token is state, or 0. A sequence that is given in pieces,
// each with the new_state of the one before, gives the bits of the whole. new_state may not be
// state itself.
void causal_conv1d(const TensorView& out, const TensorView& x, const TensorView& w,
                   const CausalConv1dOptions& options = {});
CausalConv1dResult causal_conv1d(const TensorView& x, const TensorView& w,
                                 const CausalConv1dOptions& options = {});

}  // namespace tensorcraft
