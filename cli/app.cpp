// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/error_reporter.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/core/version.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

namespace tensorcraft::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 a check failed, 2 not accepted (arguments, configuration), 3 not\n"
    "possible here. --json prints one JSON value. Settings: tensorcraft help environment.";

void add_option(CLI::App& app, Option option) {
  if (!option.letter.empty()) option.name += "," + option.letter;
  CLI::Option* added = nullptr;
  if (const auto* flag = std::get_if<bool*>(&option.value)) {
    added = app.add_flag(option.name, **flag, option.help);
  } else if (const auto* number = std::get_if<int*>(&option.value)) {
    added = app.add_option(option.name, **number, option.help);
  } else if (const auto* real = std::get_if<double*>(&option.value)) {
    added = app.add_option(option.name, **real, option.help);
  } else if (const auto* maybe = std::get_if<std::optional<std::string>*>(&option.value)) {
    added = app.add_option_function<std::vector<std::string>>(
        option.name,
        [to = *maybe](const std::vector<std::string>& given) {
          *to = given.empty() ? std::string() : given.back();
        },
        option.help);
    added->expected(0, 1);
  } else if (const auto* text = std::get_if<std::string*>(&option.value)) {
    added = app.add_option(option.name, **text, option.help);
  } else {
    added = app.add_option(option.name, *std::get<std::vector<std::string>*>(option.value),
                           option.help);
    if (option.name.starts_with("--")) added->allow_extra_args(false);  // one value each time
  }
  if (option.required) added->required();
  if (!option.choices.empty() && !option.is_open) added->check(CLI::IsMember(option.choices));
}

// `chosen` becomes the command that the line names.
void add_command(CLI::App& parent, const Command& command, Console& console,
                 const Command*& chosen) {
  CLI::App& app = *parent.add_subcommand(command.name, command.help);
  if (!command.examples.empty())
    app.footer("Examples:\n  tensorcraft " + joined(command.examples, "\n  tensorcraft "));
  for (const Option& option : command.options) add_option(app, option);
  for (const Command& inner : command.commands) add_command(app, inner, console, chosen);
  if (!command.run) {
    app.require_subcommand(1);
    return;
  }
  const bool has_own = std::ranges::any_of(
      command.options, [](const Option& option) { return option.name == "--json"; });
  if (!has_own) app.add_flag("--json", console.json, "print one JSON value");
  if (command.rest) app.prefix_command();
  app.callback([&command, &chosen, &app] {
    if (command.rest) *command.rest = app.remaining();
    chosen = &command;
  });
}

int report(Console& console, const ErrorReporter& error) {
  if (console.json)
    console.print_json(Json{{"error", {{"kind", error.kind()}, {"message", error.message()}}}});
  else
    std::cerr << error.line("tensorcraft") << '\n';
  return error.is_refusal() ? kUsage : kUnavailable;
}

// The innermost command that the line names.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* group = &app;
  while (!group->get_subcommands().empty()) group = group->get_subcommands().front();
  return *group;
}

std::vector<std::string> commands_of(const CLI::App& group) {
  std::vector<std::string> names;
  for (const CLI::App* inner : group.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(inner->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string unknown(const char* what, const std::string& word,
                    const std::vector<std::string>& known) {
  const std::vector<std::string_view> words(known.begin(), known.end());
  return std::string("there is no ") + what + ' ' + word + did_you_mean(word, words);
}

// CLI11 says of a word that is no command only that one is missing, and nothing of an option that
// does not exist if an argument is missing too.
std::string problem_of(const CLI::App& group, const CLI::ParseError& error) {
  const bool wants_command = group.get_require_subcommand_min() > 0;
  for (const std::string& word : group.remaining()) {
    if (!word.starts_with('-')) {
      if (wants_command) return unknown("command", word, commands_of(group));
    } else if (!wants_command || word != "--json") {
      return unknown("option", word.substr(0, word.find('=')), options_of(group));
    }
  }
  if (!wants_command) return error.what();
  return "give a command: " + joined(commands_of(group));
}

std::string help_of(CLI::App& root, const std::vector<std::string>& words) {
  CLI::App* app = &root;
  std::string name = root.get_name();
  for (const std::string& word : words) {
    const std::vector<std::string> names = commands_of(*app);
    if (std::ranges::find(names, word) == names.end())
      fail(ErrorKind::value, unknown("command", word, names));
    app = app->get_subcommand(word);
    name += ' ' + word;
  }
  return app->get_formatter()->make_help(app, name, CLI::AppFormatMode::Normal);
}

int report_full(Console& console) {
  return report(console,
                ErrorReporter(Error(ErrorKind::io, "standard output cannot be written to")));
}

int run_chosen(const Command& command, Console& console) {
  try {
    const int code = command.run(console);
    return std::cout.flush() ? code : report_full(console);
  } catch (const std::exception& error) {
    return report(console, ErrorReporter(error));
  }
}

}  // namespace

int run(int argc, const char* const* argv, const std::vector<Command>& commands) {
  Console console;
  const Command* chosen = nullptr;
  CLI::App app("TensorCraft: GPU operators with their own JIT compiler.", "tensorcraft");
  app.set_version_flag("--version", "tensorcraft " + std::string(version()));
  app.footer(kFooter);
  app.require_subcommand(1);
  for (const Command& command : commands) add_command(app, command, console, chosen);
  console.help_of = [&app](const std::vector<std::string>& words) { return help_of(app, words); };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answered) {  // --help, --version
    const int code = app.exit(answered);
    return std::cout.flush() ? code : report_full(console);
  } catch (const CLI::ParseError& error) {
    const CLI::App& group = innermost(app);
    std::cerr << "tensorcraft: " << problem_of(group, error) << "\nSee tensorcraft "
              << (&group == &app ? "" : group.get_name() + " ") << "--help.\n";
    return kUsage;
  }
  return run_chosen(*chosen, console);
}

}  // namespace tensorcraft::cli
