// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/runtime/status/status.hpp"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

namespace tensorcraft::cli {
namespace {

using status::Item;
using status::Process;

struct TopArguments {
  double interval = 1;
  bool once = false;
};

Json to_json(const Process& process) {
  Json items = Json::array();
  for (const Item& item : process.items) {
    Json numbers = Json::object();
    for (const auto& [name, value] : item.numbers) numbers[name] = value;
    items.push_back({{"kind", item.kind}, {"name", item.name}, {"numbers", numbers}});
  }
  return {{"pid", process.pid},
          {"program", process.program},
          {"begun", process.begun},
          {"written", process.written},
          {"items", items}};
}

// "used_bytes" 3145728 -> "used 3 MiB".  "gb_per_s" 1.5 -> "1.5 GB/s".
std::string readable(const std::string& name, double value) {
  constexpr std::string_view kBytes = "_bytes", kRate = "gb_per_s", kSeconds = "_s";
  if (name == kRate) return readable_number(value) + " GB/s";
  if (name.ends_with(kBytes))
    return name.substr(0, name.size() - kBytes.size()) + ' ' + readable_bytes(value);
  if (name.ends_with(kSeconds))
    return name.substr(0, name.size() - kSeconds.size()) + ' ' + readable_number(value * 1e3) +
           " ms";
  return name + ' ' + readable_number(value);
}

std::string numbers_of(const Item& item) {
  std::vector<std::string> parts;
  parts.reserve(item.numbers.size());
  for (const auto& [name, value] : item.numbers) parts.push_back(readable(name, value));
  return joined(parts);
}

void show(Console& console, const std::vector<Process>& all) {
  if (all.empty()) {
    console.print("no process tells its status; start one with TENSORCRAFT_STATUS=1");
    return;
  }
  for (const Process& process : all) {
    constexpr size_t kLongest = 70;
    const std::string& program = process.program;
    console.print(console.colored(
        Color::bold, join(process.pid, "  ",
                          program.size() > kLongest ? program.substr(0, kLongest) + "..." : program,
                          "  ", readable_number(process.written - process.begun), " s")));
    std::vector<std::vector<std::string>> table{{"what", "of", "now"}};
    for (const Item& item : process.items)
      table.push_back({item.kind, item.name, numbers_of(item)});
    console.print_table(table);
  }
}

int top(Console& console, const TopArguments& a) {
  if (!(a.interval >= 0.1 && a.interval <= 3600))
    fail(ErrorKind::value, "--interval must be 0.1 to 3600 seconds, got ", a.interval);
  const std::string folder = status::folder();
  if (folder.empty()) fail(ErrorKind::io, "there is no cache folder; set TENSORCRAFT_CACHE_DIR");
  if (console.json) {
    Json all = Json::array();
    for (const Process& process : status::read_all(folder)) all.push_back(to_json(process));
    console.print_json(Json{{"folder", folder}, {"processes", all}});
    return kDone;
  }
  const bool is_live = !a.once && isatty(STDOUT_FILENO);
  while (true) {
    if (is_live) std::cout << "\033[2J\033[H";  // an empty screen
    show(console, status::read_all(folder));
    if (!is_live || !std::cout.flush()) return kDone;
    std::this_thread::sleep_for(std::chrono::duration<double>(a.interval));
  }
}

}  // namespace

Command top_command() {
  const auto a = std::make_shared<TopArguments>();
  return {.name = "top",
          .help = "memory, schedulers and transfers of the processes that tell them, live",
          .options = {{"--interval", "seconds between two looks (1)", &a->interval},
                      {"--once", "one look; so it is if the output is no terminal", &a->once}},
          .run = [a](Console& console) { return top(console, *a); },
          .examples = {"top", "top --once", "top --json"}};
}

}  // namespace tensorcraft::cli
