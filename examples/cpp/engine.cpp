// SPDX-License-Identifier: Apache-2.0
// One decoder layer of a language model: weights from a file, one packed projection, attention and
// a feed-forward network. docs/cpp.md explains it part by part.
#include "example_weights.hpp"
#include "tensorcraft/tensorcraft.hpp"

#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace tc = tensorcraft;

constexpr int64_t kHidden = 32, kHeads = 4, kKeyHeads = 2, kDim = 8, kInner = 64;
constexpr int64_t kAllHeads = kHeads + 2 * kKeyHeads;  // queries, keys, values

// x and the result: [batch, tokens, kHidden]. Products have weights of [out, in].
tc::Tensor decoder_layer(const tc::Weights& weights, const tc::TensorView& x, int64_t start_pos) {
  const int64_t batch = x.shape(0), tokens = x.shape(1);
  const tc::Tensor normed = tc::rms_norm(x, {.weight = weights.at("norm1")});
  const tc::Tensor packed =
      tc::gemm(normed, weights.at("qkv"), {.bias = weights.at("qkv_bias"), .transpose_b = true});

  // Queries, keys and values are views of the one tensor: nothing is copied.
  const tc::TensorView heads = packed.reshape({batch, tokens, kAllHeads, kDim});
  const tc::TensorView q = heads.slice(2, 0, kHeads);
  const tc::TensorView k = heads.slice(2, kHeads, kHeads + kKeyHeads);
  const tc::TensorView v = heads.slice(2, kHeads + kKeyHeads, kAllHeads);
  tc::rope(q, q, {.k = k, .start_pos = start_pos, .k_out = k});  // both where they are

  const tc::Tensor mixed =
      tc::attention(q, k, v, {.causal = true, .layout = tc::AttentionLayout::bshd});
  // c is added to the product: the residual costs no pass of its own.
  const tc::Tensor h = tc::gemm(mixed.reshape({batch, tokens, kHeads * kDim}), weights.at("o"),
                                {.c = x, .transpose_b = true});
  const tc::Tensor inner = tc::gemm(
      tc::rms_norm(h, {.weight = weights.at("norm2")}), weights.at("up"),
      {.bias = weights.at("up_bias"), .activation = tc::Activation::gelu, .transpose_b = true});
  return tc::gemm(inner, weights.at("down"), {.c = h, .transpose_b = true});
}

// On a stream of a GPU, after what the current stream was given. The stream outlives the result.
tc::Tensor on_stream(const tc::Stream& stream, const tc::Weights& weights,
                     const tc::TensorView& x) {
  const tc::StreamRef before = tc::current_stream(x.device().index);
  tc::Event written(x.device().index);
  written.record(before);
  written.wait(stream);
  tc::set_current_stream(stream);  // of this thread, for all calls that name none
  tc::Tensor y = decoder_layer(weights, x, 0);
  tc::set_current_stream(before);
  return y;  // the work is enqueued; stream.ref().synchronize() waits for it
}

// What goes wrong is one type of exception, which says whose line it was.
void show_errors(const tc::Weights& weights, const tc::Tensor& x) {
  const auto say = [](const tc::Error& error) {
    std::cout << to_string(error.kind()) << ", line " << error.where().line() << ": "
              << error.what() << '\n';
  };
  try {
    tc::gemm(x, weights.at("qkv"));
  } catch (const tc::Error& error) {
    say(error);  // value: k differs, as transpose_b was left out
  }
  try {
    weights.at("qvk");
  } catch (const tc::Error& error) {
    say(error);  // key: there is no such tensor
  }
  try {
    x.select(0, 7);
  } catch (const tc::Error& error) {
    say(error);  // index: axis 0 has one element
  }
}

void write_example(const std::string& path) {
  example::write_weights(path, {{"norm1", {kHidden}},
                                {"qkv", {kAllHeads * kDim, kHidden}},
                                {"qkv_bias", {kAllHeads * kDim}},
                                {"o", {kHidden, kHeads * kDim}},
                                {"norm2", {kHidden}},
                                {"up", {kInner, kHidden}},
                                {"up_bias", {kInner}},
                                {"down", {kHidden, kInner}}});
}

// kHidden values for each token.
tc::Tensor example_input(int64_t tokens, tc::Device device) {
  std::vector<float> values(size_t(tokens * kHidden));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::cos(float(i));
  return tc::Tensor::from(values, {1, tokens, kHidden}, device);
}

int main(int argc, char** argv) try {
  const std::string path =
      argc > 1 ? argv[1]
               : std::filesystem::temp_directory_path() / "tensorcraft_engine.safetensors";
  if (argc < 2) write_example(path);
  const tc::Device device = tc::default_device();  // the GPU if there is one
  const tc::Weights weights = tc::load_safetensors(path, device);
  const tc::Tensor x = example_input(5, device);

  const tc::Tensor y = decoder_layer(weights, x, 0);
  std::cout << y << '\n';
  if (device.is_cuda()) {
    const tc::Stream stream(device.index);
    const tc::Tensor again = on_stream(stream, weights, x);
    stream.ref().synchronize();
    std::cout << (again.to_vector<float>() == y.to_vector<float>() ? "equal\n" : "different\n");
  }
  show_errors(weights, x);
  return 0;
} catch (const tc::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
