// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/op/choice/ladder.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// Keeps what was measured to be fastest for single calls, which comes before what the cost model
// says: a table of the process, filled from the database of each device (tuning_database.hpp) when
// the first call there is planned.
namespace tensorcraft::op {

// The values of a call's options that were fastest.
struct TunedEntry {
  std::string variant;  // its name
  std::string config;   // of the operator's settings; empty: as the cost model says
  double us = 0;        // the median time of a call so
  double model_us = 0;  // the same as the cost model chooses, measured in turns with it
  friend bool operator==(const TunedEntry&, const TunedEntry&) = default;
};

// "3 % over the model": how much faster it is than what the cost model chooses.
std::string gain_text(const TunedEntry& tuned);

// May anything be tuned for a device? One load of a word if not; the first call there reads its
// database.
bool may_have_tuned(Device device);
// Is anything tuned for calls of an operator on such a device?
bool has_tuned(const DeviceInfo& device, std::string_view op);
// Returns what is tuned for a call, named by its text, if it was measured with the device code that
// the operator's variants have now.
std::optional<TunedEntry> find_tuned(const DeviceInfo& device, std::string_view op,
                                     std::span<const VariantInfo> variants, std::string_view call);
// Calls that are planned from now on take it, until the process ends.
void set_tuned(const DeviceInfo& device, std::string_view op, std::span<const VariantInfo> variants,
               std::string_view call, const TunedEntry& entry);
// Forgets all of the process; databases are read again.
void forget_tuned();
// Are databases read? They are, unless a process says no, as tests do: what they find must not
// depend on what the user tuned. Forgets what is known.
void use_tuned_databases(bool are_read);
// How near the cost model's choices for an operator came to the fastest, from 0 to 1, the mean of
// what is tuned on such a device.
std::optional<double> tuning_history(const DeviceInfo& device, std::string_view op);
// While one lives, calls and explanations of its thread are as the cost model says. What is
// remembered of earlier calls still counts.
class WithoutTuned {
 public:
  WithoutTuned();
  ~WithoutTuned();
  WithoutTuned(const WithoutTuned&) = delete;
  WithoutTuned& operator=(const WithoutTuned&) = delete;
};
// Another number after each change: what is remembered of calls before it does not count.
uint64_t tuned_generation();

// Changes when device code of a variant does, or the library: what was measured before is stale.
std::string version_of(std::span<const VariantInfo> variants);

}  // namespace tensorcraft::op
