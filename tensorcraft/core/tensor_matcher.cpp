// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/core/tensor_matcher.hpp"

#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <ostream>
#include <sstream>
#include <utility>

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

// How to pass what is asked for, if `arg` is an array that the caller has, not one to be written.
template <class... Parts>
std::string advice(std::string_view arg, const Parts&... parts) {
  const bool is_written = arg == "out" || arg.ends_with("_out");
  return arg.empty() || is_written ? "" : join(parts...);
}

std::string convert_to(DType dtype, std::string_view arg) {
  return advice(arg, "; tc.astype(", arg, ", tc.", dtype, ") converts it");
}

static_assert(kNumDTypes <= 32);
uint32_t bit_of(DType dtype) { return uint32_t(1) << unsigned(dtype); }

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
  num_options_ = option_bits_ = 0;
  for (const DType option : options) {
    if (option_bits_ & bit_of(option)) continue;
    option_bits_ |= bit_of(option);
    options_[num_options_++] = option;
  }
}

void SymbolicDType::check_option(DType value, std::string_view arg) const {
  if (num_options_ == 0 || (option_bits_ & bit_of(value))) return;
  const auto allowed = options();
  fail(ErrorKind::type, "Dtype value [", value,
       "] not in the allowed options: ", PrintAbleSpan(allowed), convert_to(allowed[0], arg));
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
      fail(ErrorKind::value, "Tensor dimension mismatch: expected ", rank_, " but got ", t.rank(),
           arg.empty() ? "" : join("; ", arg, " is ", t.shape()));
    for (int i = 0; i < rank_; ++i) match_entry("shape", t.shape(), i, arg);
  }
  match_strides(t, arg);
  if (dtype_) match_dtype(t.dtype(), arg);
  if (device_) match_device(t.device(), arg);
}

void TensorMatcher::match_strides(const TensorView& t, std::string_view arg) {
  if (strides_rule_ == Strides::any) return;
  if (strides_rule_ == Strides::contiguous) {
    if (!t.is_contiguous())
      fail(ErrorKind::value, "Tensor is not contiguous as expected",
           arg.empty() ? "" : join("; strides ", t.strides()),
           advice(arg, ", pass ", arg, ".copy()"));
    return;
  }
  for (int i = 0; i < rank_; ++i)
    if (t.shape(i) > 1) match_entry("strides", t.strides(), i, arg);
}

void TensorMatcher::match_entry(std::string_view list, const Dims& got, int axis,
                                std::string_view arg) const {
  const SizeRef& want = (list == "shape" ? shape_ : strides_)[size_t(axis)];
  if (!want.symbol) {
    if (want.value != kAnySize && want.value != got[axis])
      fail_size(list, got, axis, want.value, arg);
    return;
  }
  SymbolicSize& symbol = *want.symbol;
  if (!symbol.has_value_) {
    symbol.set_value(got[axis]);
    symbol.bound_arg_ = arg;
    symbol.bound_list_ = list;
    symbol.bound_axis_ = axis;
    symbol.bound_values_ = got;
  } else if (symbol.value_ != got[axis]) {
    fail_size(list, got, axis, symbol.value_, arg);
  }
}

std::string TensorMatcher::expected_shape() const {
  std::ostringstream text;
  for (int i = 0; i < rank_; ++i) {
    const auto& [symbol, value] = shape_[size_t(i)];
    text << (i ? ", " : "[");
    if (symbol && !symbol->has_value())
      text << symbol->annotation();
    else if (!symbol && value == kAnySize)
      text << '?';
    else
      text << (symbol ? symbol->value_ : value);
  }
  return std::move(text).str() + ']';
}

// "a is [2, 3], b is [2, 3]", or "out is [3, 3], expected [3, 4]" if no other argument set the
// size.
void TensorMatcher::fail_size(std::string_view list, const Dims& got, int axis, int64_t expected,
                              std::string_view arg) const {
  const bool is_shape = list == "shape";
  const auto& wanted = is_shape ? shape_ : strides_;
  const SymbolicSize* const symbol = wanted[size_t(axis)].symbol;
  std::ostringstream text;
  text << "Size mismatch for " << (is_shape ? "shape" : "stride") << '#' << axis;
  if (symbol && !symbol->annotation().empty()) text << "('" << symbol->annotation() << "')";
  text << ": expected " << expected << " but got " << got[axis];
  const bool is_bound = symbol && !symbol->bound_arg_.empty();
  if (is_bound)
    text << origin(symbol->annotation(), symbol->bound_arg_, symbol->bound_list_,
                   symbol->bound_axis_);
  if (!arg.empty()) {
    const std::string_view has = is_shape ? " is " : " has strides ";
    text << "; ";
    if (is_bound && symbol->bound_arg_ != arg && symbol->bound_list_ == list)
      text << symbol->bound_arg_ << has << symbol->bound_values_ << ", ";
    text << arg << has << got;
    if (!is_shape)
      text << advice(arg, "; pass ", arg, ".copy()");
    else if (!is_bound)
      text << ", expected " << expected_shape();
  }
  fail(ErrorKind::value, std::move(text).str());
}

void TensorMatcher::match_dtype(DType got, std::string_view arg) {
  if (!dtype_->has_value_) {
    dtype_->check_option(got, arg);
    dtype_->value_ = got;
    dtype_->has_value_ = true;
    dtype_->bound_arg_ = arg;
  } else if (dtype_->value_ != got) {
    fail(ErrorKind::type, "DType mismatch: expected ", dtype_->value_, " but got ", got,
         origin("dtype", dtype_->bound_arg_), convert_to(dtype_->value_, arg));
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
