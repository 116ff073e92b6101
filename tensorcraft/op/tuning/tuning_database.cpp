// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/tuning/tuning_database.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/core/log.hpp"
#include "tensorcraft/jit/folder.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>

namespace tensorcraft::op {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;            // of the tables
constexpr int kApplication = 0x5443;  // marks the file as ours
constexpr int kWaitMs = 30'000;       // for another process that writes
constexpr std::string_view kSuffix = ".tuned";

constexpr const char* kTables =
    "create table if not exists results(device text, op text, call text, version text, variant "
    "text, config text, us real, model_us real, iterations integer, measured integer, "
    "primary key(device, op, call, version)) without rowid;"
    "create table if not exists trials(position integer primary key, device text, op text, call "
    "text, version text, variant text, config text, us real, "
    "unique(device, op, call, version, variant, config));";
constexpr const char* kResults =
    "select device, op, call, version, variant, config, us, model_us, iterations, measured from "
    "results";
constexpr const char* kOfKey = " where device = ?1 and op = ?2 and call = ?3 and version = ?4";

// The file is no database, or not one of ours: what is set aside.
bool is_damage(int code) {
  return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
}

class Failure : public Error {
 public:
  Failure(int code, const std::string& text) : Error(ErrorKind::io, text), code(code) {}
  int code;
};

}  // namespace

struct TuningDatabase::Connection {
  Connection(const std::string& path, int flags) : path(path) {
    const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
    if (code != SQLITE_OK) close_and_fail(code);
    sqlite3_extended_result_codes(handle, 1);
    sqlite3_busy_timeout(handle, kWaitMs);
    // A process that is killed loses nothing; a machine that loses power may lose the last rows.
    sqlite3_exec(handle, "pragma synchronous = normal", nullptr, nullptr, nullptr);
  }
  ~Connection() { sqlite3_close(handle); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[noreturn]] void fail_with(int code) const {
    throw Failure(code, join(path, ": ", is_damage(code) ? "no database of what is tuned: " : "",
                             sqlite3_errmsg(handle)));
  }
  [[noreturn]] void close_and_fail(int code) {
    const std::string text = handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
    sqlite3_close(handle);
    throw Failure(code, join(path, ": ", text));
  }
  void run(const char* sql) const {
    const int code = sqlite3_exec(handle, sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) fail_with(code);
  }

  const std::string path;
  sqlite3* handle = nullptr;
};

namespace {

// One statement with its values.
class Statement {
 public:
  template <class Connection>
  Statement(const Connection& connection, const std::string& sql)
      : handle_(connection.handle), fail_([&connection](int code) { connection.fail_with(code); }) {
    check(sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement_, nullptr));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text) {
    check(sqlite3_bind_text(statement_, ++bound_, text.data(), int(text.size()), SQLITE_TRANSIENT));
    return *this;
  }
  Statement& bind(double number) {
    check(sqlite3_bind_double(statement_, ++bound_, number));
    return *this;
  }
  Statement& bind(int64_t number) {
    check(sqlite3_bind_int64(statement_, ++bound_, number));
    return *this;
  }
  Statement& bind(const TuningKey& key) {
    return bind(key.device).bind(key.op).bind(key.call).bind(key.version);
  }
  // Is there another row?
  bool next() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) fail_(code);
    return false;
  }
  void run() {
    while (next()) {
    }
  }
  std::string text(int column) const {
    const auto* const bytes =
        reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes ? std::string(bytes, size_t(sqlite3_column_bytes(statement_, column)))
                 : std::string();
  }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  int64_t whole(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  void check(int code) const {
    if (code != SQLITE_OK) fail_(code);
  }
  sqlite3* const handle_;
  const std::function<void(int)> fail_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

TunedRow row_of(const Statement& s) {
  return {{s.text(0), s.text(1), s.text(2), s.text(3)},
          {s.text(4), s.text(5), s.real(6), s.real(7)},
          int(s.whole(8)),
          s.whole(9)};
}

// All or nothing, also for a process that is killed.
template <class Connection>
class Transaction {
 public:
  explicit Transaction(const Connection& connection) : connection_(connection) {
    connection_.run("begin immediate");
  }
  ~Transaction() {
    if (!done_) sqlite3_exec(connection_.handle, "rollback", nullptr, nullptr, nullptr);
  }
  void commit() {
    connection_.run("commit");
    done_ = true;
  }

 private:
  const Connection& connection_;
  bool done_ = false;
};

template <class Connection>
int64_t number(const Connection& connection, const char* sql) {
  Statement s(connection, sql);
  return s.next() ? s.whole(0) : 0;
}

// Fails as damage does for a file of another program, and with its own words for another format.
template <class Connection>
void check_format(const Connection& connection) {
  if (number(connection, "pragma application_id") != kApplication)
    throw Failure(SQLITE_NOTADB, join(connection.path, ": no database of what is tuned"));
  const int64_t format = number(connection, "pragma user_version");
  if (format != kFormat)
    throw Failure(SQLITE_MISMATCH, join(connection.path, ": its format is ", format,
                                        ", and this library reads ", kFormat));
}

template <class Connection>
void make_tables(const Connection& connection) {
  Transaction transaction(connection);
  if (number(connection, "pragma application_id") == 0 &&
      number(connection, "select count(*) from sqlite_master") == 0) {
    connection.run(kTables);
    connection.run(
        join("pragma application_id = ", kApplication, "; pragma user_version = ", kFormat)
            .c_str());
  }
  transaction.commit();
  check_format(connection);
  Statement check(connection, "pragma quick_check(1)");
  if (check.next() && check.text(0) != "ok")
    throw Failure(SQLITE_CORRUPT, join(connection.path, ": the database is damaged"));
}

std::string folder_of_tuned() {
  return config().cache_dir.empty() ? std::string() : config().cache_dir + "/tuned";
}

// Only this user may write what the library chooses by.
void make_folder(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || fs::exists(folder, error)) return;
  fs::create_directories(folder, error);
  if (!error) fs::permissions(folder, fs::perms::owner_all, error);
  if (error) fail(ErrorKind::io, folder.string(), " cannot be made: ", error.message());
}

// Moves a damaged file away, if no other process has done so in the meantime, and makes a new one.
template <class Open>
auto open_again(const std::string& path, const Open& open) {
  const fs::path file(path);
  jit::CacheFolder folder(file.parent_path().string());
  const jit::CacheFolder::Lock lock(folder, file.filename().string() + ".lock",
                                    std::chrono::milliseconds(kWaitMs));
  try {
    return open();
  } catch (const Failure& failure) {
    if (!is_damage(failure.code)) throw;
    log_warn(join(failure.what(), "; it is set aside as ", path, ".damaged"));
    std::error_code error;
    fs::rename(path, path + ".damaged", error);
    if (error) throw;
    fs::remove(path + "-journal", error);
  }
  return open();
}

bool exists(const std::string& path) {
  std::error_code error;
  return !path.empty() && fs::exists(path, error);
}

}  // namespace

TuningDatabase::TuningDatabase(const std::string& path, Damaged damaged) {
  if (path.empty())
    fail(ErrorKind::io, "there is no folder for what is tuned: no home and no cache_dir");
  make_folder(path);
  const auto open = [&] {
    auto made = std::make_unique<Connection>(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    make_tables(*made);
    return made;
  };
  try {
    connection_ = open();
  } catch (const Failure& failure) {
    if (!is_damage(failure.code) || damaged == Damaged::refuse) throw;
    connection_ = open_again(path, open);
  }
}

TuningDatabase::~TuningDatabase() = default;

std::string TuningDatabase::path_of(std::string_view device) {
  const std::string folder = folder_of_tuned();
  if (folder.empty()) return {};
  std::string name;
  for (const char c : device)
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  return join(folder, "/", name, "-", sha256_hex(device).substr(0, 8), kSuffix);
}

std::vector<std::string> TuningDatabase::paths() {
  std::vector<std::string> all;
  std::error_code error;
  const std::string folder = folder_of_tuned();
  if (folder.empty()) return all;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == kSuffix) all.push_back(entry.path().string());
  std::ranges::sort(all);
  return all;
}

std::vector<TunedRow> TuningDatabase::read(const std::string& path) {
  if (!exists(path)) return {};
  // To write, so that what a process left that was killed while it wrote can be undone.
  const Connection connection(path, SQLITE_OPEN_READWRITE);
  if (number(connection, "pragma application_id") == 0 &&
      number(connection, "select count(*) from sqlite_master") == 0)
    return {};  // another process makes it now
  check_format(connection);
  std::vector<TunedRow> rows;
  for (Statement s(connection, kResults); s.next();) rows.push_back(row_of(s));
  return rows;
}

std::vector<TunedRow> TuningDatabase::results() const {
  std::vector<TunedRow> rows;
  for (Statement s(*connection_, kResults); s.next();) rows.push_back(row_of(s));
  return rows;
}

std::optional<TunedRow> TuningDatabase::result(const TuningKey& key) const {
  Statement s(*connection_, join(kResults, kOfKey));
  s.bind(key);
  if (!s.next()) return {};
  return row_of(s);
}

void TuningDatabase::set_result(const TunedRow& row) {
  const TunedEntry& p = row.entry;
  Statement(*connection_, "insert or replace into results values(?,?,?,?,?,?,?,?,?,?)")
      .bind(row.key)
      .bind(p.variant)
      .bind(p.config)
      .bind(p.us)
      .bind(p.model_us)
      .bind(int64_t(row.iterations))
      .bind(row.measured)
      .run();
}

std::vector<Trial> TuningDatabase::trials(const TuningKey& key) const {
  std::vector<Trial> all;
  Statement s(*connection_,
              join("select variant, config, us from trials", kOfKey, " order by position"));
  s.bind(key);
  while (s.next()) all.push_back({s.text(0), s.text(1), s.real(2)});
  return all;
}

void TuningDatabase::add_trial(const TuningKey& key, const Trial& trial) {
  Statement(*connection_,
            "insert or ignore into trials(device, op, call, version, variant, config, us) "
            "values(?,?,?,?,?,?,?)")
      .bind(key)
      .bind(trial.variant)
      .bind(trial.config)
      .bind(trial.us)
      .run();
}

void TuningDatabase::remove_trials(const TuningKey& key) {
  Statement(*connection_, join("delete from trials", kOfKey)).bind(key).run();
}

size_t TuningDatabase::merge(const std::vector<TunedRow>& rows) {
  Transaction transaction(*connection_);
  size_t taken = 0;
  for (const TunedRow& row : rows) {
    const std::optional<TunedRow> known = result(row.key);
    if (known && known->entry.us <= row.entry.us) continue;
    set_result(row);
    ++taken;
  }
  transaction.commit();
  return taken;
}

size_t export_tuned(const std::string& path) {
  std::vector<TunedRow> rows;
  for (const std::string& file : TuningDatabase::paths())
    for (TunedRow& row : TuningDatabase::read(file)) rows.push_back(std::move(row));
  if (rows.empty()) fail(ErrorKind::not_found, "nothing is tuned, so there is nothing to export");
  return TuningDatabase(path, TuningDatabase::Damaged::refuse).merge(rows);
}

size_t import_tuned(const std::string& path) {
  if (!exists(path)) fail(ErrorKind::not_found, path, " does not exist");
  std::map<std::string, std::vector<TunedRow>> of_devices;
  for (TunedRow& row : TuningDatabase::read(path)) {
    std::vector<TunedRow>& rows = of_devices[row.key.device];
    rows.push_back(std::move(row));
  }
  size_t taken = 0;
  for (const auto& [device, rows] : of_devices)
    taken += TuningDatabase(TuningDatabase::path_of(device)).merge(rows);
  if (taken > 0) forget_tuned();
  return taken;
}

}  // namespace tensorcraft::op
