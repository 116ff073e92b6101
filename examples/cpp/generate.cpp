// SPDX-License-Identifier: Apache-2.0
// A language model continues a prompt, greedily: the model of examples/chat/llama.py, from a file
// that examples/chat/export.py writes. usage: generate MODEL.safetensors COUNT ID...    prints the
// ids of up to COUNT further tokens
#include "tensorcraft/tensorcraft.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tc = tensorcraft;

constexpr int64_t kPageSize = 16;

template <class T>
T number(const std::string& text, const std::string& what) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument(what + " is \"" + text + "\", expected a number");
  return value;
}

// What the file says of the model beside its weights.
struct Config {
  int64_t layers, heads, heads_k, context, end;
  float rope_base, eps;

  explicit Config(const tc::SafeTensors& file) {
    std::map<std::string, std::string> said;
    for (const auto& [key, value] : file.metadata()) said[key] = value;
    const auto ask = [&](const std::string& key) {
      if (!said.contains(key)) throw std::invalid_argument("the file does not say " + key);
      return said.at(key);
    };
    layers = number<int64_t>(ask("layers"), "layers");
    heads = number<int64_t>(ask("heads"), "heads");
    heads_k = number<int64_t>(ask("heads_k"), "heads_k");
    context = number<int64_t>(ask("context"), "context");
    end = number<int64_t>(ask("end"), "end");
    rope_base = number<float>(ask("rope_base"), "rope_base");
    eps = number<float>(ask("eps"), "eps");
  }
};

class Llama {
 public:
  Llama(const std::string& path, tc::Device device)
      : config(tc::SafeTensors(path)),
        device_(device),
        weights_(tc::load_safetensors(path, device)) {
    const tc::TensorView embedding = weights_.at("embedding");
    output_ = weights_.contains("output") ? "output" : "embedding";
    hidden_ = embedding.shape(1);
    head_dim_ = hidden_ / config.heads;
    const int64_t pages = (config.context + kPageSize - 1) / kPageSize;
    for (int64_t i = 0; i < 2 * config.layers; ++i)
      caches_.emplace_back(embedding.dtype(), tc::Dims{pages, config.heads_k, kPageSize, head_dim_},
                           device);
    table_ = integers(0, pages);  // one request has all pages, in their order
    angles_ =
        tc::rope_cache(integers(0, config.context), {.dim = head_dim_, .base = config.rope_base});
  }

  // The id of the likeliest token after those computed so far and these.
  int64_t next(std::span<const int32_t> ids) {
    const auto count = int64_t(ids.size());
    const Tokens tokens{integers(computed_, count),
                        tc::Tensor::from(std::vector{int32_t(computed_ + count)}, {1}, device_)};
    tc::Tensor x = tc::embedding(tc::Tensor::from(ids, {count}, device_), weights_.at("embedding"));
    tc::Tensor y =
        tc::rms_norm(x, {.weight = weights_.at("layers.0.attention_norm"), .eps = config.eps});
    for (int64_t layer = 0; layer < config.layers; ++layer) {
      const std::string name = "layers." + std::to_string(layer) + ".";
      const tc::Tensor mixed = attention(layer, y, tokens);
      y = add_and_norm(name + "feed_forward_norm",
                       linear(name + "o", mixed.reshape({count, hidden_})), x);
      const tc::Tensor inner = tc::gemm(y, weights_.at(name + "gate_up"),
                                        {.transpose_b = true, .gated = tc::Gate::silu});
      const bool last = layer + 1 == config.layers;
      y = add_and_norm(last ? "norm" : "layers." + std::to_string(layer + 1) + ".attention_norm",
                       linear(name + "down", inner), x);
    }
    computed_ += count;
    const tc::Tensor logits = tc::gemm(y.slice(0, count - 1, count), weights_.at(output_),
                                       {.transpose_b = true, .out_dtype = tc::DType::float32});
    return tc::argmax(logits).to_vector<int64_t>()[0];
  }

  Config config;

 private:
  // Of the new tokens: their positions, which are their slots too; and how many there are then.
  struct Tokens {
    tc::Tensor positions, length;
  };

  tc::Tensor integers(int64_t first, int64_t count) const {
    std::vector<int32_t> values(size_t(count), 0);
    std::iota(values.begin(), values.end(), int32_t(first));
    return tc::Tensor::from(values, {count}, device_);
  }

  tc::Tensor linear(const std::string& name, const tc::TensorView& x) const {
    return tc::gemm(x, weights_.at(name), {.transpose_b = true});
  }

  // x becomes the sum, and the result is its norm.
  tc::Tensor add_and_norm(const std::string& name, const tc::TensorView& y, tc::Tensor& x) const {
    tc::RmsNormResult result =
        tc::rms_norm(y, {.weight = weights_.at(name), .eps = config.eps, .residual = x});
    x = std::move(result.residual_out);
    return std::move(result.out);
  }

  tc::Tensor attention(int64_t layer, const tc::TensorView& x, const Tokens& tokens) const {
    const int64_t count = x.shape(0), heads = config.heads, heads_k = config.heads_k;
    const tc::Tensor& k_cache = caches_[size_t(2 * layer)];
    const tc::Tensor& v_cache = caches_[size_t(2 * layer + 1)];
    const tc::Tensor packed = linear("layers." + std::to_string(layer) + ".qkv", x);
    const tc::TensorView qkv = packed.reshape({count, heads + 2 * heads_k, head_dim_});
    const tc::TensorView q = qkv.slice(1, 0, heads);
    // Rotates q where it is, and k on the way into the cache.
    tc::append_kv(k_cache, v_cache, qkv.slice(1, heads, heads + heads_k),
                  qkv.slice(1, heads + heads_k, heads + 2 * heads_k), tokens.positions,
                  {.q = q,
                   .cos = angles_.select(0, 0),
                   .sin = angles_.select(0, 1),
                   .positions = tokens.positions,
                   .layout = tc::CacheLayout::hnd,
                   .q_out = q});
    return tc::paged_attention(q.expand_dims(0), k_cache, v_cache, table_.view().expand_dims(0),
                               tokens.length, {.layout = tc::CacheLayout::hnd});
  }

  tc::Device device_;
  tc::Weights weights_;
  std::string output_;
  int64_t hidden_, head_dim_, computed_ = 0;
  std::vector<tc::Tensor> caches_;  // keys and values of each layer
  tc::Tensor table_, angles_;
};

std::vector<int32_t> prompt_of(std::span<char*> words) {
  std::vector<int32_t> ids;
  for (const char* word : words) ids.push_back(number<int32_t>(word, "an id of the prompt"));
  return ids;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::cerr << "usage: generate MODEL.safetensors COUNT ID...\n";
    return 2;
  }
  const auto count = number<int64_t>(argv[2], "COUNT");
  if (count < 1) throw std::invalid_argument("COUNT is below 1");
  std::vector<int32_t> ids = prompt_of(std::span(argv, size_t(argc)).subspan(3));
  const tc::Device device = tc::default_device();  // the GPU if there is one
  Llama model(argv[1], device);
  if (int64_t(ids.size()) + count > model.config.context)
    throw std::invalid_argument("prompt and answer do not fit in the context, " +
                                std::to_string(model.config.context) + " tokens");
  const double begin = seconds();
  double first = begin;
  int64_t made = 0;
  while (made < count) {
    const int64_t id = model.next(ids);
    if (made++ == 0) first = seconds();
    std::cout << id << (made < count ? " " : "") << std::flush;
    ids = {int32_t(id)};
    if (id == model.config.end) break;
  }
  std::cout << '\n';
  std::cerr << device << ": first token after " << first - begin << " s, then "
            << double(made - 1) / (seconds() - first) << " tokens/s\n";
  return 0;
} catch (const std::exception& error) {  // tc::Error is one
  std::cerr << "generate: " << error.what() << '\n';
  return 1;
}
