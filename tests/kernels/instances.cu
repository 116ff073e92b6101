// SPDX-License-Identifier: Apache-2.0
// One instance of each launcher for the oldest GPU, sm_80; the other programs are for newer ones.
#include "tensorcraft/kernels/all.cuh"

namespace tensorcraft::kernels {

template std::string_view launch_softmax(const float*, float*, int64_t, int64_t, cudaStream_t,
                                         DebugInfo);
template std::string_view launch_logsumexp(const bf16*, bf16*, int64_t, int64_t, cudaStream_t,
                                           DebugInfo);
template std::string_view launch_cross_entropy(const bf16*, const int64_t*, float*, float*, int64_t,
                                               int64_t, int64_t, cudaStream_t, DebugInfo);
template std::string_view launch_l2_normalize(const f16*, f16*, int64_t, int64_t, float,
                                              cudaStream_t, DebugInfo);
template std::string_view launch_rms_norm(const f16*, const float*, f16*, int64_t, int64_t, float,
                                          cudaStream_t, DebugInfo);
template std::string_view launch_layer_norm<Activation::silu>(const bf16*, const bf16*, const bf16*,
                                                              bf16*, int64_t, int64_t, float,
                                                              float*, float*, cudaStream_t,
                                                              DebugInfo);
template std::string_view launch_layer_norm_residual_quantized(const f16*, const f16*, const float*,
                                                               const float*, int8_t*, f16*,
                                                               const CodeScale&, int64_t, int64_t,
                                                               float, cudaStream_t, DebugInfo);
template std::string_view launch_batch_norm<Activation::relu>(const bf16*, const float*,
                                                              const float*, const float*,
                                                              const float*, bf16*, int64_t, int64_t,
                                                              int64_t, float, cudaStream_t,
                                                              DebugInfo);
template std::string_view launch_batch_norm_training(const float*, const float*, const float*,
                                                     float*, const BatchStatistics<float>&, int64_t,
                                                     int64_t, int64_t, float, cudaStream_t,
                                                     DebugInfo);
template std::string_view launch_batch_norm_backward(const f16*, const f16*, const f16*,
                                                     const float*, const float*, f16*, f16*, f16*,
                                                     int64_t, int64_t, int64_t, cudaStream_t,
                                                     DebugInfo);
template std::string_view launch_group_norm(const bf16*, const bf16*, const bf16*, bf16*, int64_t,
                                            int64_t, int64_t, int64_t, float, cudaStream_t,
                                            DebugInfo);
template std::string_view launch_masked_mean(const bf16*, const int64_t*, bf16*, int64_t, int64_t,
                                             int64_t, cudaStream_t, DebugInfo);
template std::string_view launch_reduce<Operation::var>(const bf16*, bf16*, int64_t, int64_t,
                                                        int64_t, void*, float, cudaStream_t,
                                                        DebugInfo);
template std::string_view launch_cumulative_sum(const int8_t*, int64_t*, int64_t, int64_t, void*,
                                                cudaStream_t, DebugInfo);
template std::string_view launch_topk(const bf16*, bf16*, int64_t*, int64_t, int64_t, int64_t,
                                      cudaStream_t, DebugInfo);
template std::string_view launch_embedding(const int64_t*, const e5m2*, e5m2*, int64_t, int64_t,
                                           int64_t, cudaStream_t, DebugInfo);
template std::string_view launch_silu_and_mul(const bf16*, bf16*, int64_t, int64_t, cudaStream_t,
                                              DebugInfo);
template std::string_view launch_quantize_blocks(const bf16*, e4m3*, float*, int64_t, int64_t, bool,
                                                 bool, cudaStream_t, DebugInfo);
template std::string_view launch_dequantize_tokens(const int8_t*, const float*, f16*, int64_t,
                                                   int64_t, cudaStream_t, DebugInfo);
template std::string_view launch_rope(const f16*, f16*, const RopeShape&,
                                      const RopeArguments<f16, float>&, cudaStream_t, DebugInfo);
template std::string_view launch_take(const bf16*, const int64_t*, bf16*, int64_t, int64_t, int64_t,
                                      int64_t, cudaStream_t, DebugInfo);
template std::string_view launch_pad(const bf16*, bf16*, std::initializer_list<PadAxis>, bf16,
                                     cudaStream_t, DebugInfo);
template std::string_view launch_scatter(const bf16*, const int64_t*, const bf16*, bf16*, int64_t,
                                         int64_t, int64_t, int64_t, cudaStream_t, DebugInfo);
template std::string_view launch_scatter_combined<kernel::scatter::Operation::add>(
    const bf16*, const int64_t*, const bf16*, bf16*, int64_t, int64_t, int64_t, int64_t,
    cudaStream_t, DebugInfo);
template std::string_view launch_transpose(const bf16*, bf16*, int64_t, int64_t, int64_t,
                                           cudaStream_t, DebugInfo);
template std::string_view launch_attention(const f16*, const f16*, const f16*, f16*,
                                           const AttentionShape&, const AttentionArguments&,
                                           cudaStream_t, DebugInfo);
template std::string_view launch_gemm(const f16*, const f16*, f16*, int64_t, int64_t, int64_t,
                                      float, float, GemmVersion, cudaStream_t, DebugInfo);
template std::string_view launch_gemm(const bf16*, const bf16*, bf16*, int64_t, int64_t, int64_t,
                                      const AddBias<bf16, Activation::gelu>&, float, float,
                                      GemmVersion, cudaStream_t, DebugInfo);
template std::string_view launch_grouped_gemm(const bf16*, const bf16*, bf16*, const int32_t*,
                                              int64_t, int64_t, int64_t, int64_t, const MoeConfig&,
                                              cudaStream_t, DebugInfo);
template std::string_view execute_grouped(const float*, const float*, float*, const int32_t*,
                                          int64_t, int64_t, int64_t, int64_t, const MoeConfig&,
                                          cudaStream_t, DebugInfo);
template std::string_view launch_masked_gemm(const f16*, const f16*, f16*, const int32_t*, int64_t,
                                             int64_t, int64_t, int64_t, const MoeConfig&,
                                             cudaStream_t, DebugInfo);
template std::string_view FP8GEMM::execute(const e4m3*, const e4m3*, float*, int64_t, int64_t,
                                           int64_t, float, float, MemoryLayout, cudaStream_t,
                                           DebugInfo);
template std::string_view launch_conv2d<ConvActivation::relu6>(const bf16*, const bf16*, bf16*,
                                                               const ConvShape&,
                                                               const ConvArguments<bf16>&,
                                                               cudaStream_t, DebugInfo);
template std::string_view launch_depthwise_conv2d<ConvActivation::relu6>(const f16*, const f16*,
                                                                         f16*, const ConvShape&,
                                                                         const ConvArguments<f16>&,
                                                                         cudaStream_t, DebugInfo);
template std::string_view launch_im2col(const float*, float*, const ConvShape&, cudaStream_t,
                                        DebugInfo);
template std::string_view launch_cast(const int64_t*, e4m3*, int64_t, cudaStream_t, DebugInfo);
template std::string_view launch_pow(const bf16*, const float*, float*, int64_t, cudaStream_t,
                                     DebugInfo);
template std::string_view launch_add(const int32_t*, const int32_t*, int32_t*, int64_t,
                                     cudaStream_t, DebugInfo);

}  // namespace tensorcraft::kernels
