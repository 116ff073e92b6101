// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/expression/language.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/nearest.hpp"
#include "tensorcraft/op/expression/language_functions.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tensorcraft::expression {
namespace {

using O = Operation;

// Between two values, from those that bind least: a function each.
struct Symbol {
  std::string_view text;
  int level;
  std::string_view function;
};
constexpr Symbol kSymbols[] = {
    {"|", 0, "bitwise_or"},
    {"^", 1, "bitwise_xor"},
    {"&", 2, "bitwise_and"},
    {"<<", 3, "bitwise_left_shift"},
    {">>", 3, "bitwise_right_shift"},
    {"+", 4, "add"},
    {"-", 4, "subtract"},
    {"*", 5, "multiply"},
    {"/", 5, "divide"},
    {"//", 5, "floor_divide"},
    {"%", 5, "remainder"},
};
constexpr int kLevels = 6;
constexpr std::string_view kAllSymbols = "+ - * / // % ** & | ^ ~ << >> ( ) , < <= > >= == !=";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// "\n  g * q\n      ^": the text around a column with a caret below it, one character a byte.
std::string shown(std::string_view text, size_t at) {
  constexpr size_t kBefore = 50, kShown = 76;
  const size_t begin = at > kBefore ? at - kBefore : 0;
  std::string line(text.substr(begin, kShown));
  for (char& c : line)
    if (is_space(c))
      c = ' ';
    else if (c < ' ' || c > '~')
      c = '?';
  const std::string head = begin > 0 ? "..." : "";
  const std::string tail = begin + line.size() < text.size() ? "..." : "";
  return join("\n  ", head, line, tail, "\n  ", std::string(head.size() + at - begin, ' '), '^');
}

constexpr std::string_view kTooLarge = "the number does not fit 64 bits; write it with a point";
constexpr uint64_t kPastLargest = uint64_t(1) << 63;

enum class Kind { end, number, name, symbol };
struct Token {
  Kind kind = Kind::end;
  std::string_view text;
  size_t at = 0;
};

// Recursive descent in Python's precedence; every value is typed as soon as it is read.
class Parser {
 public:
  Parser(std::string_view argument, std::string_view text, std::span<const Operand> operands,
         Program& program)
      : argument_(argument),
        text_(text),
        operands_(operands),
        builder_(program),
        used_(operands.size(), false) {
    for (const Operand& o : operands) {
      const auto* dtype = std::get_if<DType>(&o.value);
      values_.push_back(dtype ? builder_.input(*dtype)
                              : Value{.number = std::get<Number>(o.value)});
    }
  }

  void parse(std::optional<DType> out_dtype) {
    if (const size_t size = text_.size(); size > kMaxText) {
      text_ = text_.substr(0, kMaxText);
      refuse(kMaxText - 1, ErrorKind::value,
             join("the expression has ", size, " characters, expected at most ", kMaxText));
    }
    next();
    if (token_.kind == Kind::end)
      refuse(0, ErrorKind::value, "the expression is empty; give one such as x + 1");
    const size_t begin = token_.at;
    const Value result = any();
    if (token_.kind != Kind::end) unexpected("an operator or the end");
    for (size_t i = 0; i < operands_.size(); ++i)
      if (!used_[i] && !operands_[i].may_be_unused)
        fail(ErrorKind::value, argument_, ": argument ", operands_[i].name,
             " is not in the expression; ", operands_[i].if_unused);
    located(begin, [&] {
      builder_.finish(result, out_dtype);
      return result;
    });
  }

 private:
  [[noreturn]] void refuse(size_t at, ErrorKind kind, std::string_view what) const {
    fail(kind, argument_, ": ", what, " (column ", at + 1, ")", shown(text_, at));
  }
  [[noreturn]] void unexpected(std::string_view wanted) const {
    const std::string found = token_.kind == Kind::end ? "the end" : join("'", token_.text, "'");
    refuse(token_.at, ErrorKind::value, join("expected ", wanted, ", found ", found));
  }
  [[noreturn]] void not_closed(size_t at) const {
    fail(ErrorKind::value, argument_, ": '(' at column ", at + 1, " is not closed",
         shown(text_, at));
  }
  // f() with its errors at a column.
  template <class F>
  Value located(size_t at, F&& f) const {
    try {
      return f();
    } catch (const Error& e) {
      refuse(at, e.kind(), e.what());
    }
  }

  void next() {
    size_t at = token_.at + token_.text.size();
    while (at < text_.size() && is_space(text_[at])) ++at;
    token_ = {Kind::end, text_.substr(at, 0), at};
    if (at == text_.size()) return;
    const char c = text_[at];
    size_t length = 1;
    if (is_letter(c)) {
      token_.kind = Kind::name;
      while (at + length < text_.size() &&
             (is_letter(text_[at + length]) || is_digit(text_[at + length])))
        ++length;
    } else if (is_digit(c) || c == '.') {
      return read_number(at);
    } else {
      token_.kind = Kind::symbol;
      for (const std::string_view two : {"**", "//", "<<", ">>", "<=", ">=", "==", "!="})
        if (text_.substr(at).starts_with(two)) length = 2;
      if (length == 1 && std::string_view("+-*/%&|^~(),<>").find(c) == std::string_view::npos)
        refuse(at, ErrorKind::value,
               join("'", c >= ' ' && c <= '~' ? c : '?',
                    "' has no meaning in an expression; expected a name, a number or one of ",
                    kAllSymbols));
    }
    token_.text = text_.substr(at, length);
  }

  void read_number(size_t at) {
    const char *begin = text_.data() + at, *end = text_.data() + text_.size();
    double real = 0;
    const auto [real_stop, real_code] = std::from_chars(begin, end, real);
    uint64_t whole = 0;
    const auto [whole_stop, whole_code] = std::from_chars(begin, end, whole);
    token_ = {Kind::number, text_.substr(at, 1), at};
    if (real_stop == begin) refuse(at, ErrorKind::value, "a number needs a digit");
    const bool is_whole = whole_stop == real_stop;
    if (is_whole ? whole_code != std::errc() || whole > kPastLargest : real_code != std::errc())
      refuse(at, ErrorKind::value,
             is_whole ? kTooLarge : "the number does not fit float64; use one of at most 1.7e308");
    token_.text = text_.substr(at, size_t(real_stop - begin));
    number_ = is_whole ? Number(int64_t(whole)) : Number(real);
    is_past_largest_ = is_whole && whole == kPastLargest;
  }

  bool is(std::string_view text) const {
    return (token_.kind == Kind::symbol || token_.kind == Kind::name) && token_.text == text;
  }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    next();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) unexpected(join("'", text, "'"));
  }

  Value any() {
    Value a = all();
    while (is("or")) {
      const size_t at = token_.at;
      next();
      const Value b = all();
      a = located(at, [&] { return builder_.logical_or(a, b); });
    }
    return a;
  }
  Value all() {
    Value a = negation();
    while (is("and")) {
      const size_t at = token_.at;
      next();
      const Value b = negation();
      a = located(at, [&] { return builder_.logical_and(a, b); });
    }
    return a;
  }
  Value negation() {
    if (!is("not")) return comparison();
    const Depth depth(*this);
    const size_t at = token_.at;
    next();
    const Value x = negation();
    return located(at, [&] { return builder_.logical_not(x); });
  }

  Value comparison() {
    const Value a = chain(0);
    if (!is_comparison()) return a;
    const Token sign = token_;
    next();
    const Value b = chain(0);
    if (is_comparison())
      refuse(token_.at, ErrorKind::value, "comparisons do not chain; write (a < b) and (b < c)");
    const char first = sign.text[0];
    const bool or_equal = sign.text.size() == 2;
    const O operation = first == '='   ? O::equal
                        : first == '!' ? O::not_equal
                        : or_equal     ? O::less_equal
                                       : O::less;
    return located(sign.at, [&] {
      return first == '>' ? builder_.compare(operation, b, a) : builder_.compare(operation, a, b);
    });
  }
  bool is_comparison() const {
    return is("<") || is("<=") || is(">") || is(">=") || is("==") || is("!=");
  }

  // Values between symbols of this level and those that bind more, from the left.
  Value chain(int level) {
    if (level == kLevels) return factor();
    Value a = chain(level + 1);
    while (const Function* const function = symbol_of(level)) {
      const size_t at = token_.at;
      next();
      const Value b = chain(level + 1);
      a = located(at, [&] { return apply(builder_, *function, std::array{a, b}); });
    }
    return a;
  }
  const Function* symbol_of(int level) const {
    for (const Symbol& s : kSymbols)
      if (s.level == level && is(s.text)) return find_function(s.function);
    return nullptr;
  }
  // A sign binds less than a power: -x ** 2 is -(x ** 2).
  Value factor() {
    const Depth depth(*this);
    const size_t at = token_.at;
    if (accept("+")) return factor();
    if (accept("-")) {
      const bool is_past_largest = std::exchange(is_past_largest_, false);
      const Value x = factor();
      constexpr Number lowest = std::numeric_limits<int64_t>::min();
      if (is_past_largest && x.is_number() && x.number == lowest) return x;
      return located(at, [&] { return builder_.unary(O::negative, x); });
    }
    if (accept("~")) {
      const Value x = factor();
      return located(at, [&] { return builder_.bitwise_invert(x); });
    }
    const Value base = primary();
    if (!is("**")) return base;
    const size_t sign = token_.at;
    next();
    const Value exponent = factor();
    return located(sign, [&] { return builder_.arithmetic(O::pow, base, exponent); });
  }

  Value primary() {
    const Token token = token_;
    if (token.kind == Kind::number) {
      if (is_past_largest_) refuse(token.at, ErrorKind::value, kTooLarge);
      const Value x{.number = number_};
      next();
      return x;
    }
    if (token.kind == Kind::name) {
      next();
      return is("(") ? call(token) : named(token);
    }
    if (!accept("(")) unexpected("a value");
    const Value x = any();
    if (token_.kind == Kind::end) not_closed(token.at);
    expect(")");
    return x;
  }

  Value named(const Token& name) {
    for (size_t i = 0; i < operands_.size(); ++i)
      if (operands_[i].name == name.text) {
        used_[i] = true;
        return values_[i];
      }
    if (name.text == "True") return {.number = true};
    if (name.text == "False") return {.number = false};
    if (name.text == "inf") return {.number = std::numeric_limits<double>::infinity()};
    if (name.text == "nan") return {.number = std::numeric_limits<double>::quiet_NaN()};
    for (const std::string_view keyword : {"device", "out", "out_dtype", "stream", "variant"})
      if (name.text == keyword)
        refuse(name.at, ErrorKind::value,
               join(keyword, " is a keyword of every operator; give the argument another name"));
    std::string names;
    for (const Operand& o : operands_) names.append(names.empty() ? "" : ", ").append(o.name);
    refuse(name.at, ErrorKind::value,
           join("unknown name '", name.text, "' in the expression; there are ",
                names.empty() ? "none" : names));
  }

  Value call(const Token& name) {
    const Function* const function = find_function(name.text);
    const auto dtype = parse_dtype(name.text);
    if (!function && !dtype) unknown_function(name);
    const size_t least = dtype ? 1 : min_arguments(function->form),
                 most = dtype ? 1 : max_arguments(function->form);
    std::array<Value, 3> arguments;
    size_t count = 0;
    const size_t open = token_.at;
    expect("(");
    while (!is(")")) {
      if (count > 0 && !accept(",")) unexpected("',' or ')'");
      if (count == most) arity(name, least, most, count + 1);
      arguments[count++] = any();
      if (token_.kind == Kind::end) not_closed(open);
    }
    if (count < least) arity(name, least, most, count);
    next();
    return located(name.at, [&] {
      return dtype ? builder_.cast(arguments[0], *dtype)
                   : apply(builder_, *function, std::span(arguments).first(count));
    });
  }
  [[noreturn]] void arity(const Token& name, size_t least, size_t most, size_t got) const {
    const std::string count = least == most ? join(least) : join(least, " or ", most);
    refuse(name.at, ErrorKind::value,
           join(name.text, " takes ", count, most == 1 ? " argument, got " : " arguments, got ",
                got > most ? "more" : join(got)));
  }
  [[noreturn]] void unknown_function(const Token& name) const {
    std::vector<std::string_view> known;
    for (const Function& f : kFunctions) known.push_back(f.name);
    std::string hint = did_you_mean(name.text, known);
    if (hint.empty()) {
      hint = "; there are ";
      for (const std::string_view one : known) hint.append(one).append(", ");
      hint += "and the names of dtypes";
    }
    refuse(name.at, ErrorKind::value, join("unknown function '", name.text, "'", hint));
  }

  // Counts nested values, so that no text exhausts the stack.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxDepth)
        parser_.refuse(parser_.token_.at, ErrorKind::value,
                       join("nested deeper than ", kMaxDepth, " levels"));
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Parser& parser_;
  };

  std::string_view argument_, text_;
  std::span<const Operand> operands_;
  Builder builder_;
  std::vector<bool> used_;
  std::vector<Value> values_;
  Token token_;
  Number number_;
  bool is_past_largest_ = false;  // it is 2^63, which has a place below a minus sign alone
  int depth_ = 0;
};

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

void check_names(std::string_view argument, std::span<const Operand> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!is_name(operands[i].name))
      fail(ErrorKind::value, argument, ": '", operands[i].name,
           "' is not a name of ASCII letters, digits and _");
    for (size_t j = 0; j < i; ++j)
      if (operands[i].name == operands[j].name)
        fail(ErrorKind::value, argument, ": two arguments are named ", operands[i].name);
  }
}

}  // namespace

Program compile_expression(std::string_view text, std::span<const Operand> operands,
                           std::optional<DType> out_dtype, std::string_view argument) {
  check_names(argument, operands);
  Program program;
  Parser(argument, text, operands, program).parse(out_dtype);
  return program;
}

}  // namespace tensorcraft::expression
