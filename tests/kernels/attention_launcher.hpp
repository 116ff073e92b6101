// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/kernels/attention_arguments.hpp"
#include "tensorcraft/ops/attention/attention.hpp"
#include "tests/kernels/launcher_call.hpp"

#include <cmath>

namespace tensorcraft::test {

// Compares what launch_attention makes of a case; false if no launcher can express it.
inline bool compare_attention(const LauncherCall& c) {
  namespace a = kernel::attention;
  if (c.choice("layout", AttentionLayout::bhsd) != AttentionLayout::bhsd) return false;
  if (c.element_bytes() == 1) return false;
  for (const char* lengths : {"key_lengths", "cu_seqlens_q", "cu_seqlens_k"})
    if (const auto* t = c.given<TensorView>(lengths); t && t->dtype() != DType::int32) return false;
  const TensorView &q = c.in(), &k = c.in(1);
  const auto* starts = c.given<TensorView>("cu_seqlens_q");
  const int row = starts ? 0 : 2, dim = q.rank() - 1;
  const kernels::AttentionShape shape{.batch = starts ? starts->shape(0) - 1 : q.shape(0),
                                      .heads = q.shape(1),
                                      .heads_k = k.shape(1),
                                      .seq_q = q.shape(row),
                                      .seq_k = k.shape(row),
                                      .head_dim = q.shape(dim),
                                      .v_dim = c.in(2).shape(dim)};
  kernels::AttentionArguments arguments{.causal = c.option("causal", false),
                                        .key_lengths = c.address<int32_t>("key_lengths"),
                                        .lse = c.output<float>("lse"),
                                        .causal_each = c.address<bool>("causal"),
                                        .softcap = c.number("softcap", 0),
                                        .sinks = c.address<float>("sinks"),
                                        .cu_seqlens_q = c.address<int32_t>("cu_seqlens_q"),
                                        .cu_seqlens_k = c.address<int32_t>("cu_seqlens_k")};
  if (const float scale = c.number("scale", NAN); !std::isnan(scale)) arguments.scale = scale;
  if (const Dims* window = c.given<Dims>("window")) {
    arguments.window_left = (*window)[0];
    arguments.window_right = (*window)[1];
  }
  if (const auto* mask = c.given<TensorView>("mask")) {
    const int r = mask->rank();
    if (r < 2 || mask->shape(r - 2) != shape.seq_q || mask->shape(r - 1) != shape.seq_k ||
        mask->dtype() == q.dtype())
      return false;
    if (mask->dtype() == DType::bool_)
      arguments.seen = mask->data_as<bool>();
    else
      arguments.added = mask->data_as<float>();
    if (r > 3 && mask->shape(r - 4) > 1) arguments.mask_batch = mask->stride(r - 4);
    if (r > 2 && mask->shape(r - 3) > 1) arguments.mask_head = mask->stride(r - 3);
  }
  kernels::validate_attention(shape);
  kernels::validate_attention(arguments, "tensor_core");
  const a::Params p = kernels::detail::attention::params_of(
      q.data(), k.data(), c.in(2).data(), c.out().writable_data(), shape, arguments);
  c.expect_rungs(a::kRungs, p, a::Given{c.element_bytes()}, [](const a::Params& own) {
    return own.num_parts > 1 ? std::optional(a::combine_start(own)) : std::nullopt;
  });
  return true;
}

}  // namespace tensorcraft::test
