// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/signature.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"

#include <algorithm>
#include <array>

namespace tensorcraft::jit {
namespace {

struct NumberRow {
  NumberType type;
  std::string_view name, device;
  size_t bytes;
  std::optional<DType> dtype;  // that of its arrays
};
constexpr std::array kNumbers = {
    NumberRow{NumberType::bool_, "bool", "bool", 1, DType::bool_},
    NumberRow{NumberType::int8, "int8", "int8_t", 1, DType::int8},
    NumberRow{NumberType::uint8, "uint8", "uint8_t", 1, DType::uint8},
    NumberRow{NumberType::int16, "int16", "int16_t", 2, DType::int16},
    NumberRow{NumberType::uint16, "uint16", "uint16_t", 2, std::nullopt},
    NumberRow{NumberType::int32, "int32", "int32_t", 4, DType::int32},
    NumberRow{NumberType::uint32, "uint32", "uint32_t", 4, std::nullopt},
    NumberRow{NumberType::int64, "int64", "int64_t", 8, DType::int64},
    NumberRow{NumberType::uint64, "uint64", "uint64_t", 8, DType::int64},
    NumberRow{NumberType::float8_e4m3fn, "float8_e4m3fn", "tensorcraft::e4m3", 1,
              DType::float8_e4m3fn},
    NumberRow{NumberType::float8_e5m2, "float8_e5m2", "tensorcraft::e5m2", 1, DType::float8_e5m2},
    NumberRow{NumberType::float16, "float16", "tensorcraft::f16", 2, DType::float16},
    NumberRow{NumberType::bfloat16, "bfloat16", "tensorcraft::bf16", 2, DType::bfloat16},
    NumberRow{NumberType::float32, "float32", "float", 4, DType::float32},
    NumberRow{NumberType::float64, "float64", "double", 8, std::nullopt},
};

const NumberRow& row_of(NumberType type) { return kNumbers[size_t(type)]; }

// Every word or words for a type. C's own stay as they are written: `long` and `long long` are two
// types of one size.
struct Spelling {
  std::string_view text;
  NumberType type;
  bool is_c = false;
};
constexpr std::array kSpellings = {
    Spelling{"bool", NumberType::bool_},
    Spelling{"bool_", NumberType::bool_},
    Spelling{"int8", NumberType::int8},
    Spelling{"int8_t", NumberType::int8},
    Spelling{"signed char", NumberType::int8},
    Spelling{"char", NumberType::int8, true},
    Spelling{"uint8", NumberType::uint8},
    Spelling{"uint8_t", NumberType::uint8},
    Spelling{"unsigned char", NumberType::uint8},
    Spelling{"int16", NumberType::int16},
    Spelling{"int16_t", NumberType::int16},
    Spelling{"short", NumberType::int16},
    Spelling{"short int", NumberType::int16},
    Spelling{"uint16", NumberType::uint16},
    Spelling{"uint16_t", NumberType::uint16},
    Spelling{"unsigned short", NumberType::uint16},
    Spelling{"int32", NumberType::int32},
    Spelling{"int32_t", NumberType::int32},
    Spelling{"int", NumberType::int32},
    Spelling{"signed int", NumberType::int32},
    Spelling{"uint32", NumberType::uint32},
    Spelling{"uint32_t", NumberType::uint32},
    Spelling{"unsigned", NumberType::uint32},
    Spelling{"unsigned int", NumberType::uint32},
    Spelling{"int64", NumberType::int64},
    Spelling{"int64_t", NumberType::int64},
    Spelling{"long", NumberType::int64, true},
    Spelling{"long int", NumberType::int64, true},
    Spelling{"long long", NumberType::int64, true},
    Spelling{"long long int", NumberType::int64, true},
    Spelling{"uint64", NumberType::uint64},
    Spelling{"uint64_t", NumberType::uint64},
    Spelling{"unsigned long", NumberType::uint64, true},
    Spelling{"unsigned long long", NumberType::uint64, true},
    Spelling{"size_t", NumberType::uint64, true},
    Spelling{"float8_e4m3fn", NumberType::float8_e4m3fn},
    Spelling{"e4m3", NumberType::float8_e4m3fn},
    Spelling{"float8_e5m2", NumberType::float8_e5m2},
    Spelling{"e5m2", NumberType::float8_e5m2},
    Spelling{"float16", NumberType::float16},
    Spelling{"f16", NumberType::float16},
    Spelling{"half", NumberType::float16},
    Spelling{"__half", NumberType::float16},
    Spelling{"bfloat16", NumberType::bfloat16},
    Spelling{"bf16", NumberType::bfloat16},
    Spelling{"__nv_bfloat16", NumberType::bfloat16},
    Spelling{"float32", NumberType::float32},
    Spelling{"float", NumberType::float32},
    Spelling{"float64", NumberType::float64},
    Spelling{"double", NumberType::float64},
};

// Sorted.
constexpr std::array<std::string_view, 92> kKeywords = {
    "alignas",       "alignof",     "and",
    "and_eq",        "asm",         "auto",
    "bitand",        "bitor",       "bool",
    "break",         "case",        "catch",
    "char",          "char16_t",    "char32_t",
    "char8_t",       "class",       "co_await",
    "co_return",     "co_yield",    "compl",
    "concept",       "const",       "const_cast",
    "consteval",     "constexpr",   "constinit",
    "continue",      "decltype",    "default",
    "delete",        "do",          "double",
    "dynamic_cast",  "else",        "enum",
    "explicit",      "export",      "extern",
    "false",         "float",       "for",
    "friend",        "goto",        "if",
    "inline",        "int",         "long",
    "mutable",       "namespace",   "new",
    "noexcept",      "not",         "not_eq",
    "nullptr",       "operator",    "or",
    "or_eq",         "private",     "protected",
    "public",        "register",    "reinterpret_cast",
    "requires",      "return",      "short",
    "signed",        "sizeof",      "static",
    "static_assert", "static_cast", "struct",
    "switch",        "template",    "this",
    "thread_local",  "throw",       "true",
    "try",           "typedef",     "typeid",
    "typename",      "union",       "unsigned",
    "using",         "virtual",     "void",
    "volatile",      "wchar_t",     "while",
    "xor",           "xor_eq"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr std::string_view kForm =
    "; a signature is like axpy(float* y, const float* x, float a, int64 n)";

// The line of `text` that has `at`, and a caret below; a long line is cut around it.
std::string with_caret(std::string_view text, size_t at, size_t length) {
  constexpr size_t kBefore = 60, kWidth = 100;
  const size_t line_begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
  const size_t line_end = std::min(text.find('\n', at), text.size());
  const size_t begin = at - line_begin > kBefore ? at - kBefore : line_begin;
  std::string shown(text.substr(begin, std::min(line_end - begin, kWidth)));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = ' ';
  const size_t room = shown.size() > at - begin ? shown.size() - (at - begin) : 1;
  const std::string tail(std::max<size_t>(std::min(length, room), 1) - 1, '~');
  return join("\n  ", shown, "\n  ", std::string(at - begin, ' '), "^", tail);
}

class Parser {
 public:
  Parser(std::string_view text, std::span<const KernelConstant> constants)
      : text_(text), constants_(constants) {}

  KernelSignature parse() {
    if (text_.size() > kMaxSignatureBytes)
      fail(ErrorKind::value, "kernel: signature: at most ", kMaxSignatureBytes,
           " bytes are accepted, got ", text_.size());
    KernelSignature signature;
    signature.name = kernel_name();
    if (take('<')) template_arguments(signature.template_arguments);
    if (!take('(')) refuse_here("expected '(' behind the kernel's name", kForm);
    if (!take(')')) parameters(signature.parameters);
    take(';');
    if (skip(); at_ < text_.size()) refuse_here("expected nothing behind ')'", kForm);
    lay_out(signature);
    return signature;
  }

 private:
  struct Word {
    std::string_view text;
    size_t at = 0;
  };

  void skip() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // Letters, digits and "::" between them; empty if there is no word.
  Word word() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size()) {
      const bool starts = at_ == begin || text_[at_ - 1] == ':';
      if (is_letter(text_[at_]) || (!starts && is_digit(text_[at_])))
        ++at_;
      else if (at_ > begin && text_.substr(at_).starts_with("::") && at_ + 2 < text_.size() &&
               is_letter(text_[at_ + 2]))
        at_ += 2;
      else
        break;
    }
    return {text_.substr(begin, at_ - begin), begin};
  }

  [[noreturn]] void refuse(std::string_view what, size_t at, size_t length,
                           std::string_view hint = {}) const {
    fail(ErrorKind::value, "kernel: signature: ", what, hint, with_caret(text_, at, length));
  }
  [[noreturn]] void refuse_here(std::string_view what, std::string_view hint = {}) {
    skip();
    const bool ends = at_ >= text_.size();
    refuse(join(what, ends ? ", and the text ends" : ""), at_, 1, hint);
  }

  std::string kernel_name() {
    Word name = word();
    while (name.text == "void" || name.text == "__global__") name = word();
    if (name.text.empty()) refuse_here("expected the kernel's name", kForm);
    for (std::string_view rest = name.text; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find(':'));
      if (is_keyword(part))
        refuse(join("a kernel cannot be called '", name.text, "', as C++ keeps '", part, "'"),
               name.at, name.text.size());
      rest.remove_prefix(std::min(part.size() + 2, rest.size()));
    }
    return std::string(name.text);
  }

  void template_arguments(std::vector<std::string>& arguments) {
    do {
      skip();
      const size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '>') {
        const char c = text_[at_];
        if (!is_letter(c) && !is_digit(c) && !is_blank(c) &&
            std::string_view(".:+-*/%'").find(c) == std::string_view::npos)
          refuse("a template argument is a type, a name or a number", at_, 1);
        ++at_;
      }
      std::string_view argument = text_.substr(begin, at_ - begin);
      while (!argument.empty() && is_blank(argument.back())) argument.remove_suffix(1);
      if (argument.empty()) refuse_here("expected a template argument");
      const Spelling* const type = find_type(argument);
      arguments.push_back(type ? spelled(*type) : std::string(argument));
    } while (take(','));
    if (!take('>')) refuse_here("expected ',' or '>' behind a template argument");
  }

  void parameters(std::vector<KernelParameter>& all) {
    do {
      if (all.size() == kMaxKernelParameters)
        refuse_here(join("a kernel has at most ", kMaxKernelParameters, " parameters"));
      all.push_back(parameter(all));
    } while (take(','));
    if (!take(')')) refuse_here("expected ',' or ')' behind a parameter");
  }

  static bool is_qualifier(std::string_view word) {
    return word == "const" || word == "__restrict__" || word == "__restrict" || word == "restrict";
  }

  KernelParameter parameter(const std::vector<KernelParameter>& before) {
    KernelParameter p;
    std::vector<Word> words;
    const auto read_words = [&] {
      for (Word next = word(); !next.text.empty(); next = word()) {
        if (next.text == "const" && !is_array_) p.is_const = true;
        if (!is_qualifier(next.text)) words.push_back(next);
      }
    };
    is_array_ = false;
    read_words();
    const size_t type_words = words.size();
    if (take('*')) {
      is_array_ = true;
      read_words();
    }
    if (take('*')) refuse("a pointer to pointers is not accepted", at_ - 1, 1, "; give one array");
    if (take('&'))
      refuse("a reference is not accepted", at_ - 1, 1, "; a kernel takes numbers and pointers");
    if (take('[')) refuse("write an array as a pointer", at_ - 1, 1, ", as in float* x");
    if (words.empty()) refuse_here("expected a parameter: a type and a name", kForm);
    const size_t names = is_array_ ? words.size() - type_words : words.size() > 1 ? 1 : 0;
    if (names > 1)
      refuse("expected ',' or ')' behind a parameter", words.back().at, words.back().text.size());
    if (words.size() == names)
      refuse("expected a type in front of '*'", words[0].at, words[0].text.size());
    set_type(p, std::span(words).first(words.size() - names));
    if (names == 0) refuse_here(join("the parameter of type ", p.spelling, " needs a name"));
    const Word& name = words.back();
    if (!is_identifier(name.text))
      refuse("a parameter's name has no '::'", name.at, name.text.size());
    if (is_keyword(name.text))
      refuse(join("a parameter cannot be called '", name.text, "', a word of C++"), name.at,
             name.text.size());
    p.name = name.text;
    if (std::ranges::find(before, p.name, &KernelParameter::name) != before.end())
      refuse(join("two parameters are named ", p.name), name.at, name.text.size());
    return p;
  }

  static std::string_view without_namespace(std::string_view word) {
    for (const std::string_view space : {"tensorcraft::", "tc::", "std::"})
      if (word.starts_with(space)) return word.substr(space.size());
    return word;
  }

  const Spelling* find_type(std::string_view text) {
    text = without_namespace(text);
    for (const KernelConstant& c : constants_)
      if (const auto* dtype = std::get_if<DType>(&c.value); dtype && c.name == text)
        text = tensorcraft::to_string(*dtype);
    const auto found = std::ranges::find(kSpellings, text, &Spelling::text);
    return found == kSpellings.end() ? nullptr : &*found;
  }
  static std::string spelled(const Spelling& type) {
    return std::string(type.is_c ? type.text : row_of(type.type).device);
  }

  void set_type(KernelParameter& p, std::span<const Word> words) {
    std::string text;
    for (const Word& w : words) text.append(text.empty() ? "" : " ").append(w.text);
    const size_t at = words[0].at, length = words.back().at + words.back().text.size() - at;
    const Spelling* const type = find_type(text);
    if (!type) {
      std::vector<std::string_view> known;
      known.reserve(kSpellings.size() + constants_.size());
      for (const Spelling& s : kSpellings) known.push_back(s.text);
      for (const KernelConstant& c : constants_)
        if (std::holds_alternative<DType>(c.value)) known.push_back(c.name);
      refuse(join("unknown type '", text, "'"), at, length, did_you_mean(text, known));
    }
    p.number = type->type;
    p.spelling = spelled(*type);
    if (!is_array_) return;
    p.dtype = row_of(type->type).dtype;
    if (!p.dtype)
      refuse(
          join("there are no arrays of ", to_string(p.number)), at, length,
          "; take one of another dtype and as many bytes, and convert the pointer in the kernel");
  }

  static void lay_out(KernelSignature& signature) {
    size_t end = 0, largest = 1;
    for (KernelParameter& p : signature.parameters) {
      const size_t bytes = p.is_array() ? sizeof(void*) : number_bytes(p.number);
      p.offset = (end + bytes - 1) / bytes * bytes;
      end = p.offset + bytes;
      largest = std::max(largest, bytes);
    }
    signature.argument_bytes = (end + largest - 1) / largest * largest;
  }

  const std::string_view text_;
  const std::span<const KernelConstant> constants_;
  size_t at_ = 0;
  bool is_array_ = false;  // the parameter that is read
};

}  // namespace

std::string_view to_string(NumberType type) { return row_of(type).name; }
size_t number_bytes(NumberType type) { return row_of(type).bytes; }
std::string_view device_type(NumberType type) { return row_of(type).device; }

KernelSignature parse_signature(std::string_view text, std::span<const KernelConstant> constants) {
  return Parser(text, constants).parse();
}

std::string to_string(const KernelSignature& signature) {
  std::string text = signature.name;
  for (size_t i = 0; i < signature.template_arguments.size(); ++i)
    text.append(i ? ", " : "<").append(signature.template_arguments[i]);
  text.append(signature.template_arguments.empty() ? "(" : ">(");
  for (const KernelParameter& p : signature.parameters)
    text.append(&p == signature.parameters.data() ? "" : ", ")
        .append(p.is_array() && p.is_const ? "const " : "")
        .append(p.spelling)
        .append(p.is_array() ? "* " : " ")
        .append(p.name);
  return text + ")";
}

bool is_keyword(std::string_view text) { return std::ranges::binary_search(kKeywords, text); }

bool is_identifier(std::string_view text) {
  if (text.empty() || is_digit(text[0])) return false;
  return std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

}  // namespace tensorcraft::jit
