// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/check.hpp"
#include "tensorcraft/core/dlpack_traits.hpp"
#include "tensorcraft/core/tensor_view.hpp"

#include <array>
#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

// The one way an operator checks its tensors. Nothing is formatted or allocated unless a check
// fails.
//
//   SymbolicSize m("m"), n("n"), k("k");
//   SymbolicDType dtype({DType::float32, DType::bfloat16});
//   TensorMatcher({m, k}).with_dtype(dtype).with_device(device).verify(a, "gemm", "a");
//   TensorMatcher({k, n}).with_dtype(dtype).with_device(device).verify(b, "gemm", "b");
//   // gemm: b: Size mismatch for shape#0('k'): expected 64 but got 63 (k is a.shape[1]); a is
//   // [32, 64], b is [63, 32]
//
// The first verify that meets a symbol binds it; later ones must agree. After the checks the values
// are at hand: m.unwrap(), dtype.unwrap(). Names given to verify must outlive the symbols (they are
// string literals).
namespace tensorcraft {

// A size or stride with a name.
class SymbolicSize {
 public:
  // The name stands in messages.
  explicit SymbolicSize(std::string_view annotation = {}) : annotation_(annotation) {}
  SymbolicSize(const SymbolicSize&) = delete;  // a copy would bind on its own
  SymbolicSize& operator=(const SymbolicSize&) = delete;

  // Was it bound?
  bool has_value() const { return has_value_; }
  // Kind internal: "Size value already set".
  void set_value(int64_t value);
  // Kind internal: "Size value is not set".
  int64_t unwrap() const;
  // The name, for messages.
  const std::string& annotation() const { return annotation_; }

 private:
  friend class TensorMatcher;
  std::string annotation_;
  int64_t value_ = 0;
  bool has_value_ = false;
  // The place that bound it: argument, "shape" or "strides", what that is, and the axis.
  std::string_view bound_arg_, bound_list_;
  Dims bound_values_;
  int bound_axis_ = 0;
};

// A dtype that several tensors share, out of the options if there are any.
class SymbolicDType {
 public:
  // Without options any dtype.
  SymbolicDType() = default;
  explicit SymbolicDType(std::initializer_list<DType> options) { set_options(options); }
  explicit SymbolicDType(std::span<const DType> options) { set_options(options); }
  SymbolicDType(const SymbolicDType&) = delete;
  SymbolicDType& operator=(const SymbolicDType&) = delete;

  // The value once it is bound, and the options.
  bool has_value() const { return has_value_; }
  void set_value(DType value);  // kind internal: "Dtype value already set"; type: not an option
  DType unwrap() const;         // kind internal: "Dtype value is not set"
  // Replaces the options; empty means any.
  void set_options(std::span<const DType> options);
  void set_options(std::initializer_list<DType> options) {
    set_options(std::span(options.begin(), options.size()));
  }
  std::span<const DType> options() const { return {options_.data(), num_options_}; }

 private:
  friend class TensorMatcher;
  // `arg` is whose dtype it is, for the message; may be empty.
  void check_option(DType value, std::string_view arg = {}) const;
  std::array<DType, kNumDTypes> options_{};
  uint32_t num_options_ = 0, option_bits_ = 0;
  DType value_{};
  bool has_value_ = false;
  std::string_view bound_arg_;
};

// A device that several tensors share. An option with index kAnyDeviceID takes each index.
class SymbolicDevice {
 public:
  // Without options any device.
  SymbolicDevice() = default;
  explicit SymbolicDevice(std::initializer_list<Device> options) { set_options(options); }
  SymbolicDevice(const SymbolicDevice&) = delete;
  SymbolicDevice& operator=(const SymbolicDevice&) = delete;

  // The value once it is bound, and the options.
  bool has_value() const { return has_value_; }
  void set_value(Device value);  // kind internal: "Device value already set"; value: not an option
  Device unwrap() const;         // kind internal: "Device value is not set"
  // Replaces the options (at most 8); empty means any.
  void set_options(std::span<const Device> options);
  void set_options(std::initializer_list<Device> options) {
    set_options(std::span(options.begin(), options.size()));
  }
  std::span<const Device> options() const { return {options_.data(), num_options_}; }

 private:
  friend class TensorMatcher;
  static constexpr size_t kMaxOptions = 8;
  void check_option(Device value) const;
  std::array<Device, kMaxOptions> options_{};
  size_t num_options_ = 0;
  Device value_;
  bool has_value_ = false;
  std::string_view bound_arg_;
};

// Takes every size.
inline constexpr int64_t kAnySize = -1;

// One entry of a shape or of strides: a symbol, a number, or kAnySize.
struct SizeRef {
  // The number counts if there is no symbol.
  SymbolicSize* symbol = nullptr;
  int64_t value = kAnySize;

  // Implicit, so that a list of sizes can be written as such.
  SizeRef() = default;
  SizeRef(SymbolicSize& s) : symbol(&s) {}              // NOLINT
  SizeRef(std::integral auto v) : value(int64_t(v)) {}  // NOLINT
};

namespace detail {
template <dlpack::DLDeviceType Code>
consteval Device device_option() {
  static_assert(Code == dlpack::kDLCPU || Code == dlpack::kDLCUDAHost || Code == dlpack::kDLCUDA ||
                    Code == dlpack::kDLCUDAManaged,
                "tensors lie on a CPU or a CUDA device");
  const bool host = Code == dlpack::kDLCPU || Code == dlpack::kDLCUDAHost;
  return host ? Device::cpu() : Device::cuda(kAnyDeviceID);
}
}  // namespace detail

// States what a tensor must be. It is built, told and used in one expression: each member takes an
// rvalue. Without with_strides the tensor must be contiguous. Tensors that share a matcher must
// agree in dtype and device if it checks those.
class TensorMatcher {
 public:
  // The rank is the length of the list.
  explicit TensorMatcher(std::initializer_list<SizeRef> shape)
      : TensorMatcher(std::span(shape.begin(), shape.size())) {}
  // For a rank known at run time. Kind value above kMaxRank.
  explicit TensorMatcher(std::span<const SizeRef> shape);
  // Takes every shape of every rank.
  static TensorMatcher any_shape();
  TensorMatcher(const TensorMatcher&) = delete;
  TensorMatcher& operator=(const TensorMatcher&) = delete;

  // Strides in elements, one an axis. An axis of size 1 (or 0) is not checked and binds nothing:
  // its stride means nothing. Kind internal: "Strides already specified", "Strides size must match
  // shape size".
  TensorMatcher&& with_strides(std::initializer_list<SizeRef> strides) && {
    return std::move(*this).with_strides(std::span(strides.begin(), strides.size()));
  }
  TensorMatcher&& with_strides(std::span<const SizeRef> strides) &&;
  TensorMatcher&& with_any_strides() &&;

  // One of these dtypes, given as C++ types, as values or as the options of a symbol, which it
  // binds.
  template <class... Ts>
    requires(sizeof...(Ts) > 0)
  TensorMatcher&& with_dtype() && {
    return std::move(*this).with_dtype({dtype_of<Ts>()...});
  }
  template <class... Ts>
    requires(sizeof...(Ts) > 0)
  TensorMatcher&& with_dtype(SymbolicDType& symbol) && {
    symbol.set_options({dtype_of<Ts>()...});
    return std::move(*this).with_dtype(symbol);
  }
  TensorMatcher&& with_dtype(SymbolicDType& symbol) &&;
  TensorMatcher&& with_dtype(std::span<const DType> options) &&;
  TensorMatcher&& with_dtype(std::initializer_list<DType> options) && {
    return std::move(*this).with_dtype(std::span(options.begin(), options.size()));
  }
  TensorMatcher&& with_dtype(DType dtype) && {
    return std::move(*this).with_dtype(std::span<const DType>(&dtype, 1));
  }

  // One of these devices, in the same three forms; a type alone takes each index.
  template <dlpack::DLDeviceType... Codes>
    requires(sizeof...(Codes) > 0)
  TensorMatcher&& with_device() && {
    return std::move(*this).with_device({detail::device_option<Codes>()...});
  }
  template <dlpack::DLDeviceType... Codes>
    requires(sizeof...(Codes) > 0)
  TensorMatcher&& with_device(SymbolicDevice& symbol) && {
    symbol.set_options({detail::device_option<Codes>()...});
    return std::move(*this).with_device(symbol);
  }
  TensorMatcher&& with_device(SymbolicDevice& symbol) &&;
  TensorMatcher&& with_device(std::span<const Device> options) &&;
  TensorMatcher&& with_device(std::initializer_list<Device> options) && {
    return std::move(*this).with_device(std::span(options.begin(), options.size()));
  }
  TensorMatcher&& with_device(Device device) && {
    return std::move(*this).with_device(std::span<const Device>(&device, 1));
  }

  // Checks one tensor; call again for more. Kind type for a dtype, value for the rest:
  // "Tensor match failed for TENSOR at FILE:LINE\n- Root cause: REASON".
  TensorMatcher&& verify(const TensorView& t, DebugInfo where = {}) &&;
  // Likewise with the text "OP: ARG: REASON (SYMBOL is OTHER.shape[AXIS])".
  TensorMatcher&& verify(const TensorView& t, std::string_view op, std::string_view arg,
                         DebugInfo where = {}) &&;

 private:
  enum class Strides : uint8_t { contiguous, any, given };
  TensorMatcher() = default;
  void match(const TensorView& t, std::string_view arg);
  void match_strides(const TensorView& t, std::string_view arg);
  void match_entry(std::string_view list, const Dims& got, int axis, std::string_view arg) const;
  [[noreturn]] void fail_size(std::string_view list, const Dims& got, int axis, int64_t expected,
                              std::string_view arg) const;
  std::string expected_shape() const;
  void match_dtype(DType got, std::string_view arg);
  void match_device(Device got, std::string_view arg);

  std::array<SizeRef, kMaxRank> shape_, strides_;
  int rank_ = -1;  // -1: any
  Strides strides_rule_ = Strides::contiguous;
  // Null: not checked. Else a symbol of the caller, or the own one.
  SymbolicDType* dtype_ = nullptr;
  SymbolicDevice* device_ = nullptr;
  SymbolicDType own_dtype_;
  SymbolicDevice own_device_;
};

}  // namespace tensorcraft
