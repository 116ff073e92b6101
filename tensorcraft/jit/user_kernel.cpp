// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/user_kernel.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/float16.cuh"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/jit/host_compiler.hpp"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/jit/machine_code.hpp"
#include "tensorcraft/jit/user_code.hpp"
#include "tensorcraft/jit/user_source.hpp"
#include "tensorcraft/simt/launch.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace tensorcraft::jit {
namespace {

constexpr uint32_t kMaxGridX = 0x7fffffff, kMaxGridYZ = 65535;
constexpr uint32_t kMaxBlockXY = 1024, kMaxBlockZ = 64;
constexpr uint64_t kMaxBlockThreads = 1024;
// Every device gives a block so much without looking.
constexpr size_t kSmallSharedBytes = 48 * 1024;

std::string text_of(const Dim3& d) { return join("(", d.x, ", ", d.y, ", ", d.z, ")"); }

bool is_floating(NumberType type) { return type >= NumberType::float8_e4m3fn; }

struct IntegerRange {
  int64_t low;
  uint64_t high;
};
IntegerRange range_of(NumberType type) {
  switch (type) {
    case NumberType::bool_:
      return {0, 1};
    case NumberType::uint8:
    case NumberType::uint16:
    case NumberType::uint32:
    case NumberType::uint64:
      return {0, ~uint64_t(0) >> (64 - 8 * number_bytes(type))};
    default: {
      const uint64_t high = ~uint64_t(0) >> (65 - 8 * number_bytes(type));
      return {-int64_t(high) - 1, high};
    }
  }
}

double largest(NumberType type) {
  switch (type) {
    case NumberType::float8_e4m3fn:
      return 448;
    case NumberType::float8_e5m2:
      return 57344;
    case NumberType::float16:
      return 65504;
    case NumberType::bfloat16:
      return 0x1.fep127;
    case NumberType::float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

// The head of every message about a parameter: "axpy: x".
std::string place(const KernelSignature& signature, const KernelParameter& p) {
  return join(signature.name, ": ", p.name);
}

void check_grid(const KernelSignature& signature, const Dim3& grid) {
  if (grid.count() == 0)
    fail(ErrorKind::value, signature.name, ": grid ", text_of(grid),
         " is empty; leave the launch out if there is nothing to do");
  if (grid.x > kMaxGridX || grid.y > kMaxGridYZ || grid.z > kMaxGridYZ)
    fail(ErrorKind::value, signature.name, ": grid ", text_of(grid),
         " is larger than (2147483647, 65535, 65535); let each block do more");
}

void check_block(const KernelSignature& signature, const Dim3& block) {
  if (block.count() == 0 || block.count() > kMaxBlockThreads || block.x > kMaxBlockXY ||
      block.y > kMaxBlockXY || block.z > kMaxBlockZ)
    fail(ErrorKind::value, signature.name, ": block ", text_of(block), " has ", block.count(),
         " threads; a block has 1 to 1024, at most (1024, 1024, 64) of them along the axes");
}

void check_fit(const KernelSignature& signature, const LoadedKernel& kernel,
               const UserLaunch& launch) {
  if (launch.block.count() > uint64_t(kernel.max_threads()))
    fail(ErrorKind::value, signature.name, ": block ", text_of(launch.block), " has ",
         launch.block.count(), " threads; with ", kernel.registers(),
         " registers a thread and its launch bounds the kernel takes at most ",
         kernel.max_threads(), "; give it __launch_bounds__(", launch.block.count(),
         ") or a smaller block");
  const size_t shared = kernel.static_shared_bytes() + launch.shared_bytes;
  if (shared <= kSmallSharedBytes) return;
  const size_t limit = device_info(Device::cuda(kernel.device())).shared_bytes_per_block;
  if (shared > limit)
    fail(ErrorKind::value, signature.name, ": ", launch.shared_bytes, " bytes of dynamic and ",
         kernel.static_shared_bytes(), " bytes of static shared memory are more than the ", limit,
         " bytes of a block on cuda:", kernel.device());
}

Index3 index3(const Dim3& d) { return {d.x, d.y, d.z}; }

}  // namespace

const KernelParameter& UserArguments::next() const {
  if (count_ == signature_.parameters.size())
    fail(ErrorKind::type, signature_.name, ": takes ", count_, " arguments, got more; they are ",
         to_string(signature_));
  return signature_.parameters[count_];
}

void UserArguments::check_complete() const {
  if (count_ < signature_.parameters.size())
    fail(ErrorKind::type, signature_.name, ": takes ", signature_.parameters.size(),
         " arguments, got ", count_, "; ", signature_.parameters[count_].name,
         " is missing: ", to_string(signature_));
}

void UserArguments::put(const KernelParameter& p, const void* value, size_t bytes) {
  std::memcpy(bytes_.data() + p.offset, value, bytes);
  ++count_;
}

void UserArguments::add(const TensorView& array) {
  const KernelParameter& p = next();
  if (!p.is_array())
    fail(ErrorKind::type, place(signature_, p), ": an array was given for a number (",
         to_string(p.number), "); write ", p.spelling, "* in the signature to take an array");
  if (array.dtype() != *p.dtype)
    fail(ErrorKind::type, place(signature_, p), ": expected an array of ", to_string(p.number),
         ", got ", array.dtype(), "; convert it, or take ", device_type(array.dtype()),
         "* in the signature");
  if (!device_) {
    device_ = array.device();
    first_array_ = count_;
  } else if (*device_ != array.device()) {
    fail(ErrorKind::value, place(signature_, p), " is on ", array.device(), ", but ",
         signature_.parameters[first_array_].name, " is on ", *device_,
         "; move one to the other's device");
  }
  if (!array.is_contiguous())
    fail(ErrorKind::value, place(signature_, p), ": an array of shape ", array.shape(),
         " and strides ", array.strides(),
         " is not contiguous; give a contiguous copy, since a kernel is passed an address alone");
  if (!p.is_const && array.read_only())
    fail(ErrorKind::buffer, place(signature_, p),
         ": the array is read-only; write const in the signature if the kernel only reads it");
  const void* const data = array.data();
  if (!data && array.size() > 0)
    fail(ErrorKind::value, place(signature_, p), ": the array has no memory");
  put(p, &data, sizeof(data));
}

void UserArguments::add_integer(uint64_t bits, bool is_negative) {
  const KernelParameter& p = next();
  if (p.is_array())
    fail(ErrorKind::type, place(signature_, p), ": a number was given for an array of ",
         to_string(p.number));
  if (is_floating(p.number)) {
    const double value = is_negative ? double(int64_t(bits)) : double(bits);
    return add_number(value);
  }
  const IntegerRange range = range_of(p.number);
  if (is_negative ? int64_t(bits) < range.low : bits > range.high)
    fail(ErrorKind::value, place(signature_, p), ": ",
         is_negative ? std::to_string(int64_t(bits)) : std::to_string(bits), " is not in [",
         range.low, ", ", range.high, "], the range of ", to_string(p.number));
  put(p, &bits, number_bytes(p.number));  // little endian
}

void UserArguments::add_number(double value) {
  const KernelParameter& p = next();
  if (p.is_array())
    fail(ErrorKind::type, place(signature_, p), ": a number was given for an array of ",
         to_string(p.number));
  if (!is_floating(p.number))
    fail(ErrorKind::type, place(signature_, p), ": the float ", value, " was given for ",
         to_string(p.number), "; give a whole number");
  if (std::isfinite(value) && std::abs(value) > largest(p.number))
    fail(ErrorKind::value, place(signature_, p), ": ", value, " is beyond ", largest(p.number),
         ", the largest ", to_string(p.number));
  switch (p.number) {
    case NumberType::float64:
      return put(p, &value, sizeof(value));
    case NumberType::float16: {
      const f16 x(static_cast<float>(value));
      return put(p, &x, sizeof(x));
    }
    case NumberType::bfloat16: {
      const bf16 x(static_cast<float>(value));
      return put(p, &x, sizeof(x));
    }
    case NumberType::float8_e4m3fn: {
      const e4m3 x(static_cast<float>(value));
      return put(p, &x, sizeof(x));
    }
    case NumberType::float8_e5m2: {
      const e5m2 x(static_cast<float>(value));
      return put(p, &x, sizeof(x));
    }
    default: {
      const auto x = float(value);
      return put(p, &x, sizeof(x));
    }
  }
}

UserKernel::UserKernel(std::string text, std::string_view signature,
                       std::vector<KernelConstant> constants, std::string file) {
  UserSource source{.text = std::move(text),
                    .signature = parse_signature(signature, constants),
                    .constants = std::move(constants)};
  source.file = file.empty() ? entry_name(source).substr(5) + ".cu" : std::move(file);
  key_.rung = &rung_of(std::move(source));
  key_.threads = int(kMaxBlockThreads);
}

const KernelSignature& UserKernel::signature() const { return source().signature; }

void UserKernel::launch(const UserLaunch& how, const UserArguments& arguments) const {
  arguments.check_complete();
  check_grid(signature(), how.grid);
  check_block(signature(), how.block);
  const Device device = arguments.device() ? *arguments.device()
                        : how.stream       ? Device::cuda(how.stream->device())
                                           : how.device.value_or(default_device());
  if (device.is_cuda()) return launch_on_gpu(how, arguments, device.index);
  if (device != Device::simt())
    fail(ErrorKind::value, signature().name, ": a kernel runs on a GPU or on the emulator, and ",
         arguments.device() ? "its arrays are on " : "the default device is ", device,
         "; move the arrays to \"cuda\" or \"simt\"");
  if (how.stream)
    fail(ErrorKind::value, signature().name,
         ": a stream was given, and the kernel runs on the emulator, which has none");
  const auto kernel = host_kernel(key_);
  run_user_code(signature().name, [&] {
    simt::launch({.name = signature().name,
                  .grid = index3(how.grid),
                  .block = index3(how.block),
                  .shared_bytes = how.shared_bytes},
                 kernel->body, arguments.data());
  });
}

void UserKernel::launch_on_gpu(const UserLaunch& how, const UserArguments& arguments,
                               int device) const {
  const StreamRef stream = how.stream ? *how.stream : current_stream(device);
  if (stream.device() != device)
    fail(ErrorKind::value, signature().name, ": the arrays are on cuda:", device,
         " and the stream belongs to cuda:", stream.device(), "; use a stream of the same device");
  const auto& kernel = get_kernel(key_, Device::cuda(device), stream);
  check_fit(signature(), *kernel, how);
  const LaunchConfig config{
      .grid = how.grid,
      .block = how.block,
      .shared_bytes = how.shared_bytes,
      .programmatic_dependent_launch = device_info(Device::cuda(device)).has_dependent_launch()};
  tensorcraft::launch(*kernel, config, arguments.data(), stream, signature().name);
}

UserKernelReport UserKernel::report(const DeviceInfo& device, Dim3 block,
                                    uint32_t shared_bytes) const {
  check_block(signature(), block);
  UserKernelReport report{.arch = device.arch(), .block = block};
  if (device.compute_capability == 0) {
    report.problem = join("there are no registers on ", device.device,
                          "; ask about a GPU, such as sm_90a, which need not be here");
    return report;
  }
  try {
    const CompileReport compiled = compile(key_, report.arch);
    report.signature = compiled.signature;
    report.registers = compiled.registers;
    report.shared_bytes = compiled.shared_bytes + shared_bytes;
    report.spill_bytes = compiled.spill_bytes;
    report.stack_bytes = compiled.stack_bytes;
    report.code_bytes = machine_code_bytes(compiled.image);
    report.compile_ms = compiled.milliseconds;
    report.origin = compiled.from_disk ? "disk" : "compiled";
  } catch (const Error& error) {
    report.problem = error.what();
    return report;
  }
  if (report.registers == 0)
    report.problem = "NVRTC does not know " + report.arch + "; the driver compiles it at the load";
  else
    report.occupancy = occupancy(device, {.threads = int(block.count()),
                                          .registers = report.registers,
                                          .shared_bytes = report.shared_bytes});
  return report;
}

std::string to_string(const UserKernelReport& r) {
  if (!r.problem.empty()) return join("no figures for ", r.arch, ": ", r.problem);
  return join(r.signature, " on ", r.arch, "\n  registers   ", r.registers, " a thread, ",
              r.spill_bytes, " bytes spilled, stack ", r.stack_bytes, " bytes\n  shared      ",
              r.shared_bytes, " bytes a block\n  occupancy   ", r.occupancy.blocks_per_sm,
              " blocks of ", text_of(r.block), " on a multiprocessor, ",
              std::lround(r.occupancy.fraction * 100), " % of its warps, limited by ",
              r.occupancy.limit, "\n  code        ", r.code_bytes, " bytes, ",
              r.origin == "disk" ? "from disk, compiled once in " : "compiled in ", r.compile_ms,
              " ms\n");
}

}  // namespace tensorcraft::jit
