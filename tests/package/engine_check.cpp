// SPDX-License-Identifier: Apache-2.0
// The decoder layer of examples/cpp/engine.cpp against plain loops in double.
#define main engine_main
#include "../../examples/cpp/engine.cpp"
#undef main

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using Values = std::vector<double>;

Values values_of(const tc::TensorView& view) {
  tc::Tensor copy(view.dtype(), view.shape(), view.device());
  tc::copy(copy, view);
  const std::vector<float> values = copy.to_vector<float>();
  return {values.begin(), values.end()};
}

// One row for each token: x / rms(x) * weight.
Values norm(const Values& x, const Values& weight) {
  const size_t n = weight.size();
  Values y(x.size());
  for (size_t row = 0; row < x.size(); row += n) {
    double squares = 0;
    for (size_t i = 0; i < n; ++i) squares += x[row + i] * x[row + i];
    for (size_t i = 0; i < n; ++i)
      y[row + i] = x[row + i] / std::sqrt(squares / double(n) + 1e-6f) * weight[i];
  }
  return y;
}

// x W^T for W [out, in].
Values product(const Values& x, const Values& weight, int64_t in) {
  const size_t k = size_t(in), out = weight.size() / k, rows = x.size() / k;
  Values y(rows * out);
  for (size_t r = 0; r < rows; ++r)
    for (size_t o = 0; o < out; ++o)
      for (size_t i = 0; i < k; ++i) y[r * out + o] += x[r * k + i] * weight[o * k + i];
  return y;
}

void add(Values& x, const Values& more) {  // more is repeated for each row
  for (size_t i = 0; i < x.size(); ++i) x[i] += more[i % more.size()];
}

// Turns elements i and i + kDim / 2 of a head.
void rotate(double* head, double position) {
  const int64_t half = kDim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double angle = position * std::pow(10000.0, -2.0 * double(i) / kDim);
    const double a = head[i], b = head[i + half];
    head[i] = a * std::cos(angle) - b * std::sin(angle);
    head[i + half] = b * std::cos(angle) + a * std::sin(angle);
  }
}

// One query over the keys up to its own token.
void attend(double* out, const Values& packed, int64_t token, int64_t head) {
  const auto at = [&](int64_t t, int64_t h) { return &packed[size_t((t * kAllHeads + h) * kDim)]; };
  const int64_t key_head = kHeads + head / (kHeads / kKeyHeads);
  Values weights;
  double sum = 0;
  for (int64_t t = 0; t <= token; ++t) {
    double score = 0;
    for (int64_t i = 0; i < kDim; ++i) score += at(token, head)[i] * at(t, key_head)[i];
    weights.push_back(std::exp(score / std::sqrt(double(kDim))));
    sum += weights.back();
  }
  for (int64_t t = 0; t <= token; ++t)
    for (int64_t i = 0; i < kDim; ++i)
      out[i] += weights[size_t(t)] / sum * at(t, key_head + kKeyHeads)[i];
}

Values plain_layer(const tc::Weights& weights, const Values& x, int64_t tokens, int64_t start) {
  const auto w = [&](const char* name) { return values_of(weights.at(name)); };
  Values packed = product(norm(x, w("norm1")), w("qkv"), kHidden);
  add(packed, w("qkv_bias"));
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < kHeads + kKeyHeads; ++h)
      rotate(&packed[size_t((t * kAllHeads + h) * kDim)], double(start + t));
  Values mixed(size_t(tokens * kHeads * kDim));
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < kHeads; ++h)
      attend(&mixed[size_t((t * kHeads + h) * kDim)], packed, t, h);
  Values hidden = product(mixed, w("o"), kHeads * kDim);
  add(hidden, x);
  Values inner = product(norm(hidden, w("norm2")), w("up"), kHidden);
  add(inner, w("up_bias"));
  for (double& v : inner) v *= 0.5 * std::erfc(-v / std::sqrt(2.0));
  Values y = product(inner, w("down"), kInner);
  add(y, hidden);
  return y;
}

double largest_difference(const Values& a, const Values& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= most)) most = difference;  // a NaN too
  }
  return most;
}

}  // namespace

// engine_check FILE: 0 if all numbers are right.
int main(int, char** argv) {
  write_example(argv[1]);
  const tc::Device device = tc::default_device();
  const tc::Weights weights = tc::load_safetensors(argv[1], device);
  for (const int64_t tokens : {1, 5, 17})
    for (const int64_t start : {0, 3}) {
      const tc::Tensor x = example_input(tokens, device);
      const double difference =
          largest_difference(values_of(decoder_layer(weights, x, start)),
                             plain_layer(weights, values_of(x), tokens, start));
      std::cout << tokens << " tokens from " << start << " on " << device << ": " << difference
                << '\n';
      if (!(difference < 2e-5)) return 1;
    }
}
