// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/check.hpp"
#include "tensorcraft/core/dlpack.hpp"
#include "tensorcraft/cuda/kernel_config.hpp"
#include "tensorcraft/device/begin_kernel.cuh"
#include "tensorcraft/kernels/arguments.hpp"
#include "tensorcraft/kernels/check.cuh"
#include "tensorcraft/op/choice/row_plan.h"

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tensorcraft::kernels {

// One launch in two steps, where and how, then what, by the CUDA runtime; the library's class of
// this name does the same by the driver. A std::runtime_error names the line that made the object:
//   LaunchKernel(grid, block, stream)(kernel, params);
class LaunchKernel {
 public:
  // On a stream of the current device.
  LaunchKernel(dim3 grid, dim3 block, cudaStream_t stream, uint32_t dynamic_shared_bytes = 0,
               DebugInfo where = {})
      : where_(where) {
    config_.gridDim = grid;
    config_.blockDim = block;
    config_.dynamicSmemBytes = dynamic_shared_bytes;
    config_.stream = stream;
  }
  // On the default stream of a CUDA device, which must be the current one.
  LaunchKernel(dim3 grid, dim3 block, dlpack::DLDevice device, uint32_t dynamic_shared_bytes = 0,
               DebugInfo where = {})
      : LaunchKernel(grid, block, cudaStream_t(), dynamic_shared_bytes, where) {
    if (device.device_type != dlpack::kDLCUDA && device.device_type != dlpack::kDLCUDAManaged)
      throw std::invalid_argument("LaunchKernel: kernels run on CUDA devices");
    int current = 0;
    check(cudaGetDevice(&current));
    if (current != device.device_id)
      throw std::invalid_argument("LaunchKernel: make the device current with cudaSetDevice first");
  }
  // As a configuration says.
  LaunchKernel(dim3 grid, const KernelConfig& config, DebugInfo where = {})
      : LaunchKernel(grid, dim3(config.block_size_x, config.block_size_y, config.block_size_z),
                     config.stream, config.shared_memory_bytes, where) {}

  // More of the launch: blocks of a cluster; a start before the kernel ahead of it has ended.
  LaunchKernel& cluster(dim3 size) {
    auto& attribute = attributes_[config_.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {size.x, size.y, size.z};
    return *this;
  }
  LaunchKernel& programmatic_dependent_launch(bool enabled = true) {
    auto& attribute = attributes_[config_.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = enabled;
    return *this;
  }

  // Arguments are copied before the call returns.
  template <class... Parameters>
  void operator()(void (*kernel)(Parameters...),
                  const std::type_identity_t<Parameters>&... arguments) const {
    constexpr size_t kWithoutAsking = 48 * 1024;  // of dynamic shared memory
    const auto* entry = reinterpret_cast<const void*>(kernel);
    if (config_.dynamicSmemBytes > kWithoutAsking)
      check(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 int(config_.dynamicSmemBytes)));
    void* addresses[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
    cudaLaunchConfig_t config = config_;
    config.attrs = const_cast<cudaLaunchAttribute*>(attributes_.data());
    check(cudaLaunchKernelExC(&config, entry, addresses));
  }

 private:
  void check(cudaError_t status) const {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // the next check shall not see this error again
    check_cuda(status, where_.file_name(), long(where_.line()));
  }

  cudaLaunchConfig_t config_{};
  std::array<cudaLaunchAttribute, 2> attributes_{};  // cluster, programmatic dependent launch
  DebugInfo where_;
};

// A value as a type: nvcc refuses a class as a template argument of a __global__ function.
template <auto V>
struct Constant {
  static constexpr auto value = V;  // the value
};

// Threads that a multiprocessor takes, of the architecture that is being compiled.
constexpr int threads_per_sm() {
#if defined(__CUDA_ARCH__) && \
    ((__CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900) || __CUDA_ARCH__ >= 1100)
  return 1536;
#else
  return 2048;
#endif
}

// A Config that a kernel is compiled for. A list is filled from variables that are not const: GCC
// 12 takes what was copied from a const one as another type than nvcc does, and the launch finds no
// kernel.
template <class Config>
struct Instance {
  Config config;       // compiled in
  int min_blocks = 1;  // of one multiprocessor, for its registers
  // Those of them that there is room for.
  constexpr int fitting_blocks() const {
    return op::blocks_with_room(min_blocks, config.threads, threads_per_sm());
  }
};

// The default Config alone.
template <class Config>
inline constexpr std::array kDefaultInstance{Instance<Config>{}};

// Equal in every field?
template <class Config>
bool is_same_config(const Config& a, const Config& b) {
  static_assert(std::has_unique_object_representations_v<Config>, "compared by its bytes");
  return std::memcmp(&a, &b, sizeof(Config)) == 0;
}

// Does a kernel of this header that begins with ptx::griddepcontrol_wait() wait there, as it runs
// on the current device? Text compiled for sm_90 or later does. Asked once a kernel and device.
template <class C, class Set>
bool waits_itself(const void* entry, DebugInfo where) {
  static std::array<std::atomic<signed char>, 64> known{};  // 0: not asked, 1: no, 2: yes
  const auto check = [&](cudaError_t s) { check_cuda(s, where.file_name(), long(where.line())); };
  int device = 0;
  check(cudaGetDevice(&device));
  auto& answer = known[size_t(device) % known.size()];
  if (answer == 0 || size_t(device) >= known.size()) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, entry));
    answer = attributes.ptxVersion >= 90 ? 2 : 1;
  }
  return answer == 2;
}

// A number of the current device; an error names the caller's line.
inline int device_attribute(cudaDeviceAttr attribute, DebugInfo where) {
  int device = 0, value = 0;
  check_cuda(cudaGetDevice(&device), where.file_name(), long(where.line()));
  check_cuda(cudaDeviceGetAttribute(&value, attribute, device), where.file_name(),
             long(where.line()));
  return value;
}

// The current device as choices see it; asked once by each thread while its device stays.
inline op::Gpu current_gpu(DebugInfo where) {
  thread_local int known_device = -1;
  thread_local op::Gpu known;
  int device = 0;
  check_cuda(cudaGetDevice(&device), where.file_name(), long(where.line()));
  if (device == known_device) return known;
  const auto number = [&](cudaDeviceAttr a) { return device_attribute(a, where); };
  known = {.architecture = 10 * number(cudaDevAttrComputeCapabilityMajor) +
                           number(cudaDevAttrComputeCapabilityMinor),
           .num_sms = number(cudaDevAttrMultiProcessorCount),
           .threads_per_sm = number(cudaDevAttrMaxThreadsPerMultiProcessor),
           .shared_bytes_per_block = number(cudaDevAttrMaxSharedMemoryPerBlockOptin)};
  known_device = device;
  return known;
}

// The kernel of every rung: compiled for the types T and the instance C, a Constant.
template <class Rung, class C, class... T>
__global__ void __launch_bounds__(C::value.config.threads, C::value.fitting_blocks()) entry(
    const __grid_constant__ KernelParams<decltype(&Rung::template run<T..., C::value.config>)> p) {
  if constexpr (!kBeginsItself<Rung>) begin_kernel();
  Rung::template run<T..., C::value.config>(p);
}

// The kernels of a rung for the types T: the instances of the array kList.
template <class Rung, const auto& kList, class... T>
struct Kernels {
  // The rung's name, its instances, and the kernel of one.
  std::string_view variant;
  static constexpr const auto& list = kList;
  template <class C>
  static constexpr auto entry() {
    return &kernels::entry<Rung, C, T...>;
  }
};

// Launches the instance that has the start's Config; false if Set has none. Set::list holds the
// instances of one rung and Set::entry<Constant<instance>>() gives the kernel of one.
template <class Set, class Config, class Params>
bool launch_listed(const op::Start<Config>& start, const Params& params, cudaStream_t stream,
                   DebugInfo where) {
  const auto launch_if = [&]<class C>(C) {
    if (!is_same_config(start.config, C::value.config)) return false;
    const KernelConfig config{.block_size_x = uint32_t(start.config.threads),
                              .shared_memory_bytes = uint32_t(start.shared_bytes),
                              .stream = stream};
    const auto kernel = Set::template entry<C>();
    LaunchKernel launch(dim3(uint32_t(start.blocks)), config, where);
    if (start.cluster > 1) launch.cluster(dim3(uint32_t(start.cluster)));
    launch.programmatic_dependent_launch(
        waits_itself<C, Set>(reinterpret_cast<const void*>(kernel), where))(kernel, params);
    return true;
  };
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return (launch_if(Constant<Set::list[I]>{}) || ...);
  }(std::make_index_sequence<Set::list.size()>{});
}

// Launches from a set that is complete by construction.
template <class Set, class Config, class Params>
std::string_view launch_or_fail(std::string_view variant, const op::Start<Config>& start,
                                const Params& params, cudaStream_t stream, DebugInfo where) {
  if (!launch_listed<Set>(start, params, stream, where))
    fail({ErrorKind::internal, where}, "no kernel of ", variant, " was compiled for this problem");
  return variant;
}

// A rung that takes a call: its name, its start, and Params as it changes them.
template <class Params, class Config>
struct Taken {
  // The rung's.
  std::string_view variant;
  op::Start<Config> start;
  Params params;
};
// Asks one rung; none if it refuses or a later one is better.
template <class Params, class Given, class Config>
std::optional<Taken<Params, Config>> ask(const op::Rung<Params, Given, Config>& rung,
                                         const Params& p, const Given& given, const op::Gpu& gpu) {
  const op::Choice<Config> choice = op::check_start(rung.choose(p, given, gpu), gpu);
  if (!choice.refusal.empty() || !choice.preference.empty()) return {};
  Taken<Params, Config> taken{rung.name, choice.start, p};
  if (rung.adapt) rung.adapt(taken.params, given, gpu);
  return taken;
}

// The first rung of a ladder that takes a call, for launchers that do more than launch its kernel;
// kind internal if there is none.
template <class Params, class Given, class Config, size_t n>
Taken<Params, Config> take(const op::Rung<Params, Given, Config> (&ladder)[n], const Params& p,
                           const Given& given, const op::Gpu& gpu, DebugInfo where) {
  for (const auto& rung : ladder)
    if (const auto taken = ask(rung, p, given, gpu)) return *taken;
  fail({ErrorKind::internal, where}, "no rung takes this problem");
}

// Launches the first rung of a ladder that takes the call and has a kernel of its Config among
// `compiled`. Returns its name.
template <class Params, class Given, class Config, size_t n, class... Set>
std::string_view launch_ladder(const op::Rung<Params, Given, Config> (&ladder)[n], const Params& p,
                               const Given& given, cudaStream_t stream, DebugInfo where,
                               Set... compiled) {
  const op::Gpu gpu = current_gpu(where);
  for (const auto& rung : ladder) {
    if (((rung.name != compiled.variant) && ...)) continue;
    const auto taken = ask(rung, p, given, gpu);
    if (taken && ((rung.name == compiled.variant &&
                   launch_listed<Set>(taken->start, taken->params, stream, where)) ||
                  ...))
      return rung.name;
  }
  fail({ErrorKind::internal, where}, "no kernel was compiled for this problem");
}

// Launches the rung that the caller names; as launch_ladder() if `variant` is empty. No rung runs
// in its place: std::invalid_argument for a name of none in `compiled`, kind unsupported if it
// refuses.
template <class Params, class Given, class Config, size_t n, class... Set>
std::string_view launch_variant(const char* launcher, std::string_view variant,
                                const op::Rung<Params, Given, Config> (&ladder)[n], const Params& p,
                                const Given& given, cudaStream_t stream, DebugInfo where,
                                Set... compiled) {
  if (variant.empty()) return launch_ladder(ladder, p, given, stream, where, compiled...);
  const std::string_view known[] = {compiled.variant...};
  std::string names;
  for (const std::string_view name : known)
    names += (names.empty() ? "" : ", ") + std::string(name);
  if (((variant != compiled.variant) && ...))
    throw std::invalid_argument(std::string(launcher) + ": variant must be one of " + names);
  const op::Gpu gpu = current_gpu(where);
  for (const auto& rung : ladder) {
    if (rung.name != variant) continue;
    const op::Choice<Config> choice = op::check_start(rung.choose(p, given, gpu), gpu);
    if (!choice.refusal.empty())
      fail({ErrorKind::unsupported, where}, launcher, ": ", variant, ": ", choice.refusal);
    Params own = p;
    if (rung.adapt) rung.adapt(own, given, gpu);
    if (((variant == compiled.variant && launch_listed<Set>(choice.start, own, stream, where)) ||
         ...))
      return rung.name;
  }
  fail({ErrorKind::internal, where}, "no kernel of ", variant, " was compiled for this problem");
}

// Widths whose rows fit registers without a remainder: what the norms compile for.
inline constexpr std::array<int64_t, 18> kRegisterRows = {64,   128,  256,  384,   512,   768,
                                                          1024, 1536, 2048, 3072,  4096,  5120,
                                                          6144, 7168, 8192, 10240, 12288, 16384};

// The Configs of these widths for aligned rows of T.
template <class T, class Config>
inline constexpr auto kRowsInRegisters = [] {
  std::array<Instance<Config>, kRegisterRows.size()> all{};
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = {op::registers_config<Config>(kRegisterRows[i], 16 / int(sizeof(T)))};
  return all;
}();

}  // namespace tensorcraft::kernels
