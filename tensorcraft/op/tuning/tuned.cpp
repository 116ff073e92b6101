// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/tuning/tuned.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/core/version.hpp"
#include "tensorcraft/jit/folder.hpp"
#include "tensorcraft/jit/source.hpp"
#include "tensorcraft/op/schema.hpp"
#include "tensorcraft/op/tuning/tuning_database.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <utility>

namespace tensorcraft::op {
namespace {

std::atomic<uint64_t> generation_now{0};
std::atomic<bool> databases_are_read{true};
thread_local int scopes_without = 0;

// Says what is known of a device of this process without a lock.
enum class Known : uint8_t { nothing_read, nothing_tuned, something };
constexpr size_t kIndices = 64;  // GPUs of a higher index always take the lock
std::array<std::atomic<Known>, 3 * kIndices> known_of{};

std::atomic<Known>* known(Device device) {
  constexpr DeviceType kTypes[] = {DeviceType::cpu, DeviceType::cuda, DeviceType::simt};
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (device.type == kTypes[i] && size_t(device.index) < kIndices)
      return &known_of[i * kIndices + size_t(device.index)];
  return nullptr;
}

// By the version of the code that was measured, and the call.
using Calls = std::map<std::pair<std::string, std::string>, TunedEntry>;
using Operators = std::map<std::string, Calls, std::less<>>;

// Why a file is not read, if it is there: others could have written it.
std::string folder_problem(const std::string& path) {
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return {};
  return jit::CacheFolder(std::filesystem::path(path).parent_path().string()).problem();
}

// The table of the process.
class Table {
 public:
  static Table& of_process() {
    static constinit FirstMade<Table> table;
    return *table;
  }

  bool has_any(const DeviceInfo& device) {
    const std::shared_lock lock = read(device);
    return !devices_.find(device.name)->second.empty();
  }
  bool has(const DeviceInfo& device, std::string_view op) {
    const std::shared_lock lock = read(device);
    const Operators& all = devices_.find(device.name)->second;
    return all.find(op) != all.end();
  }
  std::optional<TunedEntry> find(const DeviceInfo& device, std::string_view op,
                                 const std::pair<std::string, std::string>& call) {
    const std::shared_lock lock = read(device);
    const Operators& all = devices_.find(device.name)->second;
    const auto calls = all.find(op);
    if (calls == all.end()) return {};
    const auto known = calls->second.find(call);
    if (known == calls->second.end()) return {};
    return known->second;
  }
  std::optional<double> history(const DeviceInfo& device, std::string_view op) {
    const std::shared_lock lock = read(device);
    const Operators& all = devices_.find(device.name)->second;
    const auto calls = all.find(op);
    if (calls == all.end()) return {};
    double shares = 0;
    for (const auto& [call, entry] : calls->second)
      shares += entry.model_us > 0 ? entry.us / entry.model_us : 1;
    return shares / double(calls->second.size());
  }
  void set(const DeviceInfo& device, std::string_view op,
           const std::pair<std::string, std::string>& call, const TunedEntry& entry) {
    read(device);
    const std::unique_lock lock(mutex_);
    devices_[device.name][std::string(op)].insert_or_assign(call, entry);
    changed();
  }
  void clear() {
    const std::unique_lock lock(mutex_);
    devices_.clear();
    changed();
  }

 private:
  using SharedMutex = ForkSafe<std::shared_mutex>;
  // The lock, once the device's database is in the table.
  std::shared_lock<SharedMutex> read(const DeviceInfo& device) {
    std::shared_lock lock(mutex_);
    while (!devices_.contains(device.name)) {
      lock.unlock();
      load(device);
      lock.lock();
    }
    return lock;
  }
  void load(const DeviceInfo& device) {
    Operators all;
    const std::string path =
        databases_are_read ? TuningDatabase::path_of(device.name) : std::string();
    try {
      const std::string problem = folder_problem(path);
      if (!problem.empty()) fail(ErrorKind::io, path, ": ", problem);
      for (const TunedRow& row : TuningDatabase::read(path))
        all[row.key.op].insert_or_assign({row.key.version, row.key.call}, row.entry);
    } catch (const Error& e) {
      log_warn(join(e.what(), "; nothing that is tuned for ", device.name, " is used"));
    }
    const std::unique_lock lock(mutex_);
    devices_.try_emplace(device.name, std::move(all));
  }
  static void changed() {
    ++generation_now;
    for (auto& one : known_of) one = Known::nothing_read;
  }

  SharedMutex mutex_;
  std::map<std::string, Operators, std::less<>> devices_;
};

}  // namespace

std::string gain_text(const TunedEntry& tuned) {
  const double gain = tuned.us > 0 ? tuned.model_us / tuned.us - 1 : 0;
  return join(std::lround(100 * gain), " % over the model");
}

bool may_have_tuned(Device device) {
  std::atomic<Known>* const word = known(device);
  const Known now = word ? word->load(std::memory_order_relaxed) : Known::something;
  if (now != Known::nothing_read) return now == Known::something;
  const uint64_t before = generation_now;
  const bool any = Table::of_process().has_any(device_info(device));
  *word = any ? Known::something : Known::nothing_tuned;
  if (generation_now != before) *word = Known::nothing_read;  // another thread changed the table
  return any;
}

bool has_tuned(const DeviceInfo& device, std::string_view op) {
  return scopes_without == 0 && Table::of_process().has(device, op);
}

std::optional<TunedEntry> find_tuned(const DeviceInfo& device, std::string_view op,
                                     std::span<const VariantInfo> variants, std::string_view call) {
  return Table::of_process().find(device, op, {version_of(variants), std::string(call)});
}

void set_tuned(const DeviceInfo& device, std::string_view op, std::span<const VariantInfo> variants,
               std::string_view call, const TunedEntry& entry) {
  Table::of_process().set(device, op, {version_of(variants), std::string(call)}, entry);
}

void forget_tuned() { Table::of_process().clear(); }

void use_tuned_databases(bool are_read) {
  databases_are_read = are_read;
  forget_tuned();
}

WithoutTuned::WithoutTuned() { ++scopes_without; }
WithoutTuned::~WithoutTuned() { --scopes_without; }

std::optional<double> tuning_history(const DeviceInfo& device, std::string_view op) {
  return Table::of_process().history(device, op);
}

uint64_t tuned_generation() { return generation_now.load(std::memory_order_relaxed); }

std::string version_of(std::span<const VariantInfo> variants) {
  // Device code is in the library's data, so it is hashed once for each list of variants.
  static constinit FirstMade<std::map<std::string, std::string>> versions;
  static constinit FirstMade<ForkSafeMutex> mutex;
  std::string names(version());
  for (const VariantInfo& v : variants) names.append(" ").append(v.name).append(":").append(v.file);
  const std::lock_guard lock(*mutex);
  std::string& made = (*versions)[names];
  if (!made.empty()) return made;
  Sha256 hash;
  hash.field(names);
  for (const VariantInfo& v : variants)
    if (!v.file.empty())
      for (const auto& header : *jit::include_closure(v.file)) hash.field(header->sha256);
  return made = hash.hex().substr(0, 16);
}

namespace {

void append(std::string& text, const NamedTensors& tensors) {
  for (const auto& [name, view] : tensors.entries()) {
    if (!text.empty()) text += ' ';
    text.append(join(name, "=", view->dtype(), "["));
    for (int i = 0; i < view->rank(); ++i) text.append(join(i ? "," : "", view->shape(i)));
    text += ']';
    if (view->is_contiguous()) continue;
    for (int i = 0; i < view->rank(); ++i) text.append(join(i ? "," : "/", view->stride(i)));
  }
}

}  // namespace

std::string tensors_text(const NamedTensors& outputs, const NamedTensors& inputs) {
  std::string text;
  append(text, inputs);
  append(text, outputs);
  if (config().allow_tf32) text += " tf32";  // what calls do not say, and products choose by
  return text;
}

}  // namespace tensorcraft::op
