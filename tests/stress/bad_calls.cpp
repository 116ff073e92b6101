// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/bad_calls.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/op/host/elements.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace tensorcraft::test {
namespace {

constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min(),
                  kLargest = std::numeric_limits<int64_t>::max();
constexpr size_t kMargin = 512;

struct Target {
  TensorView* view;
  std::string name;
  bool is_output;
};

std::vector<Target> targets(AnyCall& call) {
  const op::Description& d = call.op->description();
  std::vector<Target> all;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    all.push_back({&call.inputs[i], std::string(d.inputs[i].name), false});
  for (size_t i = 0; i < call.options.size(); ++i)
    if (auto* view = std::get_if<TensorView>(&call.options[i]))
      all.push_back({view, std::string(d.options[i].name), false});
  for (size_t i = 0; i < call.outputs.size(); ++i)
    all.push_back({&call.outputs[i], i ? join("output ", i) : "out", true});
  return all;
}

template <class List>
const auto& pick(const List& list, Random& random) {
  return list[random() % std::size(list)];
}

Target pick_target(AnyCall& call, Random& random) { return pick(targets(call), random); }

// The target with another layout, or nothing if the scratch is too small for it.
bool replace(AnyCall& call, const Target& t, DType dtype, const Dims& shape, const Dims& strides,
             Scratch& scratch) {
  call.change =
      join(t.name, ": ", *t.view, " becomes shape ", shape, ", strides ", strides, ", ", dtype);
  const Device device = t.view->device();
  const TensorView checked(nullptr, dtype, shape, strides, device);  // fails as the user's would
  void* data = scratch.place(dtype, shape, strides, t.is_output);
  if (!data) return false;
  *t.view = TensorView(data, dtype, shape, strides, device);
  // Rows that do not follow each other, and places that are written twice.
  const bool are_columns = t.name == "indices" && call.op->description().name == "csr_to_dense";
  call.has_any_result |=
      are_columns || t.name == "indptr" || t.name == "slots" || t.name == "idx_dst";
  return true;
}

bool change_dtype(AnyCall& call, Random& random, Scratch& scratch) {
  const Target t = pick_target(call, random);
  const auto dtype = DType(random() % kNumDTypes);
  if (dtype == t.view->dtype()) return false;
  return replace(call, t, dtype, t.view->shape(), contiguous_strides(t.view->shape()), scratch);
}

bool change_rank(AnyCall& call, Random& random, Scratch& scratch) {
  const Target t = pick_target(call, random);
  const Dims& was = t.view->shape();
  std::vector<int64_t> sizes(was.begin(), was.end());
  switch (random() % 4) {
    case 0:
      sizes.clear();
      break;
    case 1:
      sizes.insert(sizes.begin() + int64_t(random() % (sizes.size() + 1)),
                   int64_t(1 + random() % 2));
      break;
    case 2:
      if (sizes.empty()) return false;
      sizes.erase(sizes.begin() + int64_t(random() % sizes.size()));
      break;
    default:
      sizes.insert(sizes.begin(), size_t(kMaxRank + 1) - std::min(sizes.size(), random() % 4), 1);
  }
  call.change = join(t.name, ": ", *t.view, " gets ", sizes.size(), " dimensions");
  const Dims shape(sizes);
  return replace(call, t, t.view->dtype(), shape, contiguous_strides(shape), scratch);
}

bool change_size(AnyCall& call, Random& random, Scratch& scratch) {
  const Target t = pick_target(call, random);
  if (t.view->rank() == 0) return false;
  Dims shape = t.view->shape();
  const int axis = int(random() % size_t(shape.rank()));
  if (shape[axis] > 4096) return false;  // another mutation was here
  const int64_t sizes[] = {0,
                           -1,
                           kSmallest,
                           kLargest,
                           shape[axis] + 1,
                           shape[axis] - 1,
                           2 * shape[axis],
                           int64_t(1) << 31,
                           int64_t(1) << 40,
                           int64_t(1) << 62};
  shape[axis] = pick(sizes, random);
  Dims strides = contiguous_strides(shape);
  if (shape[axis] > 4096) {  // there is memory for one element only
    strides = t.view->strides();
    strides[axis] = 0;
  }
  return replace(call, t, t.view->dtype(), shape, strides, scratch);
}

// More elements than 64 bits count, or strides that lead out of every address space.
bool overflow(AnyCall& call, Random& random, Scratch& scratch) {
  const Target t = pick_target(call, random);
  if (t.view->rank() == 0) return false;
  Dims shape = t.view->shape(), strides = t.view->strides();
  const int axis = int(random() % size_t(shape.rank()));
  const int64_t steps[] = {kSmallest, kSmallest + 1, kLargest, kLargest / 2, kSmallest / 3};
  switch (random() % 3) {
    case 0:
      for (int i = 0; i < shape.rank(); ++i) shape[i] = kLargest / int64_t(1 + random() % 3);
      strides = contiguous_strides(shape);
      break;
    case 1:
      for (int i = 0; i < shape.rank(); ++i) shape[i] = int64_t(1) << (30 + random() % 32);
      for (int i = 0; i < shape.rank(); ++i) strides[i] = 0;
      break;
    default:
      shape[axis] = std::max<int64_t>(shape[axis], 2);
      strides[axis] = pick(steps, random);
  }
  return replace(call, t, t.view->dtype(), shape, strides, scratch);
}

bool change_strides(AnyCall& call, Random& random, Scratch& scratch) {
  const Target t = pick_target(call, random);
  const Dims& shape = t.view->shape();
  if (shape.rank() == 0) return false;
  Dims strides = contiguous_strides(shape);
  const int axis = int(random() % size_t(shape.rank()));
  switch (random() % 5) {
    case 0:
      strides[axis] = -strides[axis];
      break;
    case 1:
      strides[axis] = 0;
      break;
    case 2:
      for (int i = 0; i < shape.rank(); ++i) strides[i] = 1;
      break;
    case 3:
      for (int i = 0; i < shape.rank(); ++i) strides[i] *= 3;
      break;
    default:
      for (int i = 0, step = 1; i < shape.rank(); ++i) {
        strides[i] = step;
        step *= int(std::clamp<int64_t>(shape[i], 1, 64));
      }
  }
  return replace(call, t, t.view->dtype(), shape, strides, scratch);
}

TensorView on(const TensorView& t, Device device) { return t.at(t.data(), device); }

constexpr Device kDevices[] = {Device::cpu(),   Device::simt(),   Device::cuda(0),
                               Device::cuda(7), Device::cuda(-1), Device::cuda(1 << 30)};

bool change_device(AnyCall& call, Random& random, Scratch&) {
  const Target t = pick_target(call, random);
  const Device device = pick(kDevices, random);
  call.change = join(t.name, " is on device type ", device.type, ", index ", device.index);
  if (device == t.view->device()) return false;
  *t.view = on(*t.view, device);
  return true;
}

bool change_all_devices(AnyCall& call, Random& random, Scratch&) {
  const Device device = pick(kDevices, random);
  call.change = join("all are on device type ", device.type, ", index ", device.index);
  for (const Target& t : targets(call)) *t.view = on(*t.view, device);
  return true;
}

bool unalign(AnyCall& call, Random& random, Scratch& scratch) {
  const Target t = pick_target(call, random);
  const TensorView& v = *t.view;
  if (dtype_bytes(v.dtype()) == 1 || v.size() == 0) return false;
  if (!replace(call, t, v.dtype(), v.shape(), contiguous_strides(v.shape()), scratch)) return false;
  call.change = t.name + " is not aligned";
  *t.view = v.at(v.data_as<const std::byte>() + 1, v.shape(), v.strides());
  return true;
}

bool make_read_only(AnyCall& call, Random& random, Scratch&) {
  const Target t = pick_target(call, random);
  call.change = t.name + " is read-only";
  *t.view = t.view->as_read_only();
  return true;
}

bool drop_memory(AnyCall& call, Random& random, Scratch&) {
  const Target t = pick_target(call, random);
  call.change = t.name + " has no memory";
  *t.view =
      TensorView(nullptr, t.view->dtype(), t.view->shape(), t.view->strides(), t.view->device());
  return true;
}

bool move_from(AnyCall& call, Random& random, Scratch&) {
  const Target t = pick_target(call, random);
  call.change = t.name + " was moved from";
  Tensor source(t.view->dtype(), {2, 2});
  const Tensor taken = std::move(source);
  *t.view = source.view();
  return true;
}

bool corrupt_dlpack(AnyCall& call, Random& random, Scratch& scratch) {
  const Target t = pick_target(call, random);
  const TensorView v = *t.view;
  if (v.rank() == 0 || v.size() == 0 || v.nbytes() > Scratch::kBytes / 16) return false;
  if (!replace(call, t, v.dtype(), v.shape(), contiguous_strides(v.shape()), scratch)) return false;
  std::array<int64_t, 64> shape, strides;
  shape.fill(1);
  strides.fill(1);
  std::copy(v.shape().begin(), v.shape().end(), shape.begin());
  std::copy(t.view->strides().begin(), t.view->strides().end(), strides.begin());
  dlpack::DLTensor d = {const_cast<void*>(t.view->data()),
                        {dlpack::kDLCPU, 0},
                        v.rank(),
                        to_dlpack(v.dtype()),
                        shape.data(),
                        strides.data(),
                        0};
  const int which = int(random() % 10);
  call.change = join(t.name, " comes from DLPack, error ", which);
  const int32_t ranks[] = {-1, 33, 64, std::numeric_limits<int32_t>::min()};
  switch (which) {
    case 0:
      d.ndim = pick(ranks, random);
      break;
    case 1:
      d.dtype.code = uint8_t(random());
      break;
    case 2:
      d.dtype.bits = uint8_t(random());
      break;
    case 3:
      d.dtype.lanes = uint16_t(random() % 5);
      break;
    case 4:
      d.device.device_type = dlpack::DLDeviceType(random() % 20);
      d.device.device_id = int32_t(random());
      break;
    case 5:
      d.shape = nullptr;
      break;
    case 6:
      d.strides = nullptr;
      break;
    case 7:
      d.data = nullptr;
      d.byte_offset = random();
      break;
    case 8:
      d.byte_offset = dtype_bytes(v.dtype()) * 4 + random() % 2;
      break;
    default:
      shape[random() % size_t(v.rank())] = -int64_t(random() % 100 + 1);
  }
  *t.view = TensorView::from_dlpack(d);
  // Bytes that are neither 0 nor 1 are no elements of bool.
  return t.view->dtype() != DType::bool_ || (v.dtype() == DType::bool_ && which != 8);
}

// An output shares memory with an input, or with another output.
bool overlap(AnyCall& call, Random& random, Scratch& scratch) {
  std::vector<Target> all = targets(call);
  const Target out = all[all.size() - 1 - random() % call.outputs.size()];
  const Target other = pick(all, random);
  const TensorView& v = *out.view;
  if (other.view == out.view || v.size() == 0 || other.view->size() == 0) return false;
  if (!v.data() || !other.view->data()) return false;
  if (!other.view->is_aligned(dtype_bytes(other.view->dtype()))) return false;
  if (other.view->dtype() == DType::bool_) return false;  // of poison there is no bool
  const int kind = int(random() % 3);
  call.change = join(out.name, " overlaps ", other.name, ", kind ", kind);
  // A cache may be moved within itself, but not what is read while it is written.
  call.has_any_result |= other.name.starts_with("k_") || other.name.starts_with("v_");
  if (kind == 0) {  // the very memory of the other, which may be smaller: both move
    const size_t bytes = std::max(v.nbytes(), other.view->nbytes());
    void* data = scratch.place(DType::uint8, {int64_t(bytes)}, {1}, false);
    if (!data) return false;
    const TensorView from = *other.view;
    *other.view = TensorView(data, from.dtype(), from.shape(), from.device());
    *out.view = TensorView(data, v.dtype(), v.shape(), v.device());
    if (from.dtype() == v.dtype() && from.shape() == v.shape() && !other.is_output) {
      const host::Elements to(on(*other.view, Device::cpu())), values(on(from, Device::cpu()));
      for (int64_t i = 0; i < from.size(); ++i) to.set(i, values[i]);
    }
    return true;
  }
  if (!replace(call, out, v.dtype(), v.shape(), contiguous_strides(v.shape()), scratch))
    return false;
  call.change = join(out.name, " overlaps ", other.name, ", kind ", kind);
  const auto element = int64_t(dtype_bytes(v.dtype()));
  const int64_t shift = kind == 1 ? element : v.size() / 2 * element;
  if (shift == 0) return false;
  std::byte* data = out.view->data_as<std::byte>() + shift;
  const TensorView from = *other.view;
  if (from.nbytes() > Scratch::kBytes / 4) return false;
  *other.view = TensorView(data, from.dtype(), from.shape(), from.device());
  return true;
}

bool change_counts(AnyCall& call, Random& random, Scratch&) {
  const int kind = int(random() % 7);
  call.change = join("counts, kind ", kind);
  switch (kind) {
    case 0:
      call.inputs.pop_back();
      break;
    case 1:
      call.inputs.push_back(call.inputs[0]);
      break;
    case 2:
      call.inputs.clear();
      break;
    case 3:
      call.outputs.clear();
      break;
    case 4:
      call.outputs.insert(call.outputs.end(), 1 + random() % 4, call.outputs[0]);
      break;
    case 5:
      call.options.resize(call.options.size() + 1 + random() % 3);
      break;
    default:
      if (call.options.empty()) return false;
      call.options.resize(random() % call.options.size());
  }
  return true;
}

// Widths of up to three axes, few of them right.
Dims some_widths(Random& random) {
  const int64_t widths[] = {0, 0, 1, 2, -1, kLargest, kSmallest, int64_t(1) << 62};
  Dims all;
  for (size_t i = random() % 4; i > 0; --i) all.push_back(pick(widths, random));
  return all;
}

bool change_option(AnyCall& call, Random& random, Scratch& scratch) {
  if (call.options.empty()) return false;
  const size_t i = random() % call.options.size();
  static const std::string long_text(5000, 'x');
  const double numbers[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-300, -0.0, -1,
                            0.5, 3.5e38,   -1e10,     1e-45, 65536,  2,      0,    7};
  const int64_t integers[] = {kSmallest, kLargest, -1, 0, 1, 2, 100, int64_t(1) << 31, -3};
  const std::string_view texts[] = {"",     "nope", "relu",       "tanh",
                                    "bshd", "None", "\xff\n\t%s", long_text};
  op::Value& value = call.options[i];
  const std::string_view name = call.op->description().options[i].name;
  call.change = join("option ", name, " becomes ");
  switch (random() % 9) {
    case 0:
      value = std::monostate();
      call.change += "None";
      break;
    case 1:
      value = random() % 2 == 0;
      call.change += "a bool";
      call.is_steep |= name == "allow_tf32";  // then 13 bits less are right
      break;
    case 2:
      value = pick(integers, random);
      call.change += std::to_string(std::get<int64_t>(value));
      call.is_steep |= std::abs(double(std::get<int64_t>(value))) > 100;
      break;
    case 3:
      value = pick(numbers, random);
      call.change += join(std::get<double>(value));
      call.is_steep |= std::abs(std::get<double>(value)) > 100;
      break;
    case 4:
      value = pick(texts, random);
      call.change += join('"', std::get<std::string_view>(value).substr(0, 9), '"');
      break;
    case 5:
      value = DType(random() % kNumDTypes);
      call.change += to_string(std::get<DType>(value));
      break;
    case 6: {
      const std::vector<Dims> lists{some_widths(random), some_widths(random)};
      value = lists;
      call.change += join("lists ", lists[0], ", ", lists[1]);
      break;
    }
    case 7:
      value = some_widths(random);
      call.change += join("integers ", std::get<Dims>(value));
      break;
    default:
      void* data = scratch.place(DType::float32, {2, 3}, {3, 1}, false);
      value = TensorView(data, DType::float32, {2, 3}, call.inputs[0].device());
      call.change += "a tensor";
  }
  return true;
}

bool change_variant(AnyCall& call, Random& random, Scratch&) {
  const auto& rows = call.op->description().variants;
  const std::string unknown[] = {"nope", " ", "Reference", std::string(300, 'v'), "cpu\n"};
  call.variant = random() % 3 ? std::string(pick(rows, random).name) : pick(unknown, random);
  call.change = join("variant \"", call.variant.substr(0, 20), '"');
  return true;
}

}  // namespace

Scratch::Scratch() : input_(new std::byte[kBytes]), output_(new std::byte[kBytes]) { poison(); }

void* Scratch::place(DType dtype, const Dims& shape, const Dims& strides, bool is_output) {
  std::byte* memory = is_output ? output_.get() : input_.get();
  const auto bytes = int64_t(dtype_bytes(dtype));
  int64_t low = 0, high = 0;
  if (num_elements(shape) > 0)
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] > 1) (strides[i] < 0 ? low : high) += (shape[i] - 1) * strides[i];
  const int64_t count = high - low + 1;
  if (count * bytes + int64_t(2 * kMargin) > int64_t(kBytes)) return nullptr;
  if (!is_output) {
    const host::Elements all(TensorView(memory + kMargin, dtype, {count}));
    for (int64_t i = 0; i < count; ++i) all.set(i, double(i % 3));
  }
  return memory + kMargin - low * bytes;
}

bool Scratch::is_poisoned() const {
  return output_[0] == kPoison && std::memcmp(&output_[0], &output_[1], kBytes - 1) == 0;
}

void Scratch::poison() { std::fill_n(output_.get(), kBytes, kPoison); }

const std::vector<NamedMutation>& mutations() {
  static const std::vector<NamedMutation> all = {
      {"dtype", change_dtype},
      {"rank", change_rank},
      {"size", change_size},
      {"overflow", overflow},
      {"strides", change_strides},
      {"device", change_device},
      {"devices", change_all_devices},
      {"unaligned", unalign},
      {"read-only", make_read_only},
      {"no memory", drop_memory},
      {"moved from", move_from},
      {"DLPack", corrupt_dlpack},
      {"overlap", overlap},
      {"counts", change_counts},
      {"option", change_option},
      {"variant", change_variant},
  };
  return all;
}

}  // namespace tensorcraft::test
