// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/tune.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/launch/trace.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/gemm/gemm.hpp"
#include "tensorcraft/ops/softmax/softmax.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tensors.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tensorcraft::diagnose {
namespace {

using test::expect_error;
using test::normal_tensor;
using test::TemporaryFolder;

const TemporaryFolder& cache_of_process() {
  static const TemporaryFolder folder;
  return folder;
}
// A process of its own that a test starts has the folder of its parent.
const int kCacheIsSet = setenv("TENSORCRAFT_CACHE_DIR", cache_of_process().path().c_str(), 0);

// An empty database, and nothing tuned.
class TuneTest : public testing::Test {
 protected:
  TuneTest() { clear(); }
  ~TuneTest() override { clear(); }
  static void clear() {
    if (config().cache_dir == cache_of_process().path())
      std::filesystem::remove_all(config().cache_dir + "/tuned");
    op::forget_tuned();
  }
};

// The operands of a product, and the call by the registry.
struct Product {
  explicit Product(int64_t size, DType dtype = DType::float32, Device device = Device::cpu())
      : a(normal_tensor({size, size}, dtype).to(device)),
        b(normal_tensor({size, size}, dtype, 2).to(device)),
        out(dtype, {size, size}, device),
        inputs{a.view(), b.view()},
        outputs{out.view()} {}
  TuningArrays arrays() const { return {outputs, inputs, {}}; }
  op::Explanation explain() const {
    return find_operator("gemm").explain(outputs, {inputs, {}}, device_info(out.device()));
  }
  std::string variant_that_runs(const GemmOptions& options = {}) const {
    const op::Trace trace;
    gemm(out, a, b, options);
    return std::string(trace.rows().at(0).variant);
  }
  void set_tuned(const op::TunedEntry& entry) const {
    op::set_tuned(device_info(out.device()), "gemm", find_operator("gemm").description().variants,
                  explain().call, entry);
  }
  Tensor a, b, out;
  std::vector<TensorView> inputs, outputs;
};

TuneReport tune_product(const Product& product, const TuneSettings& settings = {}) {
  const TuningArrays arrays = product.arrays();
  return tune(find_operator("gemm"), {&arrays, 1}, StreamRef(), settings);
}

TEST_F(TuneTest, ACallIsTextOfWhatAChoiceLooksAt) {
  const Product product(8);
  EXPECT_EQ(product.explain().call, "a=float32[8,8] b=float32[8,8] out=float32[8,8]");
  const std::vector<op::Value> options{std::monostate(), 2.0, std::monostate(), std::monostate(),
                                       std::string_view("gelu")};
  EXPECT_EQ(find_operator("gemm")
                .explain(product.outputs, {product.inputs, options}, device_info(Device::cpu()))
                .call,
            "a=float32[8,8] b=float32[8,8] out=float32[8,8] alpha=2.0 activation=\"gelu\"");
}

TEST_F(TuneTest, TheNextCallTakesWhatIsTuned) {
  const Product product(8);
  const std::string model = product.variant_that_runs();
  ASSERT_NE(model, "reference");
  product.set_tuned({"reference", "", 100, 125});
  EXPECT_EQ(product.variant_that_runs(), "reference");
  EXPECT_EQ(product.variant_that_runs({.variant = "cpu"}), "cpu") << "the caller's choice counts";
  EXPECT_EQ(Product(9).variant_that_runs(), model) << "of another shape nothing is known";
  EXPECT_EQ(product.variant_that_runs({.alpha = 2}), model);
  EXPECT_EQ(product.variant_that_runs({.batch_invariant = true}), model);
  op::forget_tuned();
  EXPECT_EQ(product.variant_that_runs(), model);
}

TEST_F(TuneTest, ExplainSaysWhatIsTunedAndByHowMuch) {
  const Product product(8);
  product.set_tuned({"reference", "", 100, 125});
  const op::Explanation e = product.explain();
  EXPECT_EQ(e.variant, "reference");
  ASSERT_TRUE(e.tuned.has_value());
  EXPECT_EQ(e.tuned->us, 100);
  EXPECT_EQ(to_string(e).find("gemm on cpu: reference, tuned: 25 % over the model\n"), 0u)
      << to_string(e);
}

TEST_F(TuneTest, WhatRefusesOrIsNoChoiceIsPassedBy) {
  const Product product(8);
  const std::string model = product.variant_that_runs();
  const op::TunedEntry useless[] = {
      {"nonesuch", "", 1, 2}, {"persistent", "", 1, 2}, {model, "tile_m=none", 1, 2}};
  for (const op::TunedEntry& entry : useless) {
    product.set_tuned(entry);
    EXPECT_EQ(product.variant_that_runs(), model) << entry.variant;
    EXPECT_FALSE(product.explain().tuned.has_value());
  }
  const Tensor wrong(DType::float32, {3, 3});
  EXPECT_THROW(gemm(product.out, product.a, wrong), Error);
}

TEST_F(TuneTest, OnTheEmulatorAConfigIsTakenToo) {
  if (devices().back() != Device::simt()) GTEST_SKIP() << "the emulator is not built";
  const Product product(64, DType::bfloat16, Device::simt());
  const op::Explanation before = product.explain();
  const auto row = [](const op::Explanation& e, std::string_view name) -> const op::Considered& {
    return *std::ranges::find(e.variants, name, [](const auto& c) { return c.variant.name; });
  };
  const auto& candidates = row(before, "swizzled").candidates;
  const auto other = std::ranges::find(candidates, false, &op::Weighed::is_chosen);
  ASSERT_NE(other, candidates.end());
  ASSERT_NE(other->option, "");
  product.set_tuned({"swizzled", other->option, 10, 20});
  const op::Explanation after = product.explain();
  EXPECT_EQ(after.variant, "swizzled");
  const auto& now = row(after, "swizzled").candidates;
  ASSERT_EQ(now.size(), candidates.size()) << "all are shown, and another is marked";
  EXPECT_EQ(std::ranges::find(now, true, &op::Weighed::is_chosen)->option, other->option);
  EXPECT_EQ(product.variant_that_runs(), "swizzled");
}

TEST_F(TuneTest, MeasuresEveryVariantOfTheHostAndKeepsTheResult) {
  const Product product(32);
  std::vector<std::string> said;
  int shown = 0;
  const TuneReport report =
      tune_product(product, {.progress = [&](const AdaptivePerformanceTuner&) { ++shown; },
                             .say = [&](std::string_view text) { said.emplace_back(text); }});
  EXPECT_EQ(report.problem, "32x32x32");
  EXPECT_EQ(said.at(0), "Starting adaptive tuning for problem: 32x32x32");
  EXPECT_EQ(said.at(1).find("Tuning stopped after "), 0u);
  EXPECT_EQ(shown, int(report.iterations.size()));
  EXPECT_GT(report.row.entry.us, 0);
  EXPECT_LE(report.row.entry.us, report.row.entry.model_us);
  EXPECT_GT(report.tflops, 0);
  for (const TuningIteration& one : report.iterations)
    EXPECT_NE(one.candidate.variant, "reference") << "what others are held against";
  EXPECT_EQ(product.variant_that_runs(), report.row.entry.variant);
  ASSERT_TRUE(product.explain().tuned.has_value());

  const TuneReport again = tune_product(product);
  EXPECT_EQ(again.end, "known");
  EXPECT_EQ(again.row.entry, report.row.entry);
  EXPECT_TRUE(again.iterations.empty());
  EXPECT_NE(tune_product(product, {.again = true}).end, "known");
}

TEST_F(TuneTest, GoesOnWhereASessionWasCutOff) {
  const Product product(32);
  TuneSettings settings;
  settings.progress = [](const AdaptivePerformanceTuner&) {
    fail(ErrorKind::cancelled, "the user leaves");
  };
  expect_error(ErrorKind::cancelled, [&] { tune_product(product, settings); }, "the user leaves");
  const TuneReport report = tune_product(product);
  EXPECT_NE(report.end, "known");
  const op::TuningDatabase database(op::TuningDatabase::path_of(device_info(Device::cpu()).name));
  EXPECT_TRUE(database.trials(report.row.key).empty()) << "the session is over";
  EXPECT_TRUE(database.result(report.row.key).has_value());
}

TEST_F(TuneTest, ATimeThatIsOverKeepsWhatIsKnownAndTheNextSessionGoesOn) {
  const Device device = test::places().back();
  const Tensor x = normal_tensor({4, 64}).to(device), y(DType::float32, {4, 64}, device);
  const std::vector<TensorView> in{x.view()}, out{y.view()};
  const TuningArrays arrays{out, in, {}};
  TuneSettings settings;
  settings.rules.seconds = 1e-9;
  const TuneReport cut = tune(find_operator("softmax"), {&arrays, 1}, StreamRef(), settings);
  if (cut.end == "every candidate is measured") GTEST_SKIP() << "the host has one variant";
  EXPECT_EQ(cut.end, "its time is over");
  EXPECT_EQ(cut.iterations.size(), 1u);
  EXPECT_EQ(cut.row.entry.variant, cut.model.variant);
  const TuneReport whole = tune(find_operator("softmax"), {&arrays, 1}, StreamRef());
  EXPECT_NE(whole.end, "known");
  EXPECT_GT(whole.iterations.size(), 1u);
}

TEST_F(TuneTest, AStaleResultIsMeasuredAnew) {
  const Product product(16);
  const TuneReport report = tune_product(product);
  op::TuningDatabase database(op::TuningDatabase::path_of(device_info(Device::cpu()).name));
  op::TunedRow stale = report.row;
  stale.key.version = "of an earlier library";
  std::filesystem::remove_all(config().cache_dir + "/tuned");
  op::TuningDatabase(op::TuningDatabase::path_of(stale.key.device)).set_result(stale);
  EXPECT_NE(tune_product(product).end, "known");
}

TEST_F(TuneTest, RefusesWhatItMayNotOrNeedNotChoose) {
  const Product product(8);
  const op::Operator& gemm_op = find_operator("gemm");
  const auto& options = gemm_op.description().options;
  const auto tune_with = [&](std::string_view name, op::Value value) {
    std::vector<op::Value> values(options.size());
    values[size_t(std::ranges::find(options, name, &op::Parameter::name) - options.begin())] =
        value;
    const TuningArrays arrays{product.outputs, product.inputs, values};
    tune(gemm_op, {&arrays, 1}, StreamRef());
  };
  expect_error(
      ErrorKind::unsupported, [&] { tune_with("batch_invariant", true); },
      "gemm: an option of the call leaves the choice to the cost model, so it is not tuned");
  expect_error(
      ErrorKind::value, [&] { tune_with("config", std::string_view("tile_m=64")); },
      "gemm: tuning finds config; leave it out");
}

TEST_F(TuneTest, CandidatesBeginWithTheModelsChoiceAndFollowItsPredictions) {
  const DeviceInfo hopper = device_info_of_arch("sm_90a");
  std::vector<TensorView> in(2, {nullptr, DType::bfloat16, {4096, 4096}, hopper.device}),
      out(1, in[0]);
  const op::Explanation e = find_operator("gemm").explain(out, {in, {}}, hopper);
  const std::vector<TuningCandidate> all = tuning_candidates(e);
  ASSERT_GE(all.size(), 40u);
  EXPECT_EQ(all[0].variant, e.variant);
  EXPECT_NE(all[0].config.find("tile_m="), std::string::npos);
  EXPECT_NE(all[0].config.find("schedule="), std::string::npos);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(std::ranges::count(all, all[i]), 1) << to_string(all[i]);
  // Every one is a call that its variant takes, with the Config that it names.
  for (const TuningCandidate& candidate : all) {
    std::vector<op::Value> values(find_operator("gemm").description().options.size());
    if (!candidate.config.empty()) values.back() = std::string_view(candidate.config);
    const op::Explanation one =
        find_operator("gemm").explain(out, {in, values, candidate.variant}, hopper);
    EXPECT_EQ(one.variant, candidate.variant) << to_string(candidate);
  }
  EXPECT_GT(std::ranges::find(all, "naive", &TuningCandidate::variant) - all.begin(), 20);
  EXPECT_EQ(e.prior.find("rule large (m, n and k above 2048), confidence 0.9: "), 0u);

  const op::SelectedConfiguration rule{{128, 128, 64, 4, 4, 2}, "large", "", 0.9};
  const std::vector<TuningCandidate> ruled = tuning_candidates(e, &rule);
  const auto first_of = [](const std::vector<TuningCandidate>& list) {
    return std::ranges::find_if(list,
                                [](const TuningCandidate& c) {
                                  return c.config.find("tile_m=128, tile_n=128,") == 0;
                                }) -
           list.begin();
  };
  EXPECT_LT(first_of(ruled), first_of(all)) << "what a rule expects is tried sooner";
}

TEST_F(TuneTest, KernelsOfCandidatesAreThoseThatTheirCallsCompile) {
  const DeviceInfo hopper = device_info_of_arch("sm_90a");
  const std::vector<TensorView> in(2, {nullptr, DType::bfloat16, {4096, 4096}, hopper.device}),
      out(1, in[0]);
  const TuningArrays arrays{out, in, {}};
  const std::vector<TuningCandidate> two{{"persistent", "tile_m=128, tile_n=192"},
                                         {"persistent", "tile_m=128, tile_n=256"}};
  const std::vector<jit::KernelKey> kernels =
      tuning_kernels(find_operator("gemm"), arrays, two, hopper);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_NE(kernels[0], kernels[1]);
  EXPECT_NE(jit::readable_name(kernels[0]).find("persistent"), std::string::npos);
  const std::vector<TuningCandidate> packed{{"packed"}};  // copies, and then multiplies
  const std::vector<TensorView> odd(2, {nullptr, DType::bfloat16, {4095, 4095}, hopper.device}),
      odd_out(1, odd[0]);
  EXPECT_GE(tuning_kernels(find_operator("gemm"), {odd_out, odd, {}}, packed, hopper).size(), 2u);
  const Product host(8);
  const std::vector<TuningCandidate> one{{"cpu"}};
  EXPECT_TRUE(tuning_kernels(find_operator("gemm"), host.arrays(), one, device_info(Device::cpu()))
                  .empty());
}

// The test below starts this as a process of its own.
TEST(TuneChild, SaysWhichVariantRuns) {
  const char* const report = std::getenv("TC_TEST_TUNE_REPORT");
  if (!report) GTEST_SKIP() << "a part of TuneTest.AnotherProcessTakesIt";
  op::use_tuned_databases(true);
  std::ofstream(report) << Product(8).variant_that_runs();
}

std::string variant_in_another_process(const std::string& report) {
  setenv("TC_TEST_TUNE_REPORT", report.c_str(), 1);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = '"' + self + "\" --gtest_filter='TuneChild.*' > /dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  unsetenv("TC_TEST_TUNE_REPORT");
  std::string variant;
  std::ifstream(report) >> variant;
  return variant;
}

TEST_F(TuneTest, AnotherProcessTakesIt) {
  const TemporaryFolder folder;
  const Product product(8);
  const std::string model = product.variant_that_runs();
  EXPECT_EQ(variant_in_another_process(folder.file("before")), model);
  const DeviceInfo& host = device_info(Device::cpu());
  op::TuningDatabase database(op::TuningDatabase::path_of(host.name));
  const std::string version = op::version_of(find_operator("gemm").description().variants);
  const op::TuningKey key{host.name, "gemm", product.explain().call, version};
  database.set_result({key, {"reference", "", 1, 2}});
  EXPECT_EQ(variant_in_another_process(folder.file("after")), "reference");
  database.set_result({{key.device, key.op, key.call, "of another library"}, {model, "", 1, 2}});
  EXPECT_EQ(variant_in_another_process(folder.file("stale")), "reference");
  std::ofstream(op::TuningDatabase::path_of(host.name)) << std::string(5000, 'x');
  EXPECT_EQ(variant_in_another_process(folder.file("damaged")), model) << "a warning, no error";
}

TEST_F(TuneTest, RowOperatorsAreTunedToo) {
  for (const Device device : test::places()) {
    const Tensor x = normal_tensor({16, 64}).to(device), y(DType::float32, {16, 64}, device);
    const std::vector<TensorView> in{x.view()}, out{y.view()};
    const TuningArrays arrays{out, in, {}};
    const TuneReport report = tune(find_operator("softmax"), {&arrays, 1}, StreamRef());
    EXPECT_EQ(report.problem, "16x64");
    EXPECT_GT(report.row.entry.us, 0);
    EXPECT_EQ(report.row.key.device, device_info(device).name);
  }
}

}  // namespace
}  // namespace tensorcraft::diagnose
