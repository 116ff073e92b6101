// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/jit/warmup.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/launch/trace.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/ops/property.hpp"
#include "tests/support/simt_cases.hpp"
#include "tests/support/tolerance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

// Every operator, variant, dtype and case against the double reference, on a GPU or else the CPU,
// and on the emulator. Variants come from the registry, cases from tests/ops/cases.
namespace tensorcraft::test {
namespace {

std::vector<Device> devices_under_test() {
  std::vector<Device> all{cuda_device_count() > 0 ? Device::cuda(0) : Device::cpu()};
  if (devices().back() == Device::simt()) all.push_back(Device::simt());
  return all;
}

const std::vector<Case>& cases(Device device) {
  static const auto all = all_cases(), on_simt = [] {
    auto written = simt_cases();
    std::ranges::move(usual_drawn_cases(), std::back_inserter(written));
    return written;
  }();
  return device == Device::simt() ? on_simt : all;
}

// The values a perfect implementation returns, before rounding to the dtype of the output.
std::vector<std::vector<float>> expected_results(const Case& c) {
  CaseRun run(c, Device::cpu(), true);
  run.poison_outputs();  // what it does not write no variant may
  c.op->run(run.outputs(), run.arguments("reference"));
  return run.results();
}

// Rows whose device text an expression is made into: the library does not hold their kernels.
bool is_made_at_run_time(const op::VariantInfo& row) {
  return row.name == "fused" || row.name == "strided";
}

// Runs one row of the table, by its name or by a plan, and compares all it wrote.
void check_variant(const Case& c, CaseRun& run, const op::Considered& row, Device device,
                   bool by_plan, const std::vector<std::vector<float>>& expected) {
  const std::string what = join(c.name, ", variant ", row.variant.name, " on ", device,
                                by_plan ? " with one multiprocessor" : "");
  run.poison_outputs();
  if (by_plan)
    op::launch_plan(*row.plan, device, {}, c.op->description().name);
  else
    c.op->run(run.outputs(), run.arguments(row.variant.name));
  const auto got = run.results();
  const auto outputs = run.outputs();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(compare(got[i], expected[i],
                      with_code_steps(tolerance(outputs[i].dtype(), c.dtype, c.reduction,
                                                c.rounds_inside, c.rounds_to_tf32),
                                      outputs[i].dtype(), c.code_steps)),
              "")
        << what << ", output " << i;
  EXPECT_EQ(run.damage(), "") << what;
}

// Where an output lies: `off` elements behind the beginning of memory, elements of a row `step`
// apart.
struct Layout {
  int64_t off = 0, step = 1;
  bool operator==(const Layout&) const = default;
};
constexpr Layout kLayouts[] = {{}, {.off = 1}, {.step = 2}};

TensorView laid(const op::OutputSpec& spec, const Layout& layout, Device device,
                std::vector<Tensor>& memory) {
  Dims wide = spec.shape;
  if (wide.rank() > 0) wide[wide.rank() - 1] *= layout.step;
  Dims strides = contiguous_strides(wide);
  if (wide.rank() > 0) strides[wide.rank() - 1] *= layout.step;
  Tensor& t = memory.emplace_back(spec.dtype, Dims{num_elements(wide) + layout.off}, device);
  return {t.data_as<std::byte>() + size_t(layout.off) * dtype_bytes(spec.dtype), spec.dtype,
          spec.shape, strides, device};
}

std::vector<TensorView> laid(const std::vector<op::OutputSpec>& specs, const Layout& layout,
                             Device device, std::vector<Tensor>& memory) {
  std::vector<TensorView> outputs;
  for (const op::OutputSpec& spec : specs) outputs.push_back(laid(spec, layout, device, memory));
  return outputs;
}

class Conformance : public ::testing::TestWithParam<std::tuple<const op::Operator*, Device>> {
 protected:
  const op::Operator& op_ = *std::get<0>(GetParam());
  const Device device_ = std::get<1>(GetParam());
  std::set<std::string_view> ran_;

  // Every row that accepts the case.
  void check_case(const Case& c) {
    CaseRun run(c, device_);
    const auto expected = expected_results(c);
    const auto rows = [&](const DeviceInfo& device) {
      return op_.explain(run.outputs(), run.arguments({}), device).variants;
    };
    const auto all = rows(device_info(device_));
    bool accepted = false;
    const char* only = std::getenv("TC_TEST_VARIANT");
    for (const op::Considered& row : all) {
      if (!row.accepted) continue;
      accepted = true;
      if (only && row.variant.name != only) continue;
      ran_.insert(row.variant.name);
      check_variant(c, run, row, device_, false, expected);
      if (HasFatalFailure()) return;
    }
    EXPECT_TRUE(accepted) << c.name << ": no variant accepts on " << device_;
    check_choice(c, run);
    if (device_ == Device::simt()) check_large_plans(c, run, all, rows, expected);
  }

 private:
  // explain names what a call without a variant runs, wherever its outputs lie, and one without
  // memory is as good as one that is allocated.
  void check_choice(const Case& c, CaseRun& run) {
    const op::Arguments arguments = run.arguments({});
    const auto specs = op_.infer(arguments);
    run.poison_outputs();
    check_runs_as_said(c, arguments, run.outputs());
    const bool is_plain =
        std::ranges::none_of(c.outputs, &std::optional<TensorCase>::has_value) &&
        std::ranges::all_of(specs, [](const op::OutputSpec& s) { return s.in_place_of < 0; });
    for (const Layout& layout : kLayouts) {
      if (layout == Layout{} && is_plain) continue;  // as those of the run
      std::vector<Tensor> memory;
      check_runs_as_said(c, arguments, laid(specs, layout, device_, memory));
    }
    std::vector<Tensor> memory;
    std::vector<TensorView> fresh;
    for (const op::OutputSpec& spec : specs)
      fresh.push_back(spec.in_place_of < 0 ? laid(spec, {}, device_, memory)
                                           : arguments.inputs[size_t(spec.in_place_of)]);
    const auto imagined = op::imagined_outputs(specs, arguments.inputs, device_);
    EXPECT_EQ(choice(arguments, imagined), choice(arguments, fresh)) << c.name;
  }
  std::string_view choice(const op::Arguments& arguments, const std::vector<TensorView>& outputs) {
    return op_.explain(outputs, arguments, device_info(device_)).variant;
  }
  void check_runs_as_said(const Case& c, const op::Arguments& arguments,
                          const std::vector<TensorView>& outputs) {
    const op::Trace trace;
    try {
      op_.run(outputs, arguments);
    } catch (const Error& error) {  // some want outputs without gaps, or in place
      if (error.kind() == ErrorKind::unsupported) {
        EXPECT_EQ(choice(arguments, outputs), "") << c.name;
      }
      return;
    }
    for (const auto& row : trace.rows())
      if (row.op == op_.description().name) {
        EXPECT_EQ(row.variant, choice(arguments, outputs))
            << c.name << ", out with strides " << outputs[0].strides();
      }
  }

  // Checks what a GPU runs for large problems only: it is asked of a GPU that small ones fill.
  template <class Rows>
  void check_large_plans(const Case& c, CaseRun& run, const std::vector<op::Considered>& small,
                         Rows&& rows_on, const std::vector<std::vector<float>>& expected) {
    if (run.outputs()[0].size() == 0) return;
    DeviceInfo one = device_info(device_);
    one.num_sms = 1;
    const auto large = rows_on(one);
    for (size_t i = 0; i < large.size(); ++i) {
      if (!large[i].accepted) continue;
      if (small[i].accepted && launches_the_same(*large[i].plan, *small[i].plan)) continue;
      check_variant(c, run, large[i], device_, true, expected);
    }
  }
};

void add_kernels(const op::Considered& row, std::vector<jit::KernelKey>& kernels) {
  if (!row.accepted || !row.plan) return;
  for (const op::Step& step : row.plan->steps()) kernels.push_back(step.kernel);
}

// Adds the kernels that calls without a variant run, wherever their outputs lie.
void add_chosen_kernels(const Case& c, Device device, std::vector<jit::KernelKey>& kernels) {
  const CaseRun run(c, device);
  const op::Arguments arguments = run.arguments({});
  for (const Layout& layout : kLayouts) try {
      std::vector<Tensor> memory;
      const auto outputs = laid(c.op->infer(arguments), layout, device, memory);
      const op::Explanation said = c.op->explain(outputs, arguments, device_info(device));
      for (const op::Considered& row : said.variants)
        if (row.variant.name == said.variant) add_kernels(row, kernels);
    } catch (const Error&) {  // some want outputs without gaps, or in place
    }
}

// The kernels of a product's cases are many, and one thread would compile them for minutes.
void compile_side_by_side(const std::vector<const Case*>& chosen, Device device) {
  std::vector<jit::KernelKey> kernels;
  for (const Case* c : chosen) {
    for (const op::Considered& row : explain_case(*c, device_info(device)).variants)
      add_kernels(row, kernels);
    add_chosen_kernels(*c, device, kernels);
  }
  jit::warmup(kernels, device);  // what fails to compile fails again where it is launched
}

TEST_P(Conformance, EveryVariantAgreesWithTheReference) {
  const char* filter = std::getenv("TC_TEST_TAG");
  const char* only = std::getenv("TC_TEST_CASE");  // a part of a case's name
  const bool on_simt = device_ == Device::simt();
  std::vector<const Case*> chosen;
  for (const Case& c : cases(device_))
    if (c.op == &op_ &&
        c.has_tag(filter    ? filter
                  : on_simt ? "simt"
                            : "conformance") &&
        (!only || c.name.find(only) != std::string::npos))
      chosen.push_back(&c);
  if (device_.is_cuda()) compile_side_by_side(chosen, device_);
  for (const Case* c : chosen) {
    check_case(*c);
    if (HasFatalFailure()) return;
  }
  EXPECT_FALSE(chosen.empty()) << op_.description().name << " has no case";
  if (filter || only || std::getenv("TC_TEST_VARIANT")) return;
  for (const auto& row : op_.description().variants)
    if (op::runs_kernels(row.device) == op::runs_kernels(device_.type) && row.name != "onednn" &&
        !(on_simt && is_made_at_run_time(row))) {
      EXPECT_TRUE(ran_.contains(row.name)) << row.name << " accepted no case on " << device_;
    }
}

// Calls that no run before had, with every kernel compiled when it is asked for.
class DrawnCalls : public Conformance {
 protected:
  void SetUp() override {
    if (!std::getenv("TC_TEST_FULL"))
      GTEST_SKIP() << "new calls are part of a full run: set TC_TEST_FULL";
    if (devices().back() != Device::simt()) GTEST_SKIP() << "built without the emulator";
  }
};
TEST_P(DrawnCalls, AgreeWithTheReference) {
  const std::vector<Case> drawn = drawn_cases(op_, printed_seed());
  std::vector<const Case*> chosen;
  for (const Case& c : drawn) chosen.push_back(&c);
  compile_side_by_side(chosen, device_);
  for (const Case* c : chosen) {
    check_case(*c);
    if (HasFatalFailure()) return;
  }
  EXPECT_FALSE(chosen.empty()) << op_.description().name << " takes no drawn call";
}
INSTANTIATE_TEST_SUITE_P(Operators, DrawnCalls,
                         ::testing::Combine(::testing::ValuesIn(operators()),
                                            ::testing::Values(Device::simt())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)->description().name);
                         });

// compute-sanitizer runs these alone.
TEST(Cases, EveryOperatorHasASmokeCase) {
  std::set<const op::Operator*> covered;
  for (const Case& c : cases(Device::cpu()))
    if (c.has_tag("smoke")) covered.insert(c.op);
  for (const op::Operator* one : operators())
    EXPECT_TRUE(covered.contains(one)) << one->description().name;
}

INSTANTIATE_TEST_SUITE_P(Operators, Conformance,
                         ::testing::Combine(::testing::ValuesIn(operators()),
                                            ::testing::ValuesIn(devices_under_test())),
                         [](const auto& info) {
                           return join(std::get<0>(info.param)->description().name, "_",
                                       std::get<1>(info.param).type);
                         });

}  // namespace
}  // namespace tensorcraft::test
