// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/support/simt_cases.hpp"
#include "tests/support/sparse_tensor.hpp"
#include "tests/support/tolerance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

// Every operator with a tensor whose rows are more than 2^31 elements apart, by every row of its
// table on the CPU and every rung on the emulator: the result is the reference's of the compact
// tensor. The calls are those of tests/ops/cases, with one stride of one tensor made far.
namespace tensorcraft::test {
namespace {

// Past 2^31 and, if the axis is long enough, only the product of index and stride.
constexpr int64_t kFar = 3 * (int64_t(1) << 31) + 64, kProduct = (int64_t(1) << 30) + 64;
constexpr int64_t kSmall = 20'000;  // elements of a case

// Rows that decline every far stride, and how what they say then begins; those on a GPU have a call
// of more than 2^31 elements instead (tests/support/large_calls.cpp).
struct Reason {
  std::string_view op, variant, text;  // op empty: of every one
};
constexpr std::string_view kDense = "x and out must be dense, in the order of their axes";
constexpr Reason kReasons[] = {
    {"", "vectorized",
     "every tensor must be contiguous, one element, or an input that repeats whole vectors"},
    {"transpose", "vectorized", "neighbours of the output must be neighbours of the input"},
    {"batch_norm", "planes", kDense},
    {"batch_norm", "channels_last", "channels must be neighbours, in rows one behind another"},
    {"group_norm", "in_registers", kDense},
    {"group_norm", "cluster", kDense},
    {"quantize", "two_launches", "x and out must be contiguous"},
    {"", "fused", ""},  // expressions are compiled at run time, which no kernel of the emulator is
    {"", "strided", ""},
    {"gemm", "onednn", "oneDNN 3 is not installed"},
    {"conv2d", "onednn", "oneDNN 3 is not installed"},
    {"depthwise_conv2d", "onednn", "oneDNN 3 is not installed"},
};

// A call of a case, with views that can be replaced.
struct Call {
  std::vector<TensorView> inputs, outputs;
  std::vector<op::Value> options;
  op::Arguments arguments(std::string_view variant = {}) const {
    return {inputs, options, variant, std::nullopt};
  }
};

struct Target {
  std::string name;
  TensorView* view;
};

std::vector<Target> targets(const op::Description& d, Call& call) {
  std::vector<Target> all;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    all.push_back({std::string(d.inputs[i].name), &call.inputs[i]});
  for (size_t i = 0; i < call.options.size(); ++i)
    if (auto* view = std::get_if<TensorView>(&call.options[i]))
      all.push_back({std::string(d.options[i].name), view});
  for (size_t i = 0; i < call.outputs.size(); ++i)
    all.push_back({join("output ", i), &call.outputs[i]});
  return all;
}

int64_t num_elements_of(const Case& c) {
  int64_t sum = 0;
  for (const TensorCase& t : c.inputs) sum += num_elements(t.shape);
  return sum;
}

std::vector<Device> devices_with_far_strides() {
  std::vector<Device> all{Device::cpu()};
  if (devices().back() == Device::simt()) all.push_back(Device::simt());
  return all;
}

// The kernel of a row, whatever its dtypes: the row and, of a device row, its Config.
std::string kernel_of(const op::Considered& row) {
  if (!row.plan) return std::string(row.variant.name);
  const auto& config = row.plan->first().kernel.config;
  return join(row.variant.name, std::string(config.begin(), config.end()));
}

// For each operator on each device: every row accepts a far stride, or is in the list of reasons
// and declines every one for that reason; and each tensor has one somewhere, or is refused by the
// check of the operator.
class FarStrides : public ::testing::TestWithParam<std::tuple<const op::Operator*, Device>> {
 protected:
  const op::Operator& op_ = *std::get<0>(GetParam());
  const Device device_ = std::get<1>(GetParam());
  std::set<std::string, std::less<>> ran_, declined_, seen_, far_or_refused_;

  // Each kernel with each axis of each tensor once; of large cases only what no small one runs.
  void check_case(const Case& c) {
    const CaseRun run(c, device_);
    if (run.outputs()[0].size() == 0) return;
    const op::Arguments given = run.arguments({});
    Call call{{given.inputs.begin(), given.inputs.end()},
              run.outputs(),
              {given.options.begin(), given.options.end()}};
    expected_.clear();
    for (const Target& t : targets(op_.description(), call)) {
      const TensorView near = *t.view;
      for (int axis = 0; axis < near.rank(); ++axis)
        for (const int64_t stride : {kFar, kProduct}) {
          const int64_t last = near.shape(axis) - 1;
          if (last * stride < kFar / 3 || last * int64_t(dtype_bytes(near.dtype())) > 4096)
            continue;
          seen_.insert(t.name);
          check_far(c, call, t, axis, stride);
          *t.view = near;
          if (HasFatalFailure()) return;
        }
    }
  }

 private:
  std::set<std::string> covered_;
  std::vector<std::vector<float>> expected_;

  void check_far(const Case& c, Call& call, const Target& t, int axis, int64_t stride) {
    SparseTensor far(*t.view, axis, stride);
    ASSERT_TRUE(far.is_there()) << "there are not so many addresses";
    *t.view = far.view();
    for (const int multiprocessors : {device_info(device_).num_sms, 1}) {
      DeviceInfo device = device_info(device_);
      device.num_sms = multiprocessors;  // one: what a GPU runs for large problems
      std::vector<op::Considered> rows;
      try {
        rows = op_.explain(call.outputs, call.arguments(), device).variants;
      } catch (const Error& error) {  // that it is typed and names the operator
        EXPECT_TRUE(error.kind() == ErrorKind::value || error.kind() == ErrorKind::unsupported);
        EXPECT_TRUE(std::string_view(error.what()).starts_with(op_.description().name));
        far_or_refused_.insert(t.name);
        return;
      }
      for (const op::Considered& row : rows) {
        if (!row.accepted) {
          declined_.insert(join(row.variant.name, ": ", row.reason));
          continue;
        }
        const bool is_new =
            covered_.insert(join(kernel_of(row), t.name, axis - t.view->rank())).second;
        if (!is_new || (num_elements_of(c) > kSmall && ran_.contains(row.variant.name))) continue;
        far.fill();
        check_row(c, call, row,
                  join(c.name, ", variant ", row.variant.name, " on ", device_, ", ", t.name, " ",
                       far.view()));
        ran_.insert(std::string(row.variant.name));
        far_or_refused_.insert(t.name);
      }
    }
  }

  void check_row(const Case& c, const Call& call, const op::Considered& row,
                 const std::string& what) {
    if (expected_.empty()) {
      CaseRun exact(c, Device::cpu(), true);
      exact.poison_outputs();
      c.op->run(exact.outputs(), exact.arguments("reference"));
      expected_ = exact.results();
    }
    for (const TensorView& out : call.outputs) poison(out);
    if (row.plan)
      op::launch_plan(*row.plan, device_, {}, op_.description().name);
    else
      op_.run(call.outputs, call.arguments(row.variant.name));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const DType dtype = call.outputs[i].dtype();
      const Tolerance bound =
          with_code_steps(tolerance(dtype, c.dtype, c.reduction, c.rounds_inside, c.rounds_to_tf32),
                          dtype, c.code_steps);
      EXPECT_EQ(compare(values(call.outputs[i]), expected_[i], bound), "")
          << what << ", output " << i;
    }
  }
};

TEST_P(FarStrides, ChangeNoResult) {
  static const auto all = all_cases(), on_simt = simt_cases();
  const bool is_simt = device_ == Device::simt();
  std::vector<const Case*> cases;
  for (const Case& c : is_simt ? on_simt : all)
    if (c.op == &op_ && c.has_tag(is_simt ? "simt" : "conformance")) cases.push_back(&c);
  std::ranges::stable_sort(cases, {}, [](const Case* c) { return num_elements_of(*c); });
  for (const Case* c : cases) {
    check_case(*c);
    if (HasFatalFailure()) return;
  }
  for (const std::string& name : seen_)
    EXPECT_TRUE(far_or_refused_.contains(name)) << name << " had no far stride";
  for (const auto& row : op_.description().variants)
    if (op::runs_kernels(row.device) == op::runs_kernels(device_.type) &&
        !ran_.contains(row.name)) {
      std::string why;
      bool is_known = false;
      for (const std::string& text : declined_) {
        if (text.starts_with(join(row.name, ":"))) why += "\n  " + text;
        for (const Reason& r : kReasons)
          is_known |= (r.op.empty() || r.op == op_.description().name) && r.variant == row.name &&
                      text.starts_with(join(row.name, ": ", r.text));
      }
      EXPECT_TRUE(is_known) << row.name << " took no far stride on " << device_ << why;
    }
}

INSTANTIATE_TEST_SUITE_P(Operators, FarStrides,
                         ::testing::Combine(::testing::ValuesIn(operators()),
                                            ::testing::ValuesIn(devices_with_far_strides())),
                         [](const auto& info) {
                           return join(std::get<0>(info.param)->description().name, "_",
                                       std::get<1>(info.param).type);
                         });

}  // namespace
}  // namespace tensorcraft::test
