// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/user_source.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/first_made.hpp"
#include "tensorcraft/core/fork.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/device/ptx/begin_kernel.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace tensorcraft::jit {
namespace {

std::string number_text(double value) {
  // Not by printf, whose point depends on the locale.
  char digits[64];
  const float magnitude = std::abs(float(value));
  const auto end =
      std::to_chars(digits, digits + sizeof(digits), magnitude, std::chars_format::hex).ptr;
  return join(std::signbit(value) ? "-0x" : "0x", std::string_view(digits, end), "f");
}

std::string integer_text(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return join("(", value + 1, "LL - 1)");
  const bool fits = value == int32_t(value) && value > std::numeric_limits<int32_t>::min();
  return join(value, fits ? "" : "LL");
}

struct ConstantText {
  std::string_view name;
  std::string operator()(bool value) const {
    return join("[[maybe_unused]] constexpr bool ", name, " = ", value ? "true" : "false", ";\n");
  }
  std::string operator()(int64_t value) const {
    const std::string text = integer_text(value);
    return join("[[maybe_unused]] constexpr ",
                text.ends_with("LL") || text.front() == '(' ? "long long " : "int ", name, " = ",
                text, ";\n");
  }
  std::string operator()(double value) const {
    return join("[[maybe_unused]] constexpr float ", name, " = ", number_text(value), ";\n");
  }
  std::string operator()(DType value) const {
    return join("using ", name, " = ", device_type(value), ";\n");
  }
};

void check_constants(const UserSource& source) {
  for (const KernelConstant& c : source.constants) {
    if (!is_identifier(c.name))
      fail(ErrorKind::value, "kernel: the constant '", c.name,
           "' is no name; use letters, digits and _");
    if (is_keyword(c.name))
      fail(ErrorKind::value, "kernel: the constant ", c.name,
           " is called like a word of C++; use another name");
    if (std::ranges::count(source.constants, c.name, &KernelConstant::name) > 1)
      fail(ErrorKind::value, "kernel: the constant ", c.name, " is given twice");
    const auto* value = std::get_if<double>(&c.value);
    if (value && !std::isfinite(float(*value)))
      fail(ErrorKind::value, "kernel: the constant ", c.name, " must be a finite float32, got ",
           *value, "; take it as a parameter");
  }
}

bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) {
           return is_identifier(std::string_view(&c, 1)) || (c >= '0' && c <= '9') || c == '.' ||
                  c == '-';
         });
}

void check(const UserSource& source) {
  if (source.text.size() > kMaxSourceBytes)
    fail(ErrorKind::value, "kernel: a text has at most ", kMaxSourceBytes, " bytes, got ",
         source.text.size());
  if (const size_t at = source.text.find('\0'); at != source.text.npos)
    fail(ErrorKind::value, "kernel: the text has a NUL at byte ", at, "; a compiler stops there");
  if (source.text.find_first_not_of(" \t\r\n") == source.text.npos)
    fail(ErrorKind::value, "kernel: the text is empty; it must define ", source.signature.name);
  if (!is_file_name(source.file))
    fail(ErrorKind::value, "kernel: name must be letters, digits, '_', '-' and '.', got '",
         source.file, "'");
  check_constants(source);
}

// The identifier that ends `text`, blanks aside.
std::string_view last_word(std::string_view text) {
  while (!text.empty() && !is_identifier(text.substr(text.size() - 1)) && text.back() <= ' ')
    text.remove_suffix(1);
  size_t begin = text.size();
  while (begin > 0 && (is_identifier(text.substr(begin - 1, 1)) ||
                       (text[begin - 1] >= '0' && text[begin - 1] <= '9')))
    --begin;
  return text.substr(begin);
}

// The launch bounds that the text gives the kernel, "(256, 2)"; empty if it gives none. The entry
// needs them, since the user's function is called by it.
std::string_view launch_bounds(std::string_view text, std::string_view name) {
  constexpr std::string_view kWord = "__launch_bounds__";
  const std::string_view own = name.substr(name.rfind(':') + 1);  // npos + 1 is 0
  for (size_t at = text.find(kWord); at != text.npos; at = text.find(kWord, at)) {
    at += kWord.size();
    const size_t open = text.find_first_not_of(" \t\r\n", at);
    if (open == text.npos || text[open] != '(') continue;
    size_t end = open;
    for (int depth = 0; end < text.size(); ++end) {
      if (text[end] == '(') ++depth;
      if (text[end] == ')' && --depth == 0) break;
    }
    if (end == text.size()) continue;
    const std::string_view behind = text.substr(end + 1, text.find('(', end) - end - 1);
    if (last_word(behind) == own) return text.substr(open, end + 1 - open);
  }
  return {};
}

std::string call_text(const KernelSignature& signature, std::string_view from) {
  std::string text = signature.name;
  for (size_t i = 0; i < signature.template_arguments.size(); ++i)
    text.append(i ? ", " : "<").append(signature.template_arguments[i]);
  text.append(signature.template_arguments.empty() ? "(" : ">(");
  for (size_t i = 0; i < signature.parameters.size(); ++i)
    text.append(i ? ", " : "").append(from).append(signature.parameters[i].name);
  return text + ");";
}

std::string struct_text(const KernelSignature& signature) {
  std::string text = "struct TensorcraftArguments {\n";
  for (const KernelParameter& p : signature.parameters)
    text.append(p.is_array() && p.is_const ? "  const " : "  ")
        .append(p.spelling)
        .append(p.is_array() ? "* " : " ")
        .append(p.name)
        .append(";\n");
  const size_t bytes = std::max<size_t>(signature.argument_bytes, 1);
  return join(text, "};\nstatic_assert(sizeof(TensorcraftArguments) == ", bytes, ");\n");
}

// The head of both texts: what a kernel may use without including it.
std::string head_text(const UserSource& source, std::string_view more) {
  const auto has = [&](std::string_view type) {
    const auto is_used = [&](const auto& text) { return text.find(type) != text.npos; };
    return std::ranges::any_of(source.signature.parameters, is_used, &KernelParameter::spelling) ||
           std::ranges::any_of(source.signature.template_arguments, is_used) ||
           std::ranges::any_of(source.constants, [&](const KernelConstant& c) {
             const auto* dtype = std::get_if<DType>(&c.value);
             return dtype && device_type(*dtype).find(type) != std::string_view::npos;
           });
  };
  std::string text =
      join("// The entry of ", source.file,
           ", generated by TensorCraft\n#include \"tensorcraft/device/base.h\"\n", more);
  if (has("f16")) text += "#include \"tensorcraft/device/float16.cuh\"\n";
  if (has("e4m3") || has("e5m2")) text += "#include \"tensorcraft/device/float8.cuh\"\n";
  text += "using namespace tensorcraft;\n";
  for (const KernelConstant& c : source.constants)
    text += std::visit(ConstantText{c.name}, c.value);
  return text;
}

constexpr std::string_view kDefine = "#define ";

}  // namespace

std::string entry_name(const UserSource& source) {
  std::string name = "user_" + source.signature.name;
  std::ranges::replace(name, ':', '_');
  return name;
}

std::string entry_text(const UserSource& source, std::string_view arch) {
  const std::string_view bounds = launch_bounds(source.text, source.signature.name);
  // A kernel of the text becomes a function that the entry calls. The attributes are what the words
  // stand for, which are macros.
  return join(head_text(source, ""), "#undef __global__\n", kDefine, "__global__ __device__\n",
              "#undef __launch_bounds__\n", kDefine, "__launch_bounds__(...)\n", "#include \"",
              source.file, "\"\n\n", struct_text(source.signature),
              "extern \"C\" __attribute__((global)) void",
              bounds.empty() ? "" : join(" __attribute__((launch_bounds", bounds, "))"), "\n    ",
              entry_name(source),
              "(const __grid_constant__ TensorcraftArguments tensorcraft_arguments) {\n  ",
              arch_number(arch) >= 90 ? join(ptx::kBeginKernel, "\n  ") : "",
              call_text(source.signature, "tensorcraft_arguments."), "\n}\n");
}

std::string host_text(const UserSource& source) {
  constexpr std::string_view kEmptyWords[] = {"__global__",   "__device__",
                                              "__host__",     "__grid_constant__",
                                              "__constant__", "__launch_bounds__(...)"};
  std::string words = join(kDefine, "__forceinline__ inline\n");
  for (const std::string_view word : kEmptyWords) words += join(kDefine, word, "\n");
  return join(head_text(source, "#include \"tensorcraft/device/host.h\"\n"), words, "#include \"",
              source.file, "\"\n\nnamespace {\n", struct_text(source.signature),
              "}\nextern \"C\" __attribute__((visibility(\"default\"))) void ", entry_name(source),
              "(const void* tensorcraft_memory) {\n",
              source.signature.parameters.empty()
                  ? "  (void)tensorcraft_memory;\n"
                  : "  const auto& tensorcraft_arguments =\n"
                    "      *static_cast<const TensorcraftArguments*>(tensorcraft_memory);\n",
              "  ", call_text(source.signature, "tensorcraft_arguments."), "\n}\n");
}

std::string entry_file(const UserSource& source, std::string_view suffix) {
  return join(".", entry_name(source), suffix);
}

std::string hint_for(const UserSource& source, std::string_view error) {
  if (!error.starts_with(entry_file(source, ""))) return {};
  return join("\n  fix: the text's function cannot be called by the signature ",
              to_string(source.signature), "; make the two agree");
}

std::shared_ptr<const HeaderSet> headers_of(const UserSource& source, std::string_view text) {
  return include_closure_of(
      text,
      {std::make_shared<const Header>(Header{source.file, sha256_hex(source.text), source.text})});
}

const Rung& rung_of(UserSource source) {
  check(source);
  Sha256 content;
  content.field(source.file).field(source.text).field(to_string(source.signature));
  for (const KernelConstant& c : source.constants)
    content.field(std::visit(ConstantText{c.name}, c.value));
  // All stay, as keys hold addresses.
  struct Kept {
    UserSource source;
    Rung rung;
  };
  static constinit FirstMade<ForkSafeMutex> mutex;
  static constinit FirstMade<std::map<std::string, Kept>> all;
  const std::lock_guard lock(*mutex);
  const auto [at, is_new] = all->try_emplace(content.hex());
  Kept& kept = at->second;
  if (is_new) {
    kept.source = std::move(source);
    kept.rung = {.op = "user",
                 .name = entry_name(kept.source).substr(5),
                 .header = kept.source.file,
                 .function = kept.source.signature.name,
                 .user = &kept.source};
  }
  return kept.rung;
}

}  // namespace tensorcraft::jit
