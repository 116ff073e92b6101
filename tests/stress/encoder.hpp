// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/tensorcraft.hpp"

#include <cmath>
#include <vector>

// A model of two encoder layers through the public operators, as a program would write it: what the
// fault tests run.
namespace tensorcraft::test {

struct EncoderShape {
  int64_t batch = 2, tokens = 8, heads = 2, head_dim = 32, hidden = 128, words = 16;
  int64_t width() const { return heads * head_dim; }
  int64_t rows() const { return batch * tokens; }
};

class Encoder {
 public:
  // variant: of every operator, as on the CPU "reference"; empty: the best.
  explicit Encoder(Device device, std::string_view variant = {})
      : device_(device), variant_(variant) {}

  // Allocates, copies, launches and waits on two streams of its own.
  std::vector<float> run() {
    if (!device_.is_cuda()) return forward();
    // Copies to the device go through a stream of their own: an event orders them.
    const Stream compute(device_.index), upload(device_.index);
    compute_ = compute;
    upload_ = upload;
    const StreamRef before = current_stream(device_.index);
    struct Restore {
      StreamRef stream;
      ~Restore() { set_current_stream(stream); }
    } const restore{before};
    set_current_stream(compute);
    std::vector<float> result = forward();
    Event done(device_.index);
    done.record(compute);
    done.synchronize();
    return result;
  }

 private:
  // Values in [-scale, scale] that look random and differ from tensor to tensor.
  Tensor weights(const Dims& shape, float scale) {
    std::vector<float> values(size_t(num_elements(shape)));
    for (float& value : values) {
      state_ = state_ * 1664525u + 1013904223u;
      value = scale * (float(state_ >> 8) / float(1 << 23) - 1);
    }
    return uploaded(DType::float32, shape, values.data());
  }

  Tensor uploaded(DType dtype, const Dims& shape, const void* values) {
    Tensor tensor(dtype, shape, device_, upload_);
    tensor.copy_from_host(values, tensor.nbytes());
    return tensor;
  }

  Tensor linear(const TensorView& x, int64_t out, Activation activation = Activation::none) {
    const int64_t in = x.shape(1);
    const Tensor weight = weights({in, out}, 1 / std::sqrt(float(in))), bias = weights({out}, 0.5f);
    Tensor y =
        gemm(x, weight, {.bias = bias.view(), .activation = activation, .variant = variant_});
    wait_for_compute();
    return y;
  }

  // Memory that was freed on the upload stream must not go before the work that reads it is done.
  void wait_for_compute() {
    if (!device_.is_cuda()) return;
    Event read(device_.index);
    read.record(compute_);
    read.wait(upload_);
  }

  // By name on a device: of rows so short the best variant has no instance on the emulator.
  Tensor normed(const TensorView& x, const TensorView& residual) {
    const Tensor weight = weights({x.shape(1)}, 1);
    Tensor y = std::move(layer_norm(x, {.weight = weight.view(),
                                        .residual = residual,
                                        .variant = device_.is_cuda() ? "block" : variant_})
                             .out);
    wait_for_compute();
    return y;
  }

  Tensor attended(const TensorView& x) {
    const Dims heads{shape_.batch, shape_.tokens, shape_.heads, shape_.head_dim};
    const Tensor q = linear(x, shape_.width()), k = linear(x, shape_.width()),
                 v = linear(x, shape_.width());
    const auto split = [&](const Tensor& t) {
      return TensorView(t.data(), t.dtype(), heads, t.device());
    };
    return std::move(
        attention(split(q), split(k), split(v),
                  {.causal = true, .layout = AttentionLayout::bshd, .variant = variant_})
            .out);
  }

  std::vector<float> forward() {
    state_ = 1;
    std::vector<int32_t> words(size_t(shape_.rows()));
    for (size_t i = 0; i < words.size(); ++i) words[i] = int32_t(i * 7 % size_t(shape_.words));
    const Tensor ids = uploaded(DType::int32, {shape_.rows()}, words.data());
    const Tensor table = weights({shape_.words, shape_.width()}, 1);
    Tensor x = embedding(ids, table, {.variant = variant_});
    for (int layer = 0; layer < 2; ++layer) {
      const Tensor mixed = attended(x);
      const TensorView rows(mixed.data(), mixed.dtype(), x.shape(), mixed.device());
      x = normed(linear(rows, shape_.width()), x);
      const Tensor hidden = linear(x, shape_.hidden, Activation::gelu);
      x = normed(linear(hidden, shape_.width()), x);
    }
    wait_for_compute();
    std::vector<float> result(size_t(x.size()));
    x.copy_to_host(result.data(), x.nbytes());
    return result;
  }

  const Device device_;
  const std::string_view variant_;
  const EncoderShape shape_;
  StreamRef compute_, upload_;
  uint32_t state_ = 1;
};

}  // namespace tensorcraft::test
