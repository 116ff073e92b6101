// SPDX-License-Identifier: Apache-2.0
// Runs launchers of several operators on the GPU and compares with a reference in double. Exit code
// 77 without a GPU.
#include "reference.hpp"
#include "tensorcraft/kernels/all.cuh"

#include <iostream>
#include <random>

namespace tc = tensorcraft;
namespace tk = tensorcraft::kernels;
using reference::Values;

// An array that the host and the GPU both see.
template <class T>
class Array {
 public:
  explicit Array(size_t size) : size_(size) {
    TC_CUDA_CHECK(cudaMallocManaged(&data_, size * sizeof(T)));
  }
  ~Array() { cudaFree(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  // Random values of a normal distribution, rounded to T.
  static Array& normal(Array& array, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> value;
    for (size_t i = 0; i < array.size_; ++i) array.data_[i] = T(value(random));
    return array;
  }
  T* get() const { return data_; }
  Values values() const {
    TC_CUDA_CHECK(cudaDeviceSynchronize());
    Values v(size_);
    for (size_t i = 0; i < size_; ++i) v[i] = double(float(data_[i]));
    return v;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

template <class T>
struct Random : Array<T> {
  Random(size_t size, unsigned seed) : Array<T>(size) { Array<T>::normal(*this, seed); }
};

bool all_passed = true;

// Within `tolerance` of the largest value expected.
void expect(const char* name, std::string_view variant, const Values& got, const Values& expected,
            double tolerance) {
  double worst = 0, largest = 1e-30;
  for (const double x : expected) largest = std::fmax(largest, std::fabs(x));
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(got[i] - expected[i]) / largest;
    worst = error <= worst ? worst : error;  // takes NaN too
  }
  const bool passed = worst <= tolerance;
  all_passed = all_passed && passed;
  std::cout << (passed ? "ok   " : "FAIL ") << name << ' ' << variant << ": error " << worst
            << '\n';
}

constexpr double kFloat = 2e-6, kBf16 = 6e-3, kFp8 = 8e-2;

// A function of the user, compiled into the kernel.
struct SquareAndAdd {
  float added;
  __device__ float operator()(float x) const { return x * x + added; }
};

void elementwise() {
  constexpr int64_t n = 100003;
  const Random<float> a(n, 1), b(n, 2);
  const Array<float> out(n);
  Values expected = a.values();
  tk::launch_elementwise(a.get(), out.get(), n, SquareAndAdd{3});
  for (double& x : expected) x = x * x + 3;
  expect("elementwise", "", out.values(), expected, kFloat);

  const auto add = tk::launch_add(a.get(), b.get(), out.get(), n);
  const Values x = a.values(), y = b.values();
  for (size_t i = 0; i < n; ++i) expected[i] = x[i] + y[i];
  expect("add", add, out.values(), expected, kFloat);

  const auto gelu = tk::launch_gelu(a.get(), out.get(), n);
  for (size_t i = 0; i < n; ++i) expected[i] = x[i] * 0.5 * std::erfc(-x[i] / std::sqrt(2.0));
  expect("gelu", gelu, out.values(), expected, kFloat);

  const Array<tc::bf16> narrow(n);
  const auto cast = tk::launch_cast(a.get(), narrow.get(), n);
  expect("cast", cast, narrow.values(), x, kBf16);
  const auto fill = tk::launch_fill(out.get(), n, 2.5f);
  expect("fill", fill, out.values(), Values(n, 2.5), 0);
  const auto copy = tk::launch_copy(a.get() + 1, out.get() + 1, n - 1);  // not aligned
  Values moved = x;
  moved[0] = 2.5;
  expect("copy", copy, out.values(), moved, 0);
}

template <class T>
void rows(int64_t count, int64_t cols, double tolerance) {
  const Random<T> x(size_t(count * cols), 3), weight(size_t(cols), 4), bias(size_t(cols), 5);
  const Array<T> out(size_t(count * cols));
  const auto softmax = tk::launch_softmax(x.get(), out.get(), count, cols);
  expect("softmax", softmax, out.values(), reference::softmax(x.values(), count, cols), tolerance);
  const auto l2 = tk::launch_l2_normalize(x.get(), out.get(), count, cols);
  expect("l2_normalize", l2, out.values(), reference::l2_normalize(x.values(), count, cols),
         tolerance);
  const auto rms = tk::launch_rms_norm(x.get(), weight.get(), out.get(), count, cols);
  expect("rms_norm", rms, out.values(),
         reference::rms_norm(x.values(), weight.values(), count, cols, 1e-6), tolerance);
  const auto layer =
      tk::launch_layer_norm(x.get(), weight.get(), bias.get(), out.get(), count, cols);
  expect("layer_norm", layer, out.values(),
         reference::layer_norm(x.values(), weight.values(), bias.values(), count, cols, 1e-5),
         tolerance);
}

template <class T>
void gemm(tk::GemmVersion version, double tolerance) {
  constexpr int64_t m = 130, n = 136, k = 72;
  const Random<T> a(m * k, 6), b(k * n, 7), c(m * n, 8);
  const Values expected =
      reference::gemm(a.values(), b.values(), c.values(), m, n, k, 0.5, 2, false);
  const auto variant = tk::launch_gemm(a.get(), b.get(), c.get(), m, n, k, 0.5f, 2.0f, version);
  expect("gemm", variant, c.values(), expected, tolerance);
}

// What a product's functor does to each sum: a bias by column, and an activation of one's own.
struct BiasAndSquare {
  const tc::bf16* bias;
  TC_DEVICE float operator()(float x, int64_t, int64_t col) const {
    const float y = x + float(bias[col]);
    return y > 0 ? y * y : 0;
  }
};

void finished_gemm(double tolerance) {
  constexpr int64_t m = 130, n = 136, k = 72;
  const Random<tc::bf16> a(m * k, 6), b(k * n, 7), bias(n, 8);
  const Array<tc::bf16> c(m * n);
  Values expected = reference::gemm(a.values(), b.values(), {}, m, n, k, 1, 0, false);
  const Values addend = bias.values();
  for (size_t i = 0; i < expected.size(); ++i) {
    const double y = expected[i] + addend[i % size_t(n)];
    expected[i] = y > 0 ? y * y : 0;
  }
  const auto variant =
      tk::launch_gemm(a.get(), b.get(), c.get(), m, n, k, BiasAndSquare{bias.get()}, 1.0f, 0.0f,
                      tk::GemmVersion::TensorCore);
  expect("gemm with a functor", variant, c.values(), expected, tolerance);
}

template <class GEMM, class T, class Out>
void interface(double tolerance) {
  constexpr int64_t m = 96, n = 80, k = 64;
  const Random<T> a(m * k, 9), b(n * k, 10);
  const Array<Out> d(m * n);
  const auto variant = GEMM::execute(a.get(), b.get(), d.get(), m, n, k);  // B is [n, k]
  expect("GEMMInterface", variant, d.values(),
         reference::gemm(a.values(), b.values(), {}, m, n, k, 1, 0, true), tolerance);
}

template <class T>
void attention(double tolerance) {
  constexpr int64_t queries = 70, keys = 100, d = 64;
  const Random<T> q(queries * d, 11), k(keys * d, 12), v(keys * d, 13);
  const Array<T> out(queries * d);
  const auto variant = tk::launch_attention(
      q.get(), k.get(), v.get(), out.get(),
      {.batch = 1, .heads = 1, .heads_k = 1, .seq_q = queries, .seq_k = keys, .head_dim = d});
  expect("attention", variant, out.values(),
         reference::attention(q.values(), k.values(), v.values(), queries, keys, d), tolerance);
}

void gathers() {
  constexpr int64_t cols = 40, steps = 6;
  const Random<float> table(10 * cols, 14), x(2 * steps * cols, 15);
  const Array<int32_t> ids(3), lengths(2);
  for (int i = 0; i < 3; ++i) ids.get()[i] = 9 - i;
  for (int i = 0; i < 2; ++i) lengths.get()[i] = 4 - i;
  const Array<float> out(3 * cols), mean(2 * cols);
  const auto embedding = tk::launch_embedding(ids.get(), table.get(), out.get(), 3, 10, cols);
  const Values rows = table.values(), values = x.values();
  Values expected(3 * cols), means(2 * cols);
  for (int64_t i = 0; i < 3 * cols; ++i)
    expected[size_t(i)] = rows[size_t((9 - i / cols) * cols + i % cols)];
  expect("embedding", embedding, out.values(), expected, 0);
  const auto masked = tk::launch_masked_mean(x.get(), lengths.get(), mean.get(), 2, steps, cols);
  for (int64_t i = 0; i < 2 * cols; ++i)
    for (int64_t s = 0; s < 4 - i / cols; ++s)
      means[size_t(i)] +=
          values[size_t((i / cols * steps + s) * cols + i % cols)] / double(4 - i / cols);
  expect("masked_mean", masked, mean.values(), means, kFloat);
}

void losses() {
  constexpr int64_t count = 9, classes = 1100;
  const Random<tc::bf16> x(count * classes, 16);
  const Array<tc::bf16> out(count * classes), sums(count);
  const auto log = tk::launch_log_softmax(x.get(), out.get(), count, classes);
  Values expected = reference::softmax(x.values(), count, classes), lse(count), each(count);
  for (double& weight : expected) weight = std::log(weight);
  expect("log_softmax", log, out.values(), expected, kBf16);
  const auto sum = tk::launch_logsumexp(x.get(), sums.get(), count, classes);
  const Values values = x.values();
  for (int64_t i = 0; i < count; ++i)
    lse[size_t(i)] = values[size_t(i * classes)] - expected[size_t(i * classes)];
  expect("logsumexp", sum, sums.values(), lse, kBf16);

  const Array<int64_t> targets(count);
  for (int64_t i = 0; i < count; ++i) targets.get()[i] = i == 4 ? -100 : i * 100;
  const Array<float> losses(count), logarithms(count), mean(1);
  const auto entropy = tk::launch_cross_entropy(x.get(), targets.get(), losses.get(),
                                                logarithms.get(), count, classes);
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    each[size_t(i)] = i == 4 ? 0 : -expected[size_t(i * classes + i * 100)];
    total += each[size_t(i)];
  }
  expect("cross_entropy", entropy, losses.values(), each, kFloat * 4);
  expect("cross_entropy lse", entropy, logarithms.values(), lse, kFloat * 4);
  const auto reduced = tk::launch_mean_loss(losses.get(), mean.get(), count);
  expect("mean_loss", reduced, mean.values(), Values(1, total / (count - 1)), kFloat * 4);
}

int main() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::cout << "skipped: there is no GPU\n";
    return 77;
  }
  try {
    elementwise();
    rows<float>(33, 1024, kFloat);
    rows<tc::bf16>(7, 1000, kBf16);
    losses();
    gemm<float>(tk::GemmVersion::Naive, kFloat);
    gemm<float>(tk::GemmVersion::Tiled, kFloat);
    gemm<tc::bf16>(tk::GemmVersion::TensorCore, kBf16);
    finished_gemm(kBf16);
    if (tk::current_gpu({}).architecture == 90) gemm<tc::bf16>(tk::GemmVersion::WGMMA_TMA, kBf16);
    interface<tk::FP32GEMM, float, float>(kFloat);
    interface<tk::BF16GEMM, tc::bf16, tc::bf16>(kBf16);
    interface<tk::FP16GEMM, tc::f16, float>(kBf16);
    interface<tk::FP8GEMM, tc::e4m3, tc::e4m3>(kFp8);
    attention<float>(kFloat * 4);
    attention<tc::bf16>(kBf16);
    gathers();
    TC_CUDA_CHECK(cudaDeviceSynchronize());
  } catch (const std::exception& error) {
    std::cout << error.what() << '\n';
    return 1;
  }
  return all_passed ? 0 : 1;
}
