// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/tensor_matcher.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <ostream>

namespace tensorcraft {
namespace {

// " (k is a.shape[1])", or nothing if the binding has no name to show.
std::string origin(std::string_view symbol, std::string_view arg, std::string_view list, int axis) {
  if (symbol.empty() || arg.empty()) return "";
  return join(" (", symbol, " is ", arg, '.', list, '[', axis, "])");
}

std::string origin(std::string_view property, std::string_view arg) {
  return arg.empty() ? "" : join(" (the ", property, " of ", arg, ")");
}

[[noreturn]] void fail_size(const SizeRef& want, int64_t expected, int64_t got,
                            std::string_view list, int axis, const std::string& from) {
  const std::string name = want.symbol && !want.symbol->annotation().empty()
                               ? join("('", want.symbol->annotation(), "')")
                               : "";
  const std::string_view entry = list == "shape" ? "shape" : "stride";
  fail(ErrorKind::value, "Size mismatch for ", entry, '#', axis, name, ": expected ", expected,
       " but got ", got, from);
}

bool accepts(Device option, Device device) {
  return option.type == device.type &&
         (option.index == kAnyDeviceID || option.index == device.index);
}

}  // namespace

void SymbolicSize::set_value(int64_t value) {
  if (has_value_) fail(ErrorKind::internal, "Size value already set");
  value_ = value;
  has_value_ = true;
}

int64_t SymbolicSize::unwrap() const {
  if (!has_value_) fail(ErrorKind::internal, "Size value is not set");
  return value_;
}

void SymbolicDType::set_value(DType value) {
  if (has_value_) fail(ErrorKind::internal, "Dtype value already set");
  check_option(value);
  value_ = value;
  has_value_ = true;
}

DType SymbolicDType::unwrap() const {
  if (!has_value_) fail(ErrorKind::internal, "Dtype value is not set");
  return value_;
}

void SymbolicDType::set_options(std::span<const DType> options) {
  num_options_ = 0;
  for (const DType option : options) {
    const auto known = this->options();
    if (std::find(known.begin(), known.end(), option) == known.end())
      options_[num_options_++] = option;
  }
}

void SymbolicDType::check_option(DType value) const {
  const auto allowed = options();
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
  fail(ErrorKind::type, "Dtype value [", value,
       "] not in the allowed options: ", PrintAbleSpan(allowed));
}

void SymbolicDevice::set_value(Device value) {
  if (has_value_) fail(ErrorKind::internal, "Device value already set");
  check_option(value);
  value_ = value;
  has_value_ = true;
}

Device SymbolicDevice::unwrap() const {
  if (!has_value_) fail(ErrorKind::internal, "Device value is not set");
  return value_;
}

void SymbolicDevice::set_options(std::span<const Device> options) {
  if (options.size() > kMaxOptions)
    fail(ErrorKind::internal, "at most ", kMaxOptions, " device options are accepted, got ",
         options.size());
  std::copy(options.begin(), options.end(), options_.begin());
  num_options_ = options.size();
}

void SymbolicDevice::check_option(Device value) const {
  const auto allowed = options();
  if (allowed.empty() ||
      std::any_of(allowed.begin(), allowed.end(), [&](Device d) { return accepts(d, value); }))
    return;
  fail(ErrorKind::value, "Device value [", value,
       "] not in the allowed options: ", PrintAbleSpan(allowed));
}

TensorMatcher::TensorMatcher(std::span<const SizeRef> shape) : rank_(int(shape.size())) {
  if (shape.size() > size_t(kMaxRank))
    fail(ErrorKind::value, "a shape of ", shape.size(), " dimensions is asked for; at most ",
         kMaxRank, " are accepted");
  std::copy(shape.begin(), shape.end(), shape_.begin());
}

TensorMatcher TensorMatcher::any_shape() { return {}; }

TensorMatcher&& TensorMatcher::with_strides(std::span<const SizeRef> strides) && {
  if (strides_rule_ != Strides::contiguous) fail(ErrorKind::internal, "Strides already specified");
  if (int(strides.size()) != rank_) fail(ErrorKind::internal, "Strides size must match shape size");
  std::copy(strides.begin(), strides.end(), strides_.begin());
  strides_rule_ = Strides::given;
  return std::move(*this);
}

TensorMatcher&& TensorMatcher::with_any_strides() && {
  if (strides_rule_ != Strides::contiguous) fail(ErrorKind::internal, "Strides already specified");
  strides_rule_ = Strides::any;
  return std::move(*this);
}

TensorMatcher&& TensorMatcher::with_dtype(SymbolicDType& symbol) && {
  dtype_ = &symbol;
  return std::move(*this);
}

TensorMatcher&& TensorMatcher::with_dtype(std::span<const DType> options) && {
  own_dtype_.set_options(options);
  dtype_ = &own_dtype_;
  return std::move(*this);
}

TensorMatcher&& TensorMatcher::with_device(SymbolicDevice& symbol) && {
  device_ = &symbol;
  return std::move(*this);
}

TensorMatcher&& TensorMatcher::with_device(std::span<const Device> options) && {
  own_device_.set_options(options);
  device_ = &own_device_;
  return std::move(*this);
}

TensorMatcher&& TensorMatcher::verify(const TensorView& t, DebugInfo where) && {
  try {
    match(t, {});
  } catch (const Error& e) {
    throw Error(e.kind(),
                join("Tensor match failed for ", t, " at ", where.file_name(), ':', where.line(),
                     "\n- Root cause: ", e.what()),
                where);
  }
  return std::move(*this);
}

TensorMatcher&& TensorMatcher::verify(const TensorView& t, std::string_view op,
                                      std::string_view arg, DebugInfo where) && {
  try {
    match(t, arg);
  } catch (const Error& e) {
    throw Error(e.kind(), join(op, ": ", arg, ": ", e.what()), where);
  }
  return std::move(*this);
}

void TensorMatcher::match(const TensorView& t, std::string_view arg) {
  if (rank_ >= 0) {
    if (t.rank() != rank_)
      fail(ErrorKind::value, "Tensor dimension mismatch: expected ", rank_, " but got ", t.rank());
    for (int i = 0; i < rank_; ++i) match_size(shape_[size_t(i)], t.shape(i), "shape", i, arg);
  }
  match_strides(t, arg);
  if (dtype_) match_dtype(t.dtype(), arg);
  if (device_) match_device(t.device(), arg);
}

void TensorMatcher::match_strides(const TensorView& t, std::string_view arg) {
  if (strides_rule_ == Strides::any) return;
  if (strides_rule_ == Strides::contiguous) {
    if (!t.is_contiguous()) fail(ErrorKind::value, "Tensor is not contiguous as expected");
    return;
  }
  for (int i = 0; i < rank_; ++i)
    if (t.shape(i) > 1) match_size(strides_[size_t(i)], t.stride(i), "strides", i, arg);
}

void TensorMatcher::match_size(const SizeRef& want, int64_t got, std::string_view list, int axis,
                               std::string_view arg) {
  if (!want.symbol) {
    if (want.value != kAnySize && want.value != got)
      fail_size(want, want.value, got, list, axis, "");
    return;
  }
  SymbolicSize& symbol = *want.symbol;
  if (!symbol.has_value_) {
    symbol.set_value(got);
    symbol.bound_arg_ = arg;
    symbol.bound_list_ = list;
    symbol.bound_axis_ = axis;
  } else if (symbol.value_ != got) {
    fail_size(
        want, symbol.value_, got, list, axis,
        origin(symbol.annotation_, symbol.bound_arg_, symbol.bound_list_, symbol.bound_axis_));
  }
}

void TensorMatcher::match_dtype(DType got, std::string_view arg) {
  if (!dtype_->has_value_) {
    dtype_->set_value(got);
    dtype_->bound_arg_ = arg;
  } else if (dtype_->value_ != got) {
    fail(ErrorKind::type, "DType mismatch: expected ", dtype_->value_, " but got ", got,
         origin("dtype", dtype_->bound_arg_));
  }
}

void TensorMatcher::match_device(Device got, std::string_view arg) {
  if (!device_->has_value_) {
    device_->set_value(got);
    device_->bound_arg_ = arg;
  } else if (device_->value_ != got) {
    fail(ErrorKind::value, "Device mismatch: expected ", device_->value_, " but got ", got,
         origin("device", device_->bound_arg_));
  }
}

}  // namespace tensorcraft
