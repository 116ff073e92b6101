// SPDX-License-Identifier: Apache-2.0
// Element by element: the library's operators, and functions of the user.
#include "tensorcraft/kernels/elementwise.cuh"

#include "report.hpp"

namespace aot_routes {
namespace {

using View = TensorView;

// What a launcher of one or two inputs and its operator are called.
template <class T>
struct Unary {
  const char* name;
  std::string_view (*launcher)(const T*, T*, int64_t, cudaStream_t, DebugInfo);
  void (*library)(const View&, const View&, const ElementwiseOptions&);
};
template <class T>
struct Binary {
  const char* name;
  std::string_view (*launcher)(const T*, const T*, T*, int64_t, cudaStream_t, DebugInfo);
  void (*library)(const View&, const View&, const View&, const ElementwiseOptions&);
};

template <class T>
const Unary<T> kUnary[] = {{"negative", tk::launch_negative<T>, negative},
                           {"abs", tk::launch_abs<T>, abs},
                           {"round", tk::launch_round<T>, round},
                           {"exp", tk::launch_exp<T>, exp},
                           {"log", tk::launch_log<T>, log},
                           {"sqrt", tk::launch_sqrt<T>, sqrt},
                           {"rsqrt", tk::launch_rsqrt<T>, rsqrt},
                           {"tanh", tk::launch_tanh<T>, tanh},
                           {"sigmoid", tk::launch_sigmoid<T>, sigmoid},
                           {"relu", tk::launch_relu<T>, relu},
                           {"silu", tk::launch_silu<T>, silu}};
template <class T>
const Binary<T> kBinary[] = {{"add", tk::launch_add<T, T, T>, add},
                             {"subtract", tk::launch_subtract<T, T, T>, subtract},
                             {"multiply", tk::launch_multiply<T, T, T>, multiply},
                             {"divide", tk::launch_divide<T, T, T>, divide},
                             {"maximum", tk::launch_maximum<T, T, T>, maximum},
                             {"minimum", tk::launch_minimum<T, T, T>, minimum},
                             {"pow", tk::launch_pow<T, T, T>, pow}};

template <class T>
void operators(Report& report, int64_t n) {
  const Tensor a = filled<T>({n}, 14), b = filled<T>({n}, 15);
  Tensor out = filled<T>({n}, 16);
  T *pa = data<T>(a), *pb = data<T>(b), *po = data<T>(out);
  const auto name = [&](const char* op) { return join(op, ' ', a.dtype(), ' ', n); };
  for (const auto& c : kBinary<T>)
    report.compare({name(c.name),
                    {&out},
                    [&] { return c.launcher(pa, pb, po, n, stream(), {}); },
                    [&](std::string_view v) { c.library(out, a, b, {.variant = v}); }});
  for (const auto& c : kUnary<T>)
    report.compare({name(c.name),
                    {&out},
                    [&] { return c.launcher(pa, po, n, stream(), {}); },
                    [&](std::string_view v) { c.library(out, a, {.variant = v}); }});
  report.compare({name("copy"),
                  {&out},
                  [&] { return tk::launch_copy(pa, po, n, stream()); },
                  [&](std::string_view v) { copy(out, a, {.variant = v}); }});
  report.compare({name("gelu"),
                  {&out},
                  [&] { return tk::launch_gelu(pa, po, n, stream()); },
                  [&](std::string_view v) { gelu(out, a, {.variant = v}); }});
  report.compare({name("gelu_tanh"),
                  {&out},
                  [&] { return tk::launch_gelu_tanh(pa, po, n, stream()); },
                  [&](std::string_view v) {
                    gelu(out, a, {.approximate = GeluApproximation::tanh, .variant = v});
                  }});
  report.compare({name("leaky_relu"),
                  {&out},
                  [&] { return tk::launch_leaky_relu(pa, po, n, 0.1f, stream()); },
                  [&](std::string_view v) { leaky_relu(out, a, {.alpha = 0.1f, .variant = v}); }});
  report.compare({name("elu"),
                  {&out},
                  [&] { return tk::launch_elu(pa, po, n, 1.5f, stream()); },
                  [&](std::string_view v) { elu(out, a, {.alpha = 1.5f, .variant = v}); }});
  report.compare({name("swish"),
                  {&out},
                  [&] { return tk::launch_swish(pa, po, n, 2.0f, stream()); },
                  [&](std::string_view v) { swish(out, a, {.beta = 2.0f, .variant = v}); }});
  report.compare({name("fill"),
                  {&out},
                  [&] { return tk::launch_fill(po, n, T(2.5f), stream()); },
                  [&](std::string_view v) { fill(out, out, {.value = 2.5, .variant = v}); }});
}

template <class T, class Out>
void conversion(Report& report, int64_t n) {
  const Tensor x = filled<T>({n}, 17);
  Tensor out = filled<Out>({n}, 18);
  report.compare(
      {join("astype ", x.dtype(), ' ', out.dtype(), ' ', n),
       {&out},
       [&] { return tk::launch_cast(data<T>(x), data<Out>(out), n, stream()); },
       [&](std::string_view v) { astype(out, x, {.dtype = out.dtype(), .variant = v}); }});
}

struct Negated {
  __device__ float operator()(float x) const { return -x; }
};
struct Added {
  __device__ float operator()(float x, float y) const { return x + y; }
};

// A user's function of one and of two inputs, whose elements begin `offset` behind a 16-byte
// boundary, against the operators that compute the same.
template <class T>
void functions(Report& report, int64_t n, int64_t offset) {
  const Tensor a = filled<T>({n + offset}, 19), b = filled<T>({n + offset}, 20);
  Tensor out = filled<T>({n + offset}, 21);
  T *pa = data<T>(a) + offset, *pb = data<T>(b) + offset, *po = data<T>(out) + offset;
  const auto view = [&](T* data) { return TensorView(data, a.dtype(), {n}, kGpu); };
  const auto name = [&](const char* function) {
    return join("elementwise ", function, ' ', a.dtype(), ' ', n, " from ", offset);
  };
  report.compare({name("-x"),
                  {&out},
                  [&] {
                    tk::launch_elementwise(pa, po, n, Negated{}, stream());
                    return std::string_view();
                  },
                  [&](std::string_view) { negative(view(po), view(pa)); }});
  report.compare({name("x + y"),
                  {&out},
                  [&] {
                    tk::launch_elementwise(pa, pb, po, n, Added{}, stream());
                    return std::string_view();
                  },
                  [&](std::string_view) { add(view(po), view(pa), view(pb)); }});
}

}  // namespace

void compare_elements(Report& report) {
  // Long enough that the launch does not count.
  operators<float>(report, int64_t(1) << 25);
  operators<bf16>(report, (int64_t(1) << 26) + 5);
  conversion<float, bf16>(report, 1 << 22);
  conversion<int64_t, f16>(report, 100003);
  for (const int64_t offset : {0, 1})
    for (const int64_t n : {1, 3, 4, 5, 1023, (1 << 20) + 3}) {
      functions<float>(report, n, offset);
      functions<bf16>(report, n, offset);
    }
  functions<bf16>(report, (int64_t(1) << 26) + 5, 0);  // more than a grid covers at once
  functions<float>(report, (int64_t(1) << 25) + 5, 1);
}

}  // namespace aot_routes
