// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/op/tuning/tuned.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorcraft::op {

// Identifies a measurement.
struct TuningKey {
  std::string device;   // its name
  std::string op;       // the operator's name
  std::string call;     // as text, see text_of()
  std::string version;  // of the operator's code, see version_of()
  friend bool operator==(const TuningKey&, const TuningKey&) = default;
};

// The result of a session.
struct TunedRow {
  TuningKey key;         // of the call
  TunedEntry entry;      // the fastest way
  int iterations = 0;    // of the session
  int64_t measured = 0;  // seconds since 1970
};

// A candidate that a session measured.
struct Trial {
  // By name, and its settings; empty: as the cost model says.
  std::string variant, config;
  double us = 0;  // 0: it failed
};

// Measurements in a SQLite file: trials, so that a session that was killed goes on where it was,
// and results. Processes may write to one file at once: each waits for the other. A process that is
// killed leaves what it has committed. Every function throws kind io for a file that cannot be read
// or written.
class TuningDatabase {
 public:
  // Says what becomes of a file that is no such database: it is moved away, to its name with
  // ".damaged", or it stays and is an error.
  enum class Damaged { set_aside, refuse };
  // Opens the file, or makes it.
  explicit TuningDatabase(const std::string& path, Damaged damaged = Damaged::set_aside);
  ~TuningDatabase();
  TuningDatabase(const TuningDatabase&) = delete;
  TuningDatabase& operator=(const TuningDatabase&) = delete;

  // The file of devices of this name below the cache's folder; empty if there is no such folder.
  static std::string path_of(std::string_view device);
  // Every file there.
  static std::vector<std::string> paths();
  // The results of a file that is not changed; none if there is no such file. Kind io for a file
  // that is no such database.
  static std::vector<TunedRow> read(const std::string& path);

  // In the order of their calls.
  std::vector<TunedRow> results() const;
  std::optional<TunedRow> result(const TuningKey& key) const;
  // Replaces an earlier result of the key.
  void set_result(const TunedRow& row);
  // In the order in which they were measured.
  std::vector<Trial> trials(const TuningKey& key) const;
  void add_trial(const TuningKey& key, const Trial& trial);
  // Forgets a session, so that the next one begins anew.
  void remove_trials(const TuningKey& key);
  // Adds results; of two of a key the faster stays. Returns how many were taken.
  size_t merge(const std::vector<TunedRow>& rows);

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

// Merges every result of the files of all devices into one file, and back into them; both return
// how many were taken. Processes see what is imported when they start.
size_t export_tuned(const std::string& path);
size_t import_tuned(const std::string& path);

}  // namespace tensorcraft::op
