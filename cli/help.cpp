// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include "tensorcraft/core/config.hpp"
#include "tensorcraft/core/error.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

namespace tensorcraft::cli {
namespace {

int show_environment(Console& console) {
  console.print(
      "An environment variable wins over the file of settings, which wins over the default. The "
      "file\n"
      "is ~/.config/tensorcraft/config.json, or the one that TENSORCRAFT_CONFIG names.");
  for (const Setting& s : settings()) {
    const char* const comma = s.environment.empty() ? "" : ", ";
    console.print(join("\n", s.environment, comma, "in the file: ", s.key));
    console.print("  " + std::string(s.meaning));
    console.print("  " + std::string(s.accepted) + "; default: " + std::string(s.default_text));
  }
  return kDone;
}

Json environment_json() {
  Json all = Json::array();
  for (const Setting& s : settings())
    all.push_back({{"key", s.key},
                   {"variable", s.environment},
                   {"accepted", s.accepted},
                   {"default", s.default_text},
                   {"meaning", s.meaning}});
  return {{"settings", all}};
}

int show(Console& console, const std::vector<std::string>& topic) {
  if (topic == std::vector<std::string>{"environment"}) {
    if (!console.json) return show_environment(console);
    console.print_json(environment_json());
    return kDone;
  }
  const std::string text = console.help_of(topic);
  if (console.json)
    console.print_json(Json{{"text", text}});
  else
    console.print(text);
  return kDone;
}

}  // namespace

Command help_command(const std::vector<Command>& others) {
  const auto topic = std::make_shared<std::vector<std::string>>();
  std::vector<std::string> topics;
  std::ranges::transform(others, std::back_inserter(topics), &Command::name);
  topics.emplace_back("environment");
  return {.name = "help",
          .help = "what a command does and takes, or what can be set: help environment",
          .options = {{.name = "topic",
                       .help = "a command, or environment",
                       .value = topic.get(),
                       .choices = topics,
                       .is_open = true}},
          .run = [topic](Console& console) { return show(console, *topic); },
          .examples = {"help explain", "help cache export", "help environment"}};
}

}  // namespace tensorcraft::cli
