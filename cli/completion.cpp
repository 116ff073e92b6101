// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <sstream>

namespace tensorcraft::cli {
namespace {

bool is_flag(const Option& option) { return std::holds_alternative<bool*>(option.value); }
bool is_json(const Option& option) { return option.name == "--json"; }
bool is_named(const Option& option) { return option.name.starts_with("--"); }

// Returns what may follow a command: its commands, options and choices by position.
std::string words_of(const Command& command) {
  std::vector<std::string> words;
  std::ranges::transform(command.commands, std::back_inserter(words), &Command::name);
  for (const Option& option : command.options) {
    if (is_named(option)) words.push_back(option.name);
    if (!is_named(option)) words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  if (command.run && std::ranges::none_of(command.options, is_json)) words.emplace_back("--json");
  words.emplace_back("--help");
  return joined(words, " ");
}

// One branch of a `case` for each command, by its path: "/cache/ls".
void write_paths(std::ostream& out, const Command& command, const std::string& path) {
  for (const Command& inner : command.commands) {
    const std::string there = path + "/" + inner.name;
    out << "      '" << path << ' ' << inner.name << "') path=" << there << " ;;\n";
    write_paths(out, inner, there);
  }
}

// Writes what comes after an option that takes a value.
void write_values(std::ostream& out, const Command& command, const std::string& path) {
  for (const Option& option : command.options) {
    if (!is_named(option) || is_flag(option)) continue;
    out << "    '" << path << ' ' << option.name << "') ";
    if (option.is_file)
      out << "COMPREPLY=($(compgen -f -- \"$word\"))";
    else
      out << "COMPREPLY=($(compgen -W '" << joined(option.choices, " ") << "' -- \"$word\"))";
    out << "; return ;;\n";
  }
  for (const Command& inner : command.commands) write_values(out, inner, path + "/" + inner.name);
}

void write_words(std::ostream& out, const Command& command, const std::string& path) {
  out << "    '" << path << "') words='" << words_of(command) << "'";
  for (const Option& option : command.options)
    if (option.is_file && !is_named(option)) out << " files=yes";
  out << " ;;\n";
  for (const Command& inner : command.commands) write_words(out, inner, path + "/" + inner.name);
}

std::string bash_script(const Command& root) {
  std::ostringstream out;
  out << "# Completion of tensorcraft. Load it with: source <(tensorcraft completion bash)\n"
         "_tensorcraft() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local path= words= files= i\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    case \"$path ${COMP_WORDS[i]}\" in\n";
  write_paths(out, root, "");
  out << "    esac\n  done\n  case \"$path $last\" in\n";
  write_values(out, root, "");
  out << "  esac\n  case \"$path\" in\n";
  write_words(out, root, "");
  out << "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  if [ -n \"$files\" ]; then COMPREPLY+=($(compgen -f -- \"$word\")); fi\n"
         "}\n"
         "complete -F _tensorcraft tensorcraft\n";
  return out.str();
}

// zsh reads the script for bash.
std::string zsh_script(const Command& root) {
  return "#compdef tensorcraft\n"
         "# Completion of tensorcraft. Load it with: source <(tensorcraft completion zsh)\n"
         "if ! whence compdef >/dev/null; then autoload -Uz compinit && compinit; fi\n"
         "autoload -Uz bashcompinit && bashcompinit\n" +
         bash_script(root);
}

// In single quotes of fish.
std::string fish_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted.append(c == '\'' || c == '\\' ? "\\" : "").push_back(c);
  return quoted + "'";
}

// `when`: the condition that the words before name this command.
void write_fish(std::ostream& out, const Command& command, const std::string& when) {
  const std::string line = "complete -c tensorcraft -n " + fish_quoted(when);
  std::vector<std::string> names;
  std::ranges::transform(command.commands, std::back_inserter(names), &Command::name);
  const std::string first =
      names.empty() ? when : when + "; and not __fish_seen_subcommand_from " + joined(names, " ");
  for (const Command& inner : command.commands) {
    out << "complete -c tensorcraft -n " << fish_quoted(first) << " -f -a " << inner.name << " -d "
        << fish_quoted(inner.help) << '\n';
    write_fish(out, inner, when + "; and __fish_seen_subcommand_from " + inner.name);
  }
  for (const Option& option : command.options) {
    const std::string choices =
        option.choices.empty() ? "" : " -a " + fish_quoted(joined(option.choices, " "));
    if (is_named(option))
      out << line << " -l " << option.name.substr(2)
          << (is_flag(option)  ? ""
              : option.is_file ? " -r -F"
                               : " -x")
          << choices << " -d " << fish_quoted(option.help) << '\n';
    else
      out << line << (option.is_file ? " -F" : " -f") << choices << '\n';
  }
  if (!command.run) return;
  if (std::ranges::none_of(command.options, is_json))
    out << line << " -l json -d 'print one JSON value'\n";
  out << line << " -l help -d 'print the help of this command'\n";
}

std::string fish_script(const Command& root) {
  std::ostringstream out;
  out << "# Completion of tensorcraft. Load it with: tensorcraft completion fish | source\n"
         "complete -c tensorcraft -e\n";
  write_fish(out, root, "true");
  return out.str();
}

std::string script_of(const std::string& shell, const Command& root) {
  if (shell == "fish") return fish_script(root);
  return shell == "zsh" ? zsh_script(root) : bash_script(root);
}

}  // namespace

Command completion_command(std::vector<Command> others) {
  const auto shell = std::make_shared<std::string>();
  const auto root = std::make_shared<Command>();
  Command command{
      .name = "completion",
      .help = "print a script that completes this command in a shell",
      .options =
          {{"shell", "bash, zsh or fish", shell.get(), true, false, {"bash", "zsh", "fish"}}},
      .run = [shell, root](Console& console) -> int {
        const std::string script = script_of(*shell, *root);
        if (console.json)
          console.print_json(Json{{"shell", *shell}, {"script", script}});
        else
          console.print(script);
        return kDone;
      },
      .examples = {"completion bash > ~/.local/share/bash-completion/completions/tensorcraft",
                   "completion fish > ~/.config/fish/completions/tensorcraft.fish"}};
  root->commands = std::move(others);
  root->options = {{"--version", "", static_cast<bool*>(nullptr)}};
  root->commands.push_back({command.name, command.help, command.options, command.run});
  root->commands.back().run = [](Console&) -> int { return kDone; };  // else it would own itself
  return command;
}

}  // namespace tensorcraft::cli
