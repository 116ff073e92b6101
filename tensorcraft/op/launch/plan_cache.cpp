// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/launch/plan_cache.hpp"

#include "tensorcraft/core/hash.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tensorcraft::op {
namespace {

// No choice looks at more of an address than this.
constexpr uint64_t kAlignment = 256;
// Between two moved values: more than a device's memory.
constexpr int kShiftBits = 44;

uint64_t shift_of(size_t value) { return uint64_t(value + 1) << kShiftBits; }

uint64_t word_at(std::span<const std::byte> bytes, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

bool launch_the_same(const Step& a, const Step& b) {
  return a.kernel == b.kernel && a.launch == b.launch;
}

}  // namespace

bool operator==(const CallKey::Words& a, const CallKey::Words& b) {
  return a.size == b.size &&
         std::memcmp(a.values.data(), b.values.data(), a.size * sizeof(uint64_t)) == 0;
}

uint64_t CallKey::hash() const { return hash_words({words_.values.data(), words_.size}); }

void CallKey::add(std::string_view text) {
  add(text.size());
  for (size_t i = 0; i < text.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min(sizeof(word), text.size() - i));
    add(word);
  }
}

void CallKey::add(NamedValues values) {
  add(values.size());
  for (const NamedValue& v : values) {
    add(v.name);
    add(v.number.index());
    if (const bool* truth = std::get_if<bool>(&v.number)) add(*truth);
    if (const int64_t* whole = std::get_if<int64_t>(&v.number)) add(*whole);
    if (const double* real = std::get_if<double>(&v.number)) add(*real);
  }
}

void CallKey::add_tensor(const TensorView& t) {
  if (num_tensors_ == kMaxTensors || !t.data()) is_complete_ = false;
  if (!is_complete_) return;
  size_t group = 0;
  while (group < num_tensors_ && tensors_[group]->data() != t.data()) ++group;
  groups_[num_tensors_] = uint8_t(group);
  tensors_[num_tensors_++] = &t;

  const uint64_t alignment = reinterpret_cast<uintptr_t>(t.data()) % kAlignment;
  add(uint64_t(t.dtype()) | uint64_t(t.rank()) << 8 | uint64_t(t.read_only()) << 16 |
      uint64_t(group) << 24 | alignment << 32 | uint64_t(t.device().type) << 40 |
      uint64_t(uint16_t(t.device().index)) << 48);
  for (const int64_t size : t.shape()) add(size);
  for (const int64_t stride : t.strides()) add(stride);
}

TensorView shifted(const CallKey& key, size_t i) {
  const TensorView& t = key.tensor(i);
  return t.at(reinterpret_cast<void*>(key.address(i) + shift_of(key.group(i))), t.device());
}

void shift(std::optional<TensorView>& tensor, const CallKey& key, size_t i) {
  tensor = shifted(key, i);
}

int64_t shifted_number(const CallKey& key, size_t i) {
  const size_t value = CallKey::kMaxTensors + i;
  return int64_t(key.value(value) + shift_of(value));
}

RememberedCall::RememberedCall(const CallKey& key, size_t num_outputs, std::string_view variant,
                               const Plan& plan)
    : words_(key.words()), num_outputs_(num_outputs), variant_(variant), plan_(plan) {
  for (size_t i = 0; i < key.num_tensors(); ++i) {
    checked_[i] = key.address(i);
    ranges_[i] = byte_range(key.tensor(i));
  }
  for (size_t i = 0; i < CallKey::kMaxValues; ++i) values_[i] = key.has_value(i) ? key.value(i) : 0;
}

void RememberedCall::find_values(const CallKey& key, const Plan& shifted) {
  const auto before = std::as_const(plan_).bytes(), after = shifted.bytes();
  if (!std::ranges::equal(std::as_const(plan_).steps(), shifted.steps(), launch_the_same) ||
      before.size() != after.size())
    return;
  for (size_t at = 0; at + sizeof(uint64_t) <= before.size(); at += sizeof(uint64_t)) {
    const uint64_t shift = word_at(after, at) - word_at(before, at);
    if (shift == 0) continue;
    const size_t value = size_t(shift >> kShiftBits) - 1;
    if (!key.has_value(value) || shift != shift_of(value) || num_slots_ == slots_.size()) return;
    slots_[num_slots_++] = {uint16_t(at), uint16_t(value)};
  }
  is_repeatable_ = true;
}

// Is everything that is written apart from all else, or as far from it as it was checked with? (The
// halves of one buffer may lie across each other.)
bool RememberedCall::is_apart(const CallKey& key) const {
  for (size_t out = 0; out < num_outputs_; ++out)
    for (size_t i = 0; i < key.num_tensors(); ++i) {
      const auto distance = int64_t(key.address(i) - key.address(out));
      if (distance == int64_t(checked_[i] - checked_[out])) continue;
      if (ranges_[out].begin < distance + ranges_[i].end &&
          distance + ranges_[i].begin < ranges_[out].end)
        return false;
    }
  return true;
}

const Plan* RememberedCall::plan_for(const CallKey& key) {
  if (!is_repeatable_) return nullptr;
  bool same_addresses = true, same_numbers = true;
  for (size_t i = 0; i < key.num_tensors(); ++i)
    same_addresses = same_addresses && key.address(i) == values_[i];
  for (size_t i = CallKey::kMaxTensors; key.has_value(i); ++i)
    same_numbers = same_numbers && key.value(i) == values_[i];
  if (same_addresses && same_numbers) return &plan_;
  if (!same_addresses && !is_apart(key)) return nullptr;
  for (size_t s = 0; s < num_slots_; ++s) {
    const auto [offset, value] = slots_[s];
    const uint64_t word = word_at(plan_.bytes(), offset) + key.value(value) - values_[value];
    std::memcpy(plan_.bytes().data() + offset, &word, sizeof(word));
  }
  for (size_t i = 0; i < CallKey::kMaxValues; ++i)
    if (key.has_value(i)) values_[i] = key.value(i);
  return &plan_;
}

PlanCache& PlanCache::of_this_thread() {
  thread_local PlanCache cache;
  return cache;
}

RememberedCall* PlanCache::find(const CallKey& key) {
  if (!key.is_complete()) return nullptr;
  RememberedCall* call = line(key.hash()).call.get();
  return call && call->is_like(key) ? call : nullptr;
}

PlanCache::Repeat PlanCache::repeat(const CallKey& key) {
  RememberedCall* call = find(key);
  const Plan* plan = call ? call->plan_for(key) : nullptr;
  if (!plan) return {};
  ++repeats_;
  return {plan, call->variant()};
}

bool PlanCache::wants(const CallKey& key) {
  if (!key.is_complete() || find(key)) return false;
  const uint64_t hash = key.hash();
  return std::exchange(line(hash).seen, hash) == hash;
}

void PlanCache::remember(const CallKey& key, std::unique_ptr<RememberedCall> call) {
  line(key.hash()).call = std::move(call);
}

}  // namespace tensorcraft::op
