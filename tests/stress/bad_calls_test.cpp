// SPDX-License-Identifier: Apache-2.0
// Every operator, called in ways that are wrong: each call ends in a typed error that names what is
// wrong and leaves the outputs alone, or it was right after all and gives the reference's result.
// TC_TEST_SEED=N repeats the one call that a failure names.
#include "tests/stress/bad_calls.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"
#include "tensorcraft/op/launch/host_memory.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/fake_driver.hpp"
#include "tests/support/tolerance.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <optional>

namespace tensorcraft::test {
namespace {

using test::Child;
using test::FakeDriver;

// Right calls of one operator on one device, with memory.
struct Pool {
  std::vector<std::unique_ptr<CaseRun>> runs;
  std::vector<const Case*> cases;
};

int64_t elements(const Case& c) {
  int64_t sum = 0;
  for (const TensorCase& t : c.inputs) sum += num_elements(t.shape);
  return sum;
}

// Small cases of every operator, spread over its list.
class Pools {
 public:
  Pools() : cases_(all_cases()) {
    constexpr size_t kCases = 10;
    for (const op::Operator* op : operators()) {
      const op::Description& d = op->description();
      const auto required = size_t(std::ranges::count(d.inputs, false, &op::Parameter::optional));
      operators_.insert(operators_.end(), required + d.options.size(), op);
      std::vector<const Case*> small;
      for (const Case& c : cases_)
        if (c.op == op && elements(c) <= 4096) small.push_back(&c);
      for (const Device device : {Device::cpu(), Device::simt(), Device::cuda(0)}) {
        Pool& pool = pools_[{op, device.type}];
        for (size_t i = 0; i < std::min(kCases, small.size()); ++i) {
          pool.cases.push_back(small[i * small.size() / std::min(kCases, small.size())]);
          pool.runs.push_back(std::make_unique<CaseRun>(*pool.cases.back(), device));
          pool.runs.back()->poison_outputs();
        }
      }
    }
  }
  // Each as often as it has parameters, which can be wrong.
  const std::vector<const op::Operator*>& operators_by_parameters() const { return operators_; }
  Pool& of(const op::Operator* op, Device device) { return pools_.at({op, device.type}); }

 private:
  const std::vector<Case> cases_;
  std::vector<const op::Operator*> operators_;
  std::map<std::pair<const op::Operator*, DeviceType>, Pool> pools_;
};

TensorView on_host(const TensorView& t) { return t.at(t.data(), Device::cpu()); }

std::vector<float> values(const TensorView& t) {
  const host::Elements all(on_host(t));
  std::vector<float> result;
  for (int64_t i = 0; i < t.size(); ++i) result.push_back(float(all[i]));
  return result;
}

using Results = std::vector<std::vector<float>>;

// Returns what the reference makes of the same arguments, in memory of its own. Nothing if it
// refuses, no results if it refuses a value, such as an index, which no kernel can tell the host
// about.
std::optional<Results> reference(const AnyCall& call) {
  try {
    // So many elements in little memory overlap, which no output may.
    for (const TensorView& t : call.outputs)
      if (t.nbytes() > Scratch::kBytes * 8) return std::nullopt;
    AnyCall plain = call;
    std::deque<Tensor> memory;
    for (TensorView& t : plain.inputs) t = on_host(t);
    for (op::Value& v : plain.options)
      if (auto* t = std::get_if<TensorView>(&v)) *t = on_host(*t);
    for (TensorView& t : plain.outputs) {  // what a call leaves alone is poison, as in its own
      t = memory.emplace_back(t.dtype(), t.shape()).view();
      if (t.data()) std::memset(t.writable_data(), int(Scratch::kPoison), size_t(t.nbytes()));
    }
    plain.variant = "reference";
    plain.op->run(plain.outputs, plain.arguments());
    Results results;
    for (const Tensor& t : memory) results.push_back(values(t));
    return results;
  } catch (const Error& error) {
    const bool is_value =
        error.kind() == ErrorKind::index && op::reaching_device(call.inputs) != Device::cpu();
    return is_value ? std::optional<Results>(std::in_place) : std::nullopt;
  }
}

bool is_documented(ErrorKind kind) {
  constexpr ErrorKind kinds[] = {
      ErrorKind::value,         ErrorKind::type,   ErrorKind::index, ErrorKind::unsupported,
      ErrorKind::out_of_memory, ErrorKind::buffer, ErrorKind::axis};
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

// Does the text say which argument is meant, and what would be right?
bool is_helpful(const std::string& text, const op::Description& d) {
  const auto has = [&](std::string_view word) { return text.find(word) != text.npos; };
  const auto has_any = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), has);
  };
  bool names = has_any({"variant", "shape", "strides", "DLPack", "device", "dtype", "arrays",
                        "axis", "outputs", "memory", "dimensions", "Device mismatch"});
  for (const auto* list : {&d.inputs, &d.options})
    for (const op::Parameter& p : *list) names = names || has(p.name);
  for (const op::OutputInfo& o : d.outputs) names = names || has(o.name);
  return names &&
         has_any(
             {"expected",        "must",          "there are",    "allowed",  "accepted",
              "takes",           "give ",         "at most",      "use ",     "copy ",
              "needs",           "not supported", "than",         "at least", "do not broadcast",
              "differ",          "negative",      "asked for",    "exist",    "contiguous",
              "does not accept", "not compiled",  "leave it out", "make it "});
}

// A child tells its parent this even if it crashes: the seed of the last call, and how often each
// mutation was refused and was right after all.
struct Progress {
  uint64_t seed;
  uint64_t refused[32], right[32];
};

// One generated call.
class GeneratedCall {
 public:
  GeneratedCall(Pools& pools, FakeDriver& driver, uint64_t seed) : random_(seed), driver_(driver) {
    const auto& all = pools.operators_by_parameters();
    call_.op = all[random_() % all.size()];
    const uint64_t where = random_() % 20;
    const Device device = where < 13   ? Device::cpu()
                          : where < 14 ? Device::simt()
                                       : Device::cuda(0);
    Pool& pool = pools.of(call_.op, device);
    const size_t i = random_() % pool.runs.size();
    case_ = pool.cases[i];
    run_ = pool.runs[i].get();
    const op::Arguments given = run_->arguments({});
    call_.inputs.assign(given.inputs.begin(), given.inputs.end());
    call_.options.assign(given.options.begin(), given.options.end());
    call_.outputs = run_->outputs();
  }

  // Returns what is wrong with how the call ended; empty if all is well.
  std::string check(Scratch& scratch, Progress& progress) {
    std::string wrong;
    size_t which = 0;
    try {
      while (true) {
        which = random_() % mutations().size();
        mutation_ = &mutations()[which];
        const AnyCall right = call_;
        if (!mutation_->apply(call_, random_, scratch)) {
          call_ = right;
          continue;
        }
        call_.change.insert(0, right.change + "; ");
        const bool same_counts = call_.inputs.size() == right.inputs.size() &&
                                 call_.outputs.size() == right.outputs.size() &&
                                 call_.options.size() == right.options.size();
        if (!same_counts || random_() % 4 != 0) break;  // else another thing is wrong too
      }
      wrong = run(scratch);
      ++progress.right[which];
    } catch (const Error& error) {
      ++progress.refused[which];
      wrong = judge(error);
      // An index that the emulator's kernel reads is refused while other blocks write.
      if (error.kind() == ErrorKind::index && op::reaching_device(call_.inputs) == Device::simt())
        run_->poison_outputs();
      if (!run_->outputs_untouched()) wrong += " an output was written to;";
      if (!scratch.is_poisoned()) wrong += " scratch was written to;";
    } catch (const std::exception& error) {
      wrong = join(" an exception of another type: ", error.what());
    }
    wrong += run_->damage();
    if (!wrong.empty()) wrong = join(case_->name, ", ", call_.change, ":", wrong);
    return wrong;
  }

 private:
  std::string judge(const Error& error) const {
    std::string wrong;
    if (!is_documented(error.kind()))
      wrong = join(" kind ", to_string(error.kind()), ": ", error.what(), ";");
    if (!is_helpful(error.what(), call_.op->description()))
      wrong += join(" the text does not help: ", error.what(), ";");
    return wrong;
  }

  // Infers, allocates, explains and runs, as a front end does.
  std::string run(Scratch& scratch) {
    for (const op::OutputSpec& spec : call_.op->infer(call_.arguments())) {
      constexpr double kLarge = 0x1p47, kSmall = 0x1p20;  // more than any machine has
      double bytes = double(dtype_bytes(spec.dtype));
      for (const int64_t n : spec.shape) bytes *= double(n);
      if (bytes <= kSmall || bytes >= kLarge)
        const Tensor memory(spec.dtype, spec.shape, call_.inputs[0].device());
    }
    call_.op->explain(call_.outputs, call_.arguments(), device_info(call_.inputs[0].device()));
    if (is_endless()) move_to_gpu();
    // Some operators take arrays of the host beside those of a device.
    const DeviceInfo& device = device_info(op::reaching_device(call_.inputs));
    const auto expected = device.device.is_cuda() ? std::nullopt : reference(call_);
    driver_.launches.clear();
    call_.op->run(call_.outputs, call_.arguments());
    const std::string wrong = device.device.is_cuda() ? check_launches() : check_results(expected);
    run_->poison_outputs();
    scratch.poison();
    return wrong;
  }

  // A view of one element may have 2^40: a loop over them would not end.
  bool is_endless() const {
    constexpr int64_t kMax = 1 << 20;
    const auto is_large = [](const TensorView& t) { return t.size() > kMax; };
    const auto is_large_option = [&](const op::Value& v) {
      const auto* t = std::get_if<TensorView>(&v);
      return t && is_large(*t);
    };
    return std::ranges::any_of(call_.inputs, is_large) ||
           std::ranges::any_of(call_.outputs, is_large) ||
           std::ranges::any_of(call_.options, is_large_option);
  }

  // As far as it is checked like any call, and launched at most.
  void move_to_gpu() {
    const auto move = [](TensorView& t) { t = t.at(t.data(), Device::cuda(0)); };
    std::ranges::for_each(call_.inputs, move);
    std::ranges::for_each(call_.outputs, move);
    for (op::Value& v : call_.options)
      if (auto* t = std::get_if<TensorView>(&v)) move(*t);
  }

  std::string check_launches() const {
    for (const test::FakeLaunch& l : driver_.launches)
      if (l.grid.count() == 0 || l.block.count() == 0 || l.block.count() > 1024)
        return join(" a launch of ", l.grid.count(), " blocks of ", l.block.count(), " threads;");
    return run_->outputs_untouched() ? "" : " the host wrote to memory of a GPU;";
  }

  std::string check_results(const std::optional<Results>& expected) const {
    if (!expected) return " it runs, and the reference refuses it;";
    if (call_.is_steep || call_.has_any_result || expected->empty()) return {};
    for (size_t i = 0; i < call_.outputs.size(); ++i) {
      Tolerance t = tolerance(call_.outputs[i].dtype(), case_->dtype, 1e4, case_->rounds_inside);
      t.relative *= 2;        // the reference is rounded too
      t.absolute = 0x1p-140;  // a subnormal number, as `scale` may be, has few bits
      const std::string difference = compare(values(call_.outputs[i]), (*expected)[i], t);
      if (!difference.empty()) return join(" output ", i, ": ", difference, ";");
    }
    return {};
  }

  Random random_;
  FakeDriver& driver_;
  const Case* case_ = nullptr;
  CaseRun* run_ = nullptr;
  AnyCall call_;
  const NamedMutation* mutation_ = nullptr;
};

class BadCalls : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(test::kCompilerIsSet, 0); }
  test::TemporaryFolder root_;
  std::string log_ = root_.file("log");
};

TEST_F(BadCalls, OfEveryOperatorAreTypedErrorsOrRightAfterAll) {
  auto* progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(progress, MAP_FAILED);
  const char* only = std::getenv("TC_TEST_SEED");
  const uint64_t first = only ? std::strtoull(only, nullptr, 10) : 0;
  const uint64_t last = only ? first + 1 : uint64_t(test::repeats(20'000, 100'000));
  const auto work = [&] {
    int failures = 0;
    {
      FakeDriver driver;
      Pools pools;
      Scratch scratch;
      for (uint64_t seed = first; seed < last && failures < 20; ++seed) {
        progress->seed = seed;
        const std::string wrong = GeneratedCall(pools, driver, seed).check(scratch, *progress);
        if (wrong.empty()) continue;
        dprintf(STDERR_FILENO, "seed %llu: %s\n", static_cast<unsigned long long>(seed),
                wrong.c_str());
        ++failures;
      }
    }
    std::exit(failures == 0 ? 0 : 1);  // not _exit: a leak is looked for then
    return 0;
  };
  const int code = Child(log_, work).wait(std::chrono::minutes(10));
  EXPECT_EQ(code, 0) << "the last call had seed " << progress->seed << "\n"
                     << test::read_file(log_);
  for (size_t i = 0; i < mutations().size() && !only; ++i)
    EXPECT_GT(progress->refused[i], 20u) << mutations()[i].name << " was refused too rarely";
  const uint64_t right = std::accumulate(progress->right, progress->right + 32, uint64_t(0));
  EXPECT_TRUE(only || right > last / 12) << right << " calls were right after all";
  munmap(progress, sizeof(Progress));
}

}  // namespace
}  // namespace tensorcraft::test
