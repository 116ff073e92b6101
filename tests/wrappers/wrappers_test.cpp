// SPDX-License-Identifier: Apache-2.0
// Every PTX wrapper on the emulator against an obvious computation, and on a GPU against that.
// usage: wrappers_tests [--results=FILE]  FILE gets what the GPU gave, as JSON
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/driver.hpp"
#include "tensorcraft/cuda/nvrtc.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tests/wrappers/cases.hpp"
#include "tests/wrappers/source.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <deque>
#include <fstream>
#include <set>
#include <sstream>

namespace tensorcraft::test {
namespace {

nlohmann::json results = nlohmann::json::array();

std::vector<uint32_t> input(const Case& c) {
  Random random(20261);
  std::vector<uint32_t> in(size_t(c.blocks * c.in_words));
  for (int block = 0; block < c.blocks; ++block)
    c.fill(random, block, std::span(in).subspan(size_t(block * c.in_words), size_t(c.in_words)));
  return in;
}

std::vector<Expected> expectation(const Case& c, const std::vector<uint32_t>& in) {
  std::vector<Expected> all;
  for (int block = 0; block < c.blocks; ++block) {
    const auto some =
        c.expect(Words(in).subspan(size_t(block * c.in_words), size_t(c.in_words)), block);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<uint32_t> on_simt(const Case& c, const std::vector<uint32_t>& in) {
  std::vector<uint32_t> out(size_t(c.blocks * c.out_words), 0xdddddddd);
  c.simt(c, in, out);
  return out;
}

struct Comparison {
  size_t different = 0;  // words whose bits differ
  size_t wrong = 0;      // beyond the tolerance
  double max_error = 0;  // of those that may differ
  std::string first;     // that is wrong
};

// `tolerances` says for each word whether it must have the very bits.
Comparison compare(const Case& c, const std::vector<uint32_t>& got,
                   const std::vector<uint32_t>& wanted, const std::vector<Expected>& tolerances) {
  Comparison result;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == wanted[i]) continue;
    ++result.different;
    const double x = bit_cast<float>(got[i]), y = bit_cast<float>(wanted[i]);
    const double error = std::fabs(x - y);
    const bool may_differ = tolerances[i].tolerance > 0 && std::isfinite(x) && std::isfinite(y);
    if (may_differ) result.max_error = std::max(result.max_error, error);
    if (may_differ && error <= tolerances[i].tolerance) continue;
    if (++result.wrong > 1) continue;
    std::ostringstream text;
    text << c.name << ": block " << i / size_t(c.out_words) << ", word " << i % size_t(c.out_words)
         << ": got 0x" << std::hex << got[i] << " (" << x << "), expected 0x" << wanted[i] << " ("
         << y << "), tolerance " << tolerances[i].tolerance;
    result.first = text.str();
  }
  return result;
}

std::vector<uint32_t> bits_of(const std::vector<Expected>& expected) {
  std::vector<uint32_t> bits;
  for (const Expected& e : expected) bits.push_back(e.bits);
  return bits;
}

const jit::Rung& rung_of(const Case& c) {
  static std::set<std::string> added;
  static std::deque<jit::Rung> rungs;
  for (const std::string& file : {std::string("params.h"), c.header})
    if (added.insert(file).second)
      jit::add_source("tests/wrappers/kernels/" + file,
                      source_text("tests/wrappers/kernels/" + file));
  const std::string name = c.name.substr(0, c.name.find(':'));
  return rungs.emplace_back("test", name, "tests/wrappers/kernels/" + c.header,
                            "tensorcraft::test::" + name);
}

jit::KernelKey key_of(const Case& c) { return {.rung = &rung_of(c), .threads = c.threads}; }

std::vector<uint32_t> on_gpu(const Case& c, const std::vector<uint32_t>& in) {
  std::vector<uint32_t> out(size_t(c.blocks * c.out_words));
  run_on_gpu(c, *jit::get_kernel(key_of(c), Device::cuda(0)), in, out);
  return out;
}

// Operations that run beside the threads or let them go on may do so at any legal time.
std::vector<simt::Options> timings(const Case& c) {
  static const std::set<std::string> in_step{"convert.cuh", "warp.cuh", "atomic.cuh", "matrix.cuh",
                                             "mma.cuh",     "wmma.cuh", "layout.cuh"};
  if (in_step.contains(c.header)) return {{}};
  std::vector<simt::Options> all{{}, {.timing = simt::Timing::as_early_as_possible}};
  for (uint64_t seed = 1; seed <= 3; ++seed)
    all.push_back({.timing = simt::Timing::seeded, .seed = seed});
  return all;
}

class Wrapper : public testing::TestWithParam<size_t> {
 protected:
  const Case& c = cases()[GetParam()];
};

TEST_P(Wrapper, GivesOnSimtWhatItsMeaningSays) {
  const auto in = input(c);
  const auto expected = expectation(c, in);
  ASSERT_EQ(expected.size(), size_t(c.blocks * c.out_words));
  for (const simt::Options& options : timings(c)) {
    simt::set_options(options);
    const Comparison difference = compare(c, on_simt(c, in), bits_of(expected), expected);
    simt::set_options({});
    EXPECT_EQ(difference.wrong, 0u)
        << difference.first << ", timing " << int(options.timing) << ", seed " << options.seed;
  }
}

TEST_P(Wrapper, CompilesForHopper) {
  if (!cuda::nvrtc_available()) GTEST_SKIP() << cuda::nvrtc_problem();
  const auto report = jit::compile(key_of(c), "sm_90a");
  EXPECT_EQ(report.spill_bytes, 0u) << report.log;
}

TEST_P(Wrapper, GivesOnAGpuWhatItGivesOnSimt) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda::driver_problem();
  const DeviceInfo device = device_info(Device::cuda(0));
  if (device.compute_capability < c.sm || (c.header == "wgmma.cuh" && !device.has_wgmma()))
    GTEST_SKIP() << c.name << " is not an instruction of " << device.arch();
  const auto in = input(c);
  const Comparison difference = compare(c, on_gpu(c, in), on_simt(c, in), expectation(c, in));
  EXPECT_EQ(difference.wrong, 0u) << difference.first;
  results.push_back({{"name", c.name},
                     {"inputs", c.blocks * c.in_words},
                     {"outputs", c.blocks * c.out_words},
                     {"equal", difference.different == 0},
                     {"different", difference.different},
                     {"wrong", difference.wrong},
                     {"max_error", difference.max_error}});
}

std::string test_name(const testing::TestParamInfo<size_t>& info) {
  std::string name = cases()[info.param].name;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Every, Wrapper, testing::Range(size_t(0), cases().size()), test_name);

void write_results(const std::string& file) {
  const DeviceInfo device = device_info(Device::cuda(0));
  std::ofstream out(file);
  out << "{\n \"arch\": \"" << device.arch() << "\",\n \"device\": \"" << device.name
      << "\",\n \"wrappers\": [";
  for (size_t i = 0; i < results.size(); ++i) out << (i ? ",\n  " : "\n  ") << results[i].dump();
  out << "\n ]\n}\n";
}

}  // namespace
}  // namespace tensorcraft::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  const std::string option = "--results=", argument = argc > 1 ? argv[1] : "";
  if (argument.starts_with(option) && tensorcraft::cuda_device_count() > 0)
    tensorcraft::test::write_results(argument.substr(option.size()));
  return failed;
}
