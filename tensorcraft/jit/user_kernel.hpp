// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/cuda/kernel_config.hpp"
#include "tensorcraft/cuda/occupancy.hpp"
#include "tensorcraft/cuda/stream.hpp"
#include "tensorcraft/jit/entry.hpp"
#include "tensorcraft/jit/signature.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::jit {

struct UserSource;

// The arguments of one launch, checked as they are added and laid out as the kernel takes them.
// Nothing is allocated. Valid as long as the kernel's signature.
class UserArguments {
 public:
  // None so far.
  explicit UserArguments(const KernelSignature& signature) : signature_(signature) {}

  // Adds the next argument. Kind type for an array where the signature has a number and the other
  // way round, for another dtype, and for a float where it has an integer; kind value for a number
  // outside of the type, an array that is not contiguous, one that has no memory, and one on
  // another device than those before it; kind buffer for one that is read-only where the signature
  // has no const; each with the parameter's name.
  void add(const TensorView& array);
  template <std::same_as<bool> T>
  void add(T value) {
    add_integer(value, false);
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  void add(T value) {
    add_integer(uint64_t(value), value < 0);
  }
  template <std::floating_point T>
  void add(T value) {
    add_number(double(value));
  }
  // Returns the parameter that the next argument is for; kind type if there is none: "axpy takes 4
  // arguments, ...".
  const KernelParameter& next() const;
  // Kind type if arguments are missing.
  void check_complete() const;
  // That of the arrays; none without any.
  std::optional<Device> device() const { return device_; }
  const void* data() const { return bytes_.data(); }
  const KernelSignature& signature() const { return signature_; }

 private:
  // The 64 bits of an integer, and whether they are those of a negative one.
  void add_integer(uint64_t bits, bool is_negative);
  void add_number(double value);
  void put(const KernelParameter& p, const void* value, size_t bytes);

  const KernelSignature& signature_;
  size_t count_ = 0;
  std::optional<Device> device_;
  size_t first_array_ = 0;  // whose device that is
  alignas(16) std::array<unsigned char, kMaxKernelParameters * sizeof(void*)> bytes_;
};

// Where and how one launch runs, in CUDA's words.
struct UserLaunch {
  Dim3 grid, block;                                // in blocks, in threads
  uint32_t shared_bytes = 0;                       // dynamic shared memory of a block
  std::optional<StreamRef> stream = std::nullopt;  // without: the current one of the arrays' device
  std::optional<Device> device = std::nullopt;  // of a kernel without arrays and stream; or default
};

// Reports what the compiler made of a kernel for a GPU.
struct UserKernelReport {
  // Figures are 0 and `problem` says why if they are not known.
  std::string signature;    // readable, ends in the key's hash
  std::string arch;         // "sm_90a"
  Dim3 block;               // that occupancy is for
  int registers = 0;        // of each thread
  size_t shared_bytes = 0;  // of a block, static and dynamic
  size_t spill_bytes = 0;   // stores and loads
  size_t stack_bytes = 0;   // of a thread
  size_t code_bytes = 0;    // instructions
  double compile_ms = 0;    // even if the image came from disk
  std::string_view origin;  // "compiled" or "disk"
  Occupancy occupancy;
  std::string problem;
};
// A table for a reader.
std::string to_string(const UserKernelReport& report);

// A kernel of the user's own: device text and the signature of one function in it. For each GPU it
// is compiled once, at the first launch, through the caches that the library's own kernels use; on
// the emulator once by the host's C++ compiler. Copies share all of it.
//   UserKernel axpy(text, "axpy(float* y, const float* x, float a, int64 n)");
//   axpy({.grid = {blocks}, .block = {256}}, y, x, 2.0, n);
class UserKernel {
 public:
  // `text` defines the function, as a __global__ or a TC_DEVICE one, and may include
  // tensorcraft/device/*; names of `tensorcraft` and the constants are visible in it. `file` is how
  // messages call it, the function's name and ".cu" if it is empty. Nothing is compiled yet. Kind
  // value for a signature, text or constant that cannot be one.
  UserKernel(std::string text, std::string_view signature,
             std::vector<KernelConstant> constants = {}, std::string file = {});

  // As it was read, valid for ever.
  const KernelSignature& signature() const;
  // Keys the kernel in the caches: get_kernel(key(), device), compile(key(), arch).
  const KernelKey& key() const { return key_; }

  // Enqueues a launch on a GPU; on the emulator, whose arrays lie there, runs it. A kernel
  // without arrays runs on the stream's device, else on the default one. From sm_90 on it starts as
  // the library's own kernels do: after the kernel before it, with the launch hidden. Kind value
  // for an empty grid or block and for one that the device or the kernel cannot have, for a stream
  // of another device, and for arrays on the CPU; kind compile if the text does not compile; kinds
  // of UserArguments.
  void launch(const UserLaunch& launch, const UserArguments& arguments) const;
  template <class... Arguments>
  void operator()(const UserLaunch& how, const Arguments&... arguments) const {
    UserArguments packed(signature());
    (packed.add(arguments), ...);
    launch(how, packed);
  }

  // Compiles for a device, or loads from the cache, and reports; never fails for a text that does
  // not compile: `problem` says so.
  UserKernelReport report(const DeviceInfo& device, Dim3 block = {256},
                          uint32_t shared_bytes = 0) const;

 private:
  const UserSource& source() const { return *key_.rung->user; }
  void launch_on_gpu(const UserLaunch& launch, const UserArguments& arguments, int device) const;

  KernelKey key_;
};

}  // namespace tensorcraft::jit
