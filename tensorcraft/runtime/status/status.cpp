// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/status/status.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/json_depth.hpp"
#include "tensorcraft/core/log.hpp"

#include <nlohmann/json.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

namespace tensorcraft::status {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::string_view kComplete = ".json", kTemporary = ".new";

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string own_program() {
  std::ifstream in("/proc/self/cmdline");
  std::string words{std::istreambuf_iterator<char>(in), {}};
  std::ranges::replace(words, '\0', ' ');
  while (words.ends_with(' ')) words.pop_back();
  return words;
}

std::string text_of(const Process& process) {
  ordered_json items = ordered_json::array();
  for (const Item& item : process.items) {
    ordered_json numbers = ordered_json::object();
    for (const auto& [name, value] : item.numbers) numbers[name] = value;
    items.push_back({{"kind", item.kind}, {"name", item.name}, {"numbers", std::move(numbers)}});
  }
  const ordered_json all{{"pid", process.pid},
                         {"program", process.program},
                         {"begun", process.begun},
                         {"written", process.written},
                         {"items", std::move(items)}};
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// Throws for a text that is not one of ours.
Process parse(const std::string& text, const std::string& name) {
  check_json_depth(text, name);
  const ordered_json all = ordered_json::parse(text);
  Process process{.pid = all.at("pid"),
                  .program = all.at("program"),
                  .begun = all.at("begun"),
                  .written = all.at("written")};
  for (const ordered_json& one : all.at("items")) {
    Item& item = process.items.emplace_back(Item{one.at("kind"), one.at("name"), {}});
    for (const auto& [name, value] : one.at("numbers").items())
      item.numbers.emplace_back(name, value.get<double>());
  }
  return process;
}

// Holds the sources of this process, and the thread that writes what they tell. A forked child has
// no such thread, and tells nothing.
class Writer {
 public:
  static Writer& of_process() {
    static constinit FirstMade<Writer> one;
    return *one;
  }
  uint64_t add(std::function<std::vector<Item>()> items) {
    const uint64_t id = hold(std::move(items));
    warn_if_thrown([this] { begin(); });
    return id;
  }
  void remove(uint64_t id) {
    const std::lock_guard lock(mutex_);
    sources_.erase(id);
  }

 private:
  uint64_t hold(std::function<std::vector<Item>()> items) {
    const std::lock_guard lock(mutex_);
    sources_[++last_id_] = std::move(items);
    return last_id_;
  }
  // If it cannot, a later source tries again.
  void begin() {
    const std::lock_guard lock(mutex_);
    if (is_writing_) return;
    if (folder().empty()) fail(ErrorKind::io, "there is no cache folder");
    path_ = join(folder(), "/", process_.pid, kComplete);
    make_folder();
    std::thread([this] { write_for_ever(); }).detach();
    is_writing_ = true;
    std::atexit([] { of_process().end(); });
  }
  void end() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    is_writing_ = false;
    std::error_code ignored;
    if (getpid() == process_.pid) fs::remove(path_, ignored);
  }
  // Nothing is logged under the lock: standard error may be a pipe that nobody reads.
  template <class Step>
  static void warn_if_thrown(Step step) noexcept {
    try {
      step();
    } catch (const std::exception& error) {
      try {
        log_warn_once("status", join("status: it is not told to tensorcraft top: ", error.what()));
      } catch (const std::bad_alloc&) {  // there is no memory to say it
      }
    }
  }
  // Writes once a second, so a write that fails is tried again.
  void write_for_ever() {
    for (bool goes_on = true; goes_on; std::this_thread::sleep_for(std::chrono::seconds(1)))
      warn_if_thrown([&] { goes_on = write(); });
  }
  // False once the process ends. A reader sees the whole text or the one before.
  bool write() {
    const std::lock_guard lock(mutex_);
    if (!is_writing_) return false;
    process_.items.clear();
    for (const auto& [id, items] : sources_) try {
        std::ranges::move(items(), std::back_inserter(process_.items));
      } catch (const std::exception&) {  // of a lost device; others still tell
      }
    process_.written = now();
    make_folder();  // it may have been removed with the rest of the cache
    const std::string temporary = join(path_, kTemporary);
    std::ofstream out(temporary, std::ios::trunc);
    out << text_of(process_);
    out.close();
    if (!out) fail(ErrorKind::io, temporary, " cannot be written");
    fs::rename(temporary, path_);
    return true;
  }
  void make_folder() const {
    const fs::path place = fs::path(path_).parent_path();
    fs::create_directories(place);
    fs::permissions(place, fs::perms::owner_all);
  }

  ForkSafeMutex mutex_;
  std::map<uint64_t, std::function<std::vector<Item>()>> sources_;
  uint64_t last_id_ = 0;
  bool is_writing_ = false;
  Process process_{.pid = getpid(), .program = own_program(), .begun = now()};
  std::string path_;
};

bool is_alive(int64_t pid) { return ::kill(pid_t(pid), 0) == 0 || errno == EPERM; }

// A file of a process, by its name.
struct OwnFile {
  int64_t pid;
  bool complete;  // else it is being written, or its process was killed meanwhile
};
std::optional<OwnFile> own_file(const fs::path& file) {
  const std::string name = file.filename();
  int64_t pid = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), pid);
  const std::string_view ending = end;
  if (problem != std::errc() || pid <= 0) return std::nullopt;
  if (ending == kComplete) return OwnFile{pid, true};
  if (ending == join(kComplete, kTemporary)) return OwnFile{pid, false};
  return std::nullopt;
}

}  // namespace

std::string folder(const Config& config) {
  return config.cache_dir.empty() ? "" : config.cache_dir + "/status";
}

std::vector<Process> read_all(const std::string& folder) {
  std::vector<Process> all;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::optional<OwnFile> file = own_file(entry.path());
    if (!file) continue;
    if (!is_alive(file->pid)) {
      fs::remove(entry.path(), ignored);
      continue;
    }
    if (!file->complete) continue;
    std::ifstream in(entry.path());
    try {
      all.push_back(parse({std::istreambuf_iterator<char>(in), {}}, entry.path()));
    } catch (const std::exception&) {  // no file of ours
    }
  }
  std::ranges::sort(all, {}, &Process::pid);
  return all;
}

Source::Source(std::function<std::vector<Item>()> items) {
  if (config().status) id_ = Writer::of_process().add(std::move(items));
}

Source::~Source() {
  if (id_ != 0) Writer::of_process().remove(id_);
}

}  // namespace tensorcraft::status
