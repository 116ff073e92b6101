// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/operator.hpp"

#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/cuda/stream_counter.hpp"
#include "tensorcraft/op/definition.hpp"
#include "tensorcraft/runtime/memory/workspace.hpp"

#include <algorithm>
#include <array>
#include <cstring>
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
    if (!may_overlap(*out.view, *input.view)) continue;
    if (in_place && same_view(*out.view, *input.view)) continue;
    fail(ErrorKind::value, op, ": ", out.name, " overlaps the memory of ", input.name,
         in_place ? "; they must be the same tensor or apart" : "; give it memory of its own");
  }
}

void check_aligned(std::string_view op, const NamedTensors& tensors) {
  for (const auto& t : tensors.entries())
    if (!t.view->is_aligned(dtype_bytes(t.view->dtype())))
      fail(ErrorKind::value, op, ": ", t.name, ": address ", t.view->data(),
           " is not a multiple of the size of ", t.view->dtype(), "; copy the tensor first");
}

void check_memory(std::string_view op, const NamedTensors& tensors) {
  for (const auto& t : tensors.entries())
    if (!t.view->data() && t.view->size() > 0)
      fail(ErrorKind::value, op, ": ", t.name, ": ", *t.view,
           " has no memory: its address is null; give memory for its elements");
}

}  // namespace

void check_places(std::string_view op, const NamedTensors& outputs, const NamedTensors& inputs) {
  const Device device = (inputs.entries().empty() ? outputs : inputs).entries()[0].view->device();
  for (const NamedTensors* tensors : {&inputs, &outputs})
    for (const auto& t : tensors->entries())
      if (t.view->device() != device)
        fail(ErrorKind::value, op, ": ", t.name, ": Device mismatch: expected ", device,
             " but got ", t.view->device(), "; move it with .to(\"", device, "\")");
  check_aligned(op, inputs);
  check_aligned(op, outputs);
}

void check_tensors(std::string_view op, const NamedTensors& outputs, const NamedTensors& inputs,
                   bool in_place) {
  check_places(op, outputs, inputs);
  check_memory(op, inputs);
  check_memory(op, outputs);
  const auto all = outputs.entries();
  for (size_t i = 0; i < all.size(); ++i) {
    check_output(op, all[i], inputs, in_place);
    for (size_t j = 0; j < i; ++j)
      if (may_overlap(*all[i].view, *all[j].view))
        fail(ErrorKind::value, op, ": ", all[i].name, " overlaps the memory of ", all[j].name,
             "; give it memory of its own");
  }
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

void set_address(Plan& plan, size_t at, const void* address) {
  std::memcpy(plan.params + at, &address, sizeof(address));
}

void launch_with_workspace(Plan plan, Device device, StreamRef stream, std::string_view op) {
  const Workspace workspace(DType::uint8, {int64_t(plan.workspace_bytes)}, device, stream);
  void* const address = workspace.view().data();
  set_address(plan, plan.workspace_at, address);
  if (plan.workspace_zeroed && device.is_cuda())
    cuda::fill_async(address, 0, plan.workspace_zeroed, stream);
  else
    std::memset(address, 0, plan.workspace_zeroed);
  plan.workspace_bytes = 0;
  launch_plan(plan, device, stream, op);
}

// With the stream's counter, or one of the launch alone where the stream has none.
void launch_with_counter(Plan plan, Device device, StreamRef stream, std::string_view op) {
  const size_t at = size_t(std::exchange(plan.counter_at, -1));
  if (uint32_t* const counter = device.is_cuda() ? cuda::counter_of(stream) : nullptr) {
    set_address(plan, at, counter);
  } else {
    plan.workspace_bytes = plan.workspace_zeroed = sizeof(uint32_t);
    plan.workspace_at = at;
  }
  launch_plan(plan, device, stream, op);
}

}  // namespace

void launch_plan(const Plan& plan, Device device, StreamRef stream, std::string_view op) {
  if (plan.counter_at >= 0) return launch_with_counter(plan, device, stream, op);
  if (plan.workspace_bytes > 0) return launch_with_workspace(plan, device, stream, op);
  if (device.type == DeviceType::simt) return launch_on_simt(plan);
  const auto get = [&](const jit::KernelKey& key) { return jit::get_kernel(key, device, stream); };
  std::future<void> ahead;
  if (plan.finish.rung) ahead = jit::load_ahead(plan.finish, device, stream);  // beside the first
  const auto kernel = get(plan.kernel), finish = plan.finish.rung ? get(plan.finish) : nullptr;
  // A kernel waits for those in front of it itself (jit::entry_text), so its start hides behind
  // them.
  const bool is_early = device_info(device).has_dependent_launch();
  const auto start = [&](const LoadedKernel& which, LaunchConfig config) {
    config.programmatic_dependent_launch = is_early;
    launch(which, config, plan.params, stream, op);
  };
  start(*kernel, plan.launch);
  if (finish) start(*finish, plan.finish_launch);
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

std::string on_another_device(DeviceType row, Device device) {
  return join("runs on ", row, ", and these tensors are on ", device,
              row == DeviceType::cuda ? "; device \"simt\" runs it without a GPU"
                                      : "; move them to the CPU");
}

void unknown_variant(std::string_view op, std::string_view forced,
                     std::span<const VariantInfo> rows) {
  std::vector<std::string_view> names;
  for (const VariantInfo& row : rows)
    if (std::find(names.begin(), names.end(), row.name) == names.end()) names.push_back(row.name);
  std::string all;
  for (const auto n : names) all.append(all.empty() ? "" : ", ").append(n);
  fail(ErrorKind::value, op, ": no variant is named \"", forced, "\"; there are ", all);
}

std::string config_text(const Plan& plan) {
  return plan.kernel.rung->config_text(plan.kernel.config.data());
}

double floor_us(const Cost& cost, const DeviceInfo& device, DType dtype) {
  if (device.memory_gb_per_s <= 0 || !device.device.is_cuda()) return 0;
  const bool is_16_bit = dtype == DType::float16 || dtype == DType::bfloat16;
  double tflops = is_16_bit ? device.peak_bf16_tflops : device.peak_fp32_tflops;
  // Every tensor core takes tf32 at half the rate of 16-bit operands.
  if (cost.may_round_to_tf32) tflops = std::max(tflops, device.peak_bf16_tflops / 2);
  const double memory_us = cost.bytes / device.memory_gb_per_s / 1e3;
  const double compute_us = tflops > 0 ? cost.flops / tflops / 1e6 : 0;
  return std::max(memory_us, compute_us);
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

// A Config without the names of types: "block_m = 64, block_n = 64".
std::string short_config(const Plan& plan) {
  std::string text = config_text(plan);
  if (const size_t brace = text.find('{'); brace != text.npos)
    text = text.substr(brace + 1, text.rfind('}') - brace - 1);
  for (size_t at = text.find("tensorcraft::"); at != text.npos; at = text.find("tensorcraft::"))
    text.erase(at, text.rfind("::", text.find_first_of(", ", at)) + 2 - at);
  return text.empty() ? "accepts" : text;
}

void write(std::ostream& out, const char* which, const KernelReport& k) {
  const LaunchConfig& launch = k.launch;
  out << which << " for " << k.arch << ": grid " << launch.grid << ", block " << launch.block;
  if (launch.cluster.count() > 1) out << ", cluster " << launch.cluster;
  if (!k.signature.empty())
    out << "\n  " << k.signature << "\n  " << k.registers << " registers a thread, "
        << k.shared_bytes << " bytes of shared memory a block, " << k.spill_bytes
        << " bytes of spills, " << k.code_bytes << " bytes of code";
  const Occupancy& o = k.occupancy;
  if (!k.problem.empty())
    out << "\n  registers and occupancy are not known: " << k.problem;
  else
    out << "\n  occupancy " << 100 * o.fraction << " %: " << o.blocks_per_sm
        << (o.blocks_per_sm == 1 ? " block of " : " blocks of ") << launch.block.count()
        << " threads on a multiprocessor, limited by " << o.limit;
  out << '\n';
}

}  // namespace

void add_kernel_report(Explanation& e, const DeviceInfo& device) {
  for (const Considered& c : e.variants)
    if (c.variant.name == e.variant && c.plan) {
      e.kernel = report_kernel(*c.plan, device);
      if (c.plan->finish.rung) e.finish = report_kernel(second_of(*c.plan), device);
    }
}

std::string to_string(const Explanation& e) {
  std::ostringstream out;
  out << e.op << " on " << e.device << ": "
      << (e.variant.empty() ? std::string_view("no variant accepts") : e.variant) << '\n';
  size_t width = 0;
  for (const Considered& c : e.variants) width = std::max(width, c.variant.name.size());
  for (const Considered& c : e.variants) {
    out << (c.variant.name == e.variant ? "* " : "  ") << c.variant.name
        << std::string(width - c.variant.name.size() + 2, ' ');
    if (!c.accepted)
      out << "declines: " << c.reason;
    else if (c.plan && c.variant.name == e.variant)
      out << short_config(*c.plan);
    else
      out << "accepts" << (c.reason.empty() ? "" : " by name: ") << c.reason;
    out << "\n" << std::string(width + 4, ' ') << c.variant.idea << '\n';
  }
  if (e.kernel) write(out, "kernel", *e.kernel);
  if (e.finish) write(out, "then a second kernel", *e.finish);
  out << "work: " << scaled(e.cost.bytes) << "B, " << scaled(e.cost.flops) << "FLOP\n";
  if (e.floor_us > 0) out << "floor: " << e.floor_us << " us\n";
  return std::move(out).str();
}

}  // namespace tensorcraft::op
