// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/core/tensor_view.hpp"
#include "tensorcraft/op/value.hpp"
#include "tensorcraft/op/variant.hpp"

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

// Makes a warm call cheap: a call like an earlier one of its thread takes that call's Plan and puts
// its own addresses and seeds in. Nothing is checked, chosen, formatted, locked or allocated again.
namespace tensorcraft::op {

// All that the checks and the Plan of a call depend on, but of addresses only how they are aligned
// and which are equal, and nothing of free numbers: plain words, added in one order by every call
// of an operator. A call that has too many of them, or a tensor without memory, is not remembered.
class CallKey {
 public:
  static constexpr size_t kMaxWords = 120, kMaxTensors = 16, kMaxNumbers = 2;
  static constexpr size_t kMaxValues = kMaxTensors + kMaxNumbers;
  struct Words {
    size_t size = 0;
    std::array<uint64_t, kMaxWords> values;
    friend bool operator==(const Words& a, const Words& b);
  };

  void add(uint64_t word) {
    if (words_.size == kMaxWords) is_complete_ = false;
    if (!is_complete_) return;
    words_.values[words_.size++] = word;
  }
  template <class T>
    requires std::integral<T> || std::is_enum_v<T>
  void add(T value) {
    add(uint64_t(value));
  }
  void add(float value) { add(uint64_t(std::bit_cast<uint32_t>(value))); }
  void add(double value) { add(std::bit_cast<uint64_t>(value)); }
  void add(const Number& value) {
    add(value.index());
    std::visit([this](auto v) { add(v); }, value);
  }
  void add(std::string_view text);
  void add(const Dims& values) {
    add(uint64_t(values.rank()));
    for (const int64_t value : values) add(uint64_t(value));
  }
  void add(NamedValues values);
  // A struct of numbers without gaps.
  template <class T>
    requires(std::is_class_v<T> && std::has_unique_object_representations_v<T>)
  void add(const T& value) {
    add(std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)));
  }
  // Whether there is one; the tensor itself follows with the others.
  void add(const std::optional<TensorView>& tensor) { add(uint64_t(tensor.has_value())); }
  template <class T>
  void add(const std::optional<T>& value) {
    add(uint64_t(value.has_value()));
    if (value) add(*value);
  }
  void add(const NumberOrTensor& value) {
    add(value.number);
    add(value.tensor);
  }
  void add(const BooleanOrTensor& value) {
    add(value.value);
    add(value.tensor);
  }
  // A tensor, the outputs before the inputs. The key refers to it.
  void add_tensor(const TensorView& tensor);
  // A whole number that no check and no choice looks at; kernels take it as it is.
  void add_free(int64_t number) {
    if (num_numbers_ == kMaxNumbers) is_complete_ = false;
    if (is_complete_) numbers_[num_numbers_++] = uint64_t(number);
  }

  bool is_complete() const { return is_complete_; }
  uint64_t hash() const;
  const Words& words() const { return words_; }
  size_t num_tensors() const { return num_tensors_; }
  const TensorView& tensor(size_t i) const { return *tensors_[i]; }
  uint64_t address(size_t i) const { return reinterpret_cast<uintptr_t>(tensors_[i]->data()); }
  // The first tensor with the address of this one.
  size_t group(size_t i) const { return groups_[i]; }
  size_t num_numbers() const { return num_numbers_; }
  // Calls that are like each other may differ in these values: the address of tensor i, free number
  // i - kMaxTensors.
  bool has_value(size_t i) const {
    return i < num_tensors_ || (i >= kMaxTensors && i - kMaxTensors < num_numbers_);
  }
  uint64_t value(size_t i) const {
    return i < kMaxTensors ? address(i) : numbers_[i - kMaxTensors];
  }

 private:
  bool is_complete_ = true;
  Words words_;
  size_t num_tensors_ = 0;
  std::array<const TensorView*, kMaxTensors> tensors_;
  std::array<uint8_t, kMaxTensors> groups_;
  size_t num_numbers_ = 0;
  std::array<uint64_t, kMaxNumbers> numbers_;
};

// Tensor i of a call as if it lay elsewhere: further away than memory is large, aligned as before,
// and where addresses are equal they stay equal.
TensorView shifted(const CallKey& key, size_t i);
// Shifts a tensor of an option likewise. Out of line: in a template GCC 12 takes an Options smaller
// than a TensorView for one that is written behind its end.
void shift(std::optional<TensorView>& tensor, const CallKey& key, size_t i);
// Free number i of a call, moved in the same way.
int64_t shifted_number(const CallKey& key, size_t i);

// A call that ran.
class RememberedCall {
 public:
  RememberedCall(const CallKey& key, size_t num_outputs, std::string_view variant,
                 const Plan& plan);
  // Learns where addresses and free numbers stand in the parameters: where `shifted`, the Plan of
  // the same call with each of them moved by shifted(), differs. Where the two differ otherwise,
  // there is no repeating.
  void find_values(const CallKey& key, const Plan& shifted);
  bool is_like(const CallKey& key) const { return words_ == key.words(); }
  std::string_view variant() const { return variant_; }
  // The Plan with the addresses and free numbers of a call that is like this one. Null where it
  // cannot be repeated, or memory that is written lies across other memory in a way it did not: the
  // checks judge that.
  const Plan* plan_for(const CallKey& key);

 private:
  struct Slot {  // the parameters at `offset` hold the value, or an address inside the tensor
    uint16_t offset, value;
  };
  bool is_apart(const CallKey& key) const;

  CallKey::Words words_;
  bool is_repeatable_ = false;
  size_t num_outputs_, num_slots_ = 0;
  std::string_view variant_;
  Plan plan_;
  std::array<uint64_t, CallKey::kMaxTensors> checked_;  // addresses of the call that was checked
  std::array<uint64_t, CallKey::kMaxValues> values_;    // that plan_ has
  std::array<ByteRange, CallKey::kMaxTensors> ranges_;
  std::array<Slot, 2 * CallKey::kMaxTensors> slots_;
};

// The calls of one thread, by hash.
class PlanCache {
 public:
  static PlanCache& of_this_thread();

  // Says what to launch for a call like one that is remembered; without a Plan it must be checked
  // and planned.
  struct Repeat {
    const Plan* plan = nullptr;
    std::string_view variant;
  };
  Repeat repeat(const CallKey& key);
  // Is a call that was not repeated worth remembering? The second time it comes.
  bool wants(const CallKey& key);
  void remember(const CallKey& key, std::unique_ptr<RememberedCall> call);
  // Calls repeated so far, for tests.
  long repeats() const { return repeats_; }

 private:
  struct Line {
    uint64_t seen = 0;
    std::unique_ptr<RememberedCall> call;
  };
  Line& line(uint64_t hash) { return lines_[hash % lines_.size()]; }
  RememberedCall* find(const CallKey& key);
  std::array<Line, 128> lines_;
  long repeats_ = 0;
};

}  // namespace tensorcraft::op
