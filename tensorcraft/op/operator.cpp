// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/operator.hpp"

#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/stream_counter.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/op/checks/check.hpp"
#include "tensorcraft/op/tuning/configuration_selector.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/op/launch/tensor_map.hpp"
#include "tensorcraft/runtime/memory/workspace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <future>
#include <iomanip>
#include <limits>
#include <utility>

namespace tensorcraft::op {
namespace {

bool same_view(const TensorView& a, const TensorView& b) {
  return a.data() == b.data() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.strides() == b.strides();
}

void check_output(std::string_view op, const NamedTensors::Entry& out, const NamedTensors& inputs,
                  bool in_place) {
  if (out.view->read_only())
    fail(ErrorKind::buffer, op, ": ", out.name, ": the tensor is read-only; give writable memory");
  if (overlaps_itself(*out.view))
    fail(ErrorKind::value, op, ": ", out.name, ": elements of ", *out.view,
         " share memory; give a tensor with memory for each element");
  for (const auto& input : inputs.entries()) {
    if (in_place && same_view(*out.view, *input.view)) continue;
    check_apart(op, out.name, *out.view, input.name, *input.view,
                in_place ? "they must be the same tensor or apart" : "give it memory of its own");
  }
}

// A copy helps an input; of an output it would take the result.
void check_aligned(std::string_view op, const NamedTensors& tensors, bool are_outputs) {
  for (const auto& t : tensors.entries())
    if (!t.view->is_aligned(dtype_bytes(t.view->dtype())))
      fail(ErrorKind::value, op, ": ", t.name, ": address ", t.view->data(),
           " is not a multiple of the size of ", t.view->dtype(),
           are_outputs ? "; give memory that begins at one" : "; copy the tensor first");
}

void check_memory(std::string_view op, const NamedTensors& tensors) {
  for (const auto& t : tensors.entries())
    if (!t.view->data() && t.view->size() > 0)
      fail(ErrorKind::value, op, ": ", t.name, ": ", *t.view,
           " has no memory: its address is null; give memory for its elements");
}

}  // namespace

std::span<const DType> argument_dtypes(const Description& op, std::string_view argument) {
  for (const auto* parameters : {&op.inputs, &op.options})
    for (const Parameter& p : *parameters)
      if (p.name == argument)
        return p.doc.dtypes.empty() && &p == op.inputs.data() ? std::span<const DType>(op.dtypes)
                                                              : p.doc.dtypes;
  return {};
}

void check_places(std::string_view op, const NamedTensors& outputs, const NamedTensors& inputs,
                  bool any_address) {
  const Device device = (inputs.entries().empty() ? outputs : inputs).entries()[0].view->device();
  for (const NamedTensors* tensors : {&inputs, &outputs})
    for (const auto& t : tensors->entries())
      if (t.view->device() != device)
        fail(ErrorKind::value, op, ": ", t.name, ": Device mismatch: expected ", device,
             " but got ", t.view->device(),
             tensors == &outputs ? join("; give a tensor of ", t.view->dtype(), " on ", device)
                                 : join("; move it with .to(\"", device, "\")"));
  if (any_address) return;
  check_aligned(op, inputs, false);
  check_aligned(op, outputs, true);
}

void check_tensors(std::string_view op, const NamedTensors& outputs, const NamedTensors& inputs,
                   bool in_place, bool any_address) {
  check_places(op, outputs, inputs, any_address);
  check_memory(op, inputs);
  check_memory(op, outputs);
  const auto all = outputs.entries();
  for (size_t i = 0; i < all.size(); ++i) {
    check_output(op, all[i], inputs, in_place);
    for (size_t j = 0; j < i; ++j)
      check_apart(op, all[i].name, *all[i].view, all[j].name, *all[j].view);
  }
}

Cost moving_cost(const NamedTensors& outputs, const NamedTensors& inputs) {
  Cost cost{.flops = double(inputs.entries()[0].view->size())};
  for (const NamedTensors* tensors : {&outputs, &inputs})
    for (const auto& t : tensors->entries()) cost.bytes += double(t.view->nbytes());
  return cost;
}

void check_sizes(std::string_view op, std::span<const OutputSpec> specs) {
  for (const OutputSpec& spec : specs) {
    int64_t elements = 0;
    try {
      elements = num_elements(spec.shape);
    } catch (const Error& e) {
      fail(e.kind(), op, ": ", spec.name, ": ", e.what());
    }
    if (elements > std::numeric_limits<int64_t>::max() / int64_t(dtype_bytes(spec.dtype)))
      fail(ErrorKind::out_of_memory, op, ": ", spec.name, ": shape ", spec.shape, " of ",
           spec.dtype, " has more bytes than 64 bits count");
  }
}

StreamRef resolve_stream(const std::optional<StreamRef>& given, Device device) {
  if (given) return *given;
  return device.is_cuda() ? current_stream(device.index) : StreamRef();
}

namespace {

// Puts an address into every step that has a place for one.
void set_addresses(Plan& plan, int32_t Step::* at, const void* address) {
  for (const Step& step : plan.steps())
    if (step.*at >= 0) plan.set_address(step, step.*at, address);
}

void set_map_addresses(Plan& plan, std::byte* workspace, Device device) {
  for (const Step& step : plan.steps())
    for (const WorkspaceMap& map : step.workspace_maps)
      if (map.at >= 0)
        replace_address(*reinterpret_cast<TensorMap*>(plan.params(step) + map.at),
                        workspace + map.offset, device);
}

bool has_counter(const Plan& plan) {
  return std::ranges::any_of(plan.steps(), [](const Step& s) { return s.counter_at >= 0; });
}

// Memory for one launch: the plan's workspace, and its counter if the stream has none. The plan
// is told where they are.
class LaunchMemory {
 public:
  LaunchMemory(Plan& plan, Device device, StreamRef stream) {
    if (plan.workspace_bytes > 0) {
      void* const workspace =
          allocate(workspace_, plan.workspace_bytes, plan.workspace_zeroed, device, stream);
      set_addresses(plan, &Step::workspace_at, workspace);
      set_map_addresses(plan, static_cast<std::byte*>(workspace), device);
    }
    if (!has_counter(plan)) return;
    const void* counter = device.is_cuda() ? cuda::counter_of(stream) : nullptr;
    if (!counter) counter = allocate(counter_, sizeof(uint32_t), sizeof(uint32_t), device, stream);
    set_addresses(plan, &Step::counter_at, counter);
  }

 private:
  static void* allocate(std::optional<Workspace>& memory, size_t bytes, size_t zeroed,
                        Device device, StreamRef stream) {
    memory.emplace(DType::uint8, Dims{int64_t(bytes)}, device, stream);
    void* const address = memory->view().writable_data();
    if (zeroed && device.is_cuda())
      cuda::fill_async(address, 0, zeroed, stream);
    else
      std::memset(address, 0, zeroed);
    return address;
  }
  std::optional<Workspace> workspace_, counter_;
};

void launch_step(const Plan& plan, const Step& step, const LoadedKernel& kernel, Device device,
                 StreamRef stream, std::string_view op) {
  LaunchConfig config = step.launch;
  // A kernel waits for those in front of it itself (jit::entry_text), so its start hides behind
  // them.
  config.programmatic_dependent_launch = device_info(device).has_dependent_launch();
  launch(kernel, config, plan.params(step), stream, op);
}

// Later kernels load beside the first, and all are there before one starts.
void launch_steps(const Plan& plan, Device device, StreamRef stream, std::string_view op) {
  const auto steps = plan.steps();
  std::array<std::future<void>, Plan::kMaxSteps> ahead;
  for (size_t i = 1; i < steps.size(); ++i)
    ahead[i] = jit::load_ahead(steps[i].kernel, device, stream);
  std::array<std::shared_ptr<const LoadedKernel>, Plan::kMaxSteps> kernels;
  for (size_t i = 0; i < steps.size(); ++i)
    kernels[i] = jit::get_kernel(steps[i].kernel, device, stream);
  for (size_t i = 0; i < steps.size(); ++i)
    launch_step(plan, steps[i], *kernels[i], device, stream, op);
}

void launch_on_gpu(const Plan& plan, Device device, StreamRef stream, std::string_view op) {
  if (plan.steps().size() > 1) return launch_steps(plan, device, stream, op);
  const auto& kernel = jit::get_kernel(plan.first().kernel, device, stream);
  launch_step(plan, plan.first(), *kernel, device, stream, op);
}

}  // namespace

void launch_plan(const Plan& plan, Device device, StreamRef stream, std::string_view op) {
  const auto run = [&](const Plan& complete) {
    if (device.type == DeviceType::simt)
      launch_on_simt(complete);
    else
      launch_on_gpu(complete, device, stream, op);
  };
  if (plan.workspace_bytes == 0 && !has_counter(plan)) return run(plan);
  Plan own = plan;
  const LaunchMemory memory(own, device, stream);
  run(own);
}

void no_variant(std::string_view op, std::string_view forced,
                std::span<const Considered> considered) {
  std::string text(op);
  if (forced.empty())
    text.append(": no variant accepts this problem");
  else
    text.append(": variant ").append(forced).append(" does not accept this problem");
  for (const Considered& c : considered) {
    if (!forced.empty() && c.variant.name != forced && c.variant.alias != forced) continue;
    text.append("\n  ").append(c.variant.name).append(": ").append(c.reason);
  }
  throw Error(ErrorKind::unsupported, text);
}

namespace {

[[noreturn]] void unknown_variant(std::string_view op, std::string_view forced,
                                  std::span<const VariantInfo> variants) {
  std::vector<std::string_view> names;
  for (const VariantInfo& v : variants)
    if (std::ranges::find(names, v.name) == names.end()) names.push_back(v.name);
  std::string all;
  for (const auto n : names) all.append(all.empty() ? "" : ", ").append(n);
  fail(ErrorKind::value, op, ": no variant is named \"", forced, "\"; there are ", all,
       did_you_mean(forced, names));
}

}  // namespace

void add_forced(std::vector<Considered>& all, std::span<const VariantInfo> variants,
                std::string_view op, std::string_view forced, Device device) {
  const auto is_forced = [&](const VariantInfo& v) {
    return v.name == forced || (!v.alias.empty() && v.alias == forced);
  };
  const auto named = std::ranges::find_if(variants, is_forced);
  if (named == variants.end()) unknown_variant(op, forced, variants);
  if (std::ranges::any_of(all, is_forced, &Considered::variant)) return;
  const bool needs_gpu = named->device == DeviceType::cuda;
  all.push_back(
      {*named, false,
       join("runs on ", named->device, ", and these tensors are on ", device,
            needs_gpu ? "; device \"simt\" runs it without a GPU" : "; move them to the CPU"),
       std::nullopt});
}

std::string config_text(const Step& step) {
  return jit::config_fields(*step.kernel.rung, step.kernel.config);
}

std::string staged_text(std::span<const Parameter> inputs, const InputSet& pageable) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (pageable.test(i)) text += join(text.empty() ? "" : ", ", inputs[i].name);
  if (text.empty()) return text;
  return text +
         ": pageable memory of the host, which kernels cannot reach, so it goes through the "
         "page-locked ring of the transfer engine, gathered and scattered by the host while the "
         "call waits; tc.memory.pinned() makes memory that kernels read and write themselves";
}

std::string place_of(const DeviceInfo& device) {
  const Device place = device.device;
  if (!place.is_cuda()) return to_string(place);
  const std::vector<Device> usable = devices();
  const bool is_here = std::ranges::find(usable, place) != usable.end() &&
                       device_info(place).arch() == device.arch();
  return is_here ? to_string(place) : device.arch();
}

namespace {

double memory_us(const Cost& cost, const DeviceInfo& device) {
  return cost.bytes / device.memory_gb_per_s / 1e3;
}

double compute_us(const Cost& cost, double tflops) {
  return tflops > 0 ? cost.flops / tflops / 1e6 : 0;
}

// The most operations for each second, in 10^12, that products of such operands can have.
double peak_of_products(const Cost& cost, const DeviceInfo& device, DType dtype) {
  if (dtype == DType::float16 || dtype == DType::bfloat16) return device.peak_bf16_tflops;
  // Integers of 8 bits have the rate of float8.
  if (dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2 || dtype == DType::int8)
    return device.peak_fp8_tflops;
  // Every tensor core takes tf32 at half the rate of 16-bit operands.
  const double tf32 = cost.may_round_to_tf32 ? device.peak_bf16_tflops / 2 : 0;
  return std::max(device.peak_fp32_tflops, tf32);
}

bool uses_tensor_cores(const jit::Rung& rung) {
  const auto headers = jit::include_closure(rung.header);
  return std::ranges::any_of(*headers, [](const auto& header) {
    return header->name == "tensorcraft/device/ptx/mma.cuh" ||
           header->name == "tensorcraft/device/ptx/wgmma.cuh";
  });
}

// A block computes on one multiprocessor, so the last wave takes as long as a full one.
double waves_over_average(const Dim3& grid, const DeviceInfo& device) {
  const double share = double(grid.count()) / std::max(device.num_sms, 1);
  return share > 0 ? std::ceil(share) / share : 1;
}

double estimate_us(const Step& step, const Cost& cost, const DeviceInfo& device, DType dtype) {
  const double peak = uses_tensor_cores(*step.kernel.rung) ? peak_of_products(cost, device, dtype)
                                                           : device.peak_fp32_tflops;
  return std::max(memory_us(cost, device),
                  compute_us(cost, peak) * waves_over_average(step.launch.grid, device));
}

}  // namespace

double floor_us(const Cost& cost, const DeviceInfo& device, DType dtype) {
  if (device.memory_gb_per_s <= 0 || !device.device.is_cuda()) return 0;
  return std::max(memory_us(cost, device), compute_us(cost, peak_of_products(cost, device, dtype)));
}

void add_estimates(Explanation& e, const DeviceInfo& device, DType dtype) {
  if (e.cost.m > 0 && runs_kernels(device.device.type))
    e.prior =
        to_string(ConfigurationSelector(gpu_of(device))
                      .select({e.cost.m, e.cost.n, e.cost.k, dtype}, tuning_history(device, e.op)));
  e.floor_us = floor_us(e.cost, device, dtype);
  if (e.floor_us <= 0) return;
  for (Considered& c : e.variants)
    if (c.plan) c.estimate_us = estimate_us(c.plan->main(), e.cost, device, dtype);
}

namespace {

std::ostream& operator<<(std::ostream& out, const Dim3& d) {
  return out << d.x << 'x' << d.y << 'x' << d.z;
}

// "100.7 M": four digits, with the prefix of a thousand.
std::string scaled(double value) {
  constexpr std::array<std::string_view, 5> kPrefixes = {"", "k", "M", "G", "T"};
  size_t prefix = 0;
  for (; value >= 1000 && prefix + 1 < kPrefixes.size(); ++prefix) value /= 1000;
  std::ostringstream out;
  out << std::setprecision(4) << value << ' ' << kPrefixes[prefix];
  return std::move(out).str();
}

// With two digits, and all of those in front of the point.
std::string rounded(double value) {
  std::ostringstream out;
  if (value >= 10) out << std::fixed;
  out << std::setprecision(value >= 10 ? 0 : 2) << value;
  return std::move(out).str();
}

// "kernel for sm_90a"; the emulator runs the plan of such a GPU as host code.
void write(std::ostream& out, const char* which, const KernelReport& k, bool is_simt) {
  const LaunchConfig& launch = k.launch;
  out << which << (is_simt ? " as for " : " for ") << k.arch << ": grid " << launch.grid
      << ", block " << launch.block;
  if (launch.cluster.count() > 1) out << ", cluster " << launch.cluster;
  if (!k.signature.empty())
    out << "\n  " << k.signature << "\n  " << k.registers << " registers a thread, "
        << k.shared_bytes << " bytes of shared memory a block, " << k.spill_bytes
        << " bytes of spills, " << k.code_bytes << " bytes of code";
  const Occupancy& o = k.occupancy;
  if (!k.problem.empty())
    out << "\n  registers and occupancy are not known: " << k.problem;
  else
    out << "\n  occupancy " << std::lround(100 * o.fraction) << " %: " << o.blocks_per_sm
        << (o.blocks_per_sm == 1 ? " block of " : " blocks of ") << launch.block.count()
        << " threads on a multiprocessor, limited by " << o.limit;
  out << '\n';
}

// Why the chosen variant is it.
std::string reason_of_choice(const Explanation& e) {
  if (e.variant.empty()) return "";
  if (e.tuned) return ", tuned: " + gain_text(*e.tuned);
  for (const Considered& c : e.variants)
    if (c.accepted && c.reason.empty())
      return c.variant.name == e.variant ? ", the first that accepts, in the order of the table"
                                         : ", because the call names it";
  return ", because the call names it";
}

std::string load_text(const Weighed& w) {
  return join(w.rounds, w.rounds == 1 ? " round" : " rounds", " of blocks, multiprocessors busy ",
              std::lround(100 * w.busy), " % of it");
}

// Writes what the choice weighed, the chosen one marked.
void write_candidates(std::ostream& out, const Considered& c, const std::string& indent) {
  if (c.candidates.empty()) return;
  out << indent << reason_of_candidate(c) << '\n';
  for (const Weighed& w : c.candidates) {
    out << indent << (w.is_chosen ? "* " : "  ") << w.config << ": ";
    if (w.us > 0) out << rounded(w.us) << " us predicted, ";
    out << load_text(w) << '\n';
  }
}

void write(std::ostream& out, const Explanation& e, const Considered& c, size_t width) {
  const bool is_chosen = c.variant.name == e.variant;
  const std::string indent(width + 4, ' ');
  out << (is_chosen ? "* " : "  ") << c.variant.name
      << std::string(width - c.variant.name.size() + 2, ' ');
  if (!c.accepted)
    out << "declines: " << c.reason;
  else if (is_chosen && c.plan)
    out << config_text(c.plan->main());
  else
    out << "accepts" << (c.reason.empty() ? "" : " by name: ") << c.reason;
  if (c.estimate_us > 0)
    out << (is_chosen && config_text(c.plan->main()).empty() ? "" : ", ") << "estimate "
        << rounded(c.estimate_us) << " us or more";
  out << '\n' << indent << c.variant.idea << '\n';
  if (!is_chosen || !c.plan) return;
  out << indent << file_of(c) << '\n';
  write_candidates(out, c, indent);
}

}  // namespace

std::string reason_of_candidate(const Considered& c) {
  const auto chosen = std::ranges::find(c.candidates, true, &Weighed::is_chosen);
  if (chosen == c.candidates.end()) return {};
  if (c.candidates.size() == 1) return join("the only Config it can have: ", load_text(*chosen));
  return join("of ", c.candidates.size(), " Configs the marked one is ",
              chosen->us > 0 ? "predicted" : "expected", " to end first: ", load_text(*chosen));
}

std::string file_of(const Considered& c) {
  return c.plan ? c.plan->main().kernel.rung->header : std::string();
}

void add_kernel_reports(Explanation& e, const DeviceInfo& device) {
  for (const Considered& c : e.variants)
    if (c.variant.name == e.variant && c.plan)
      for (const Step& step : c.plan->steps()) e.kernels.push_back(report_kernel(step, device));
}

std::string to_string(const Explanation& e) {
  const bool is_simt = e.device == to_string(Device::simt());
  std::ostringstream out;
  out << e.op << (e.device.starts_with("sm_") ? " for " : " on ") << e.device << ": "
      << (e.variant.empty() ? std::string_view("no variant accepts") : e.variant)
      << reason_of_choice(e) << '\n';
  size_t width = 0;
  for (const Considered& c : e.variants) width = std::max(width, c.variant.name.size());
  for (const Considered& c : e.variants) write(out, e, c, width);
  constexpr const char* kWhich[] = {"kernel", "then a second kernel", "then a third kernel",
                                    "then a fourth kernel"};
  for (size_t i = 0; i < e.kernels.size(); ++i) write(out, kWhich[i], e.kernels[i], is_simt);
  if (!e.sizes.empty()) out << "sizes: " << e.sizes << '\n';
  if (!e.prior.empty()) out << "prior: " << e.prior << '\n';
  if (!e.staged.empty()) out << "staged: " << e.staged << '\n';
  out << "work: " << scaled(e.cost.bytes) << "B, " << scaled(e.cost.flops) << "FLOP\n";
  if (e.device == to_string(Device::cpu()))
    out << "a GPU that is not here can be asked about: name its architecture, such as sm_90a\n";
  if (e.floor_us > 0)
    out << "floor: " << rounded(e.floor_us)
        << " us, which no variant can beat. An estimate is of bytes and operations at the device's "
           "peaks; it is no measurement\n";
  return std::move(out).str();
}

}  // namespace tensorcraft::op
