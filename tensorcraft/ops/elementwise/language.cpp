// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/elementwise/language.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/ops/elementwise/builder.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

namespace tensorcraft::kernel::elementwise {
namespace {

using O = Operation;

constexpr std::string_view kSymbols = "+ - * / ** ( ) , < <= > >= == !=";

// What a function does with its arguments.
enum class Form {
  unary,
  with_parameter,
  binary,
  compare,
  swapped,
  all_true,
  any_true,
  negation,
  choice,
  clip,
  is_nan
};

struct Function {
  std::string_view name;
  Form form;
  Operation operation;
  int least, most;       // arguments
  double parameter = 0;  // if it is not given
};

constexpr Function kFunctions[] = {
    {"abs", Form::unary, O::abs, 1, 1},
    {"add", Form::binary, O::add, 2, 2},
    {"clip", Form::clip, O::minimum, 3, 3},
    {"divide", Form::binary, O::divide, 2, 2},
    {"elu", Form::with_parameter, O::elu, 1, 2, 1},
    {"equal", Form::compare, O::equal, 2, 2},
    {"exp", Form::unary, O::exp, 1, 1},
    {"gelu", Form::unary, O::gelu, 1, 1},
    {"gelu_tanh", Form::unary, O::gelu_tanh, 1, 1},
    {"greater", Form::swapped, O::less, 2, 2},
    {"greater_equal", Form::swapped, O::less_equal, 2, 2},
    {"isnan", Form::is_nan, O::not_equal, 1, 1},
    {"leaky_relu", Form::with_parameter, O::leaky_relu, 1, 2, 0.01},
    {"less", Form::compare, O::less, 2, 2},
    {"less_equal", Form::compare, O::less_equal, 2, 2},
    {"log", Form::unary, O::log, 1, 1},
    {"logical_and", Form::all_true, O::minimum, 2, 2},
    {"logical_not", Form::negation, O::equal, 1, 1},
    {"logical_or", Form::any_true, O::maximum, 2, 2},
    {"max", Form::binary, O::maximum, 2, 2},
    {"maximum", Form::binary, O::maximum, 2, 2},
    {"min", Form::binary, O::minimum, 2, 2},
    {"minimum", Form::binary, O::minimum, 2, 2},
    {"multiply", Form::binary, O::multiply, 2, 2},
    {"negative", Form::unary, O::negative, 1, 1},
    {"not_equal", Form::compare, O::not_equal, 2, 2},
    {"pow", Form::binary, O::pow, 2, 2},
    {"relu", Form::unary, O::relu, 1, 1},
    {"round", Form::unary, O::round, 1, 1},
    {"rsqrt", Form::unary, O::rsqrt, 1, 1},
    {"sigmoid", Form::unary, O::sigmoid, 1, 1},
    {"silu", Form::unary, O::silu, 1, 1},
    {"sqrt", Form::unary, O::sqrt, 1, 1},
    {"subtract", Form::binary, O::subtract, 2, 2},
    {"swish", Form::with_parameter, O::swish, 1, 2, 1},
    {"tanh", Form::unary, O::tanh, 1, 1},
    {"where", Form::choice, O::where, 3, 3},
};

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

enum class Kind { end, number, name, symbol };
struct Token {
  Kind kind = Kind::end;
  std::string_view text;
  size_t at = 0;
};

// Recursive descent in Python's precedence; every value is typed as soon as it is read.
class Parser {
 public:
  Parser(std::string_view text, std::span<const Operand> operands, Program& program)
      : text_(text), operands_(operands), builder_(program), used_(operands.size(), false) {
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
      if (!used_[i])
        fail(ErrorKind::value, "elementwise: argument ", operands_[i].name,
             " is not in the expression; leave it out");
    located(begin, [&] {
      builder_.finish(result, out_dtype);
      return result;
    });
  }

 private:
  [[noreturn]] void refuse(size_t at, ErrorKind kind, std::string_view what) const {
    fail(kind, "elementwise: ", what, " (column ", at + 1, ")", shown(text_, at));
  }
  [[noreturn]] void unexpected(std::string_view wanted) const {
    const std::string found = token_.kind == Kind::end ? "the end" : join("'", token_.text, "'");
    refuse(token_.at, ErrorKind::value, join("expected ", wanted, ", found ", found));
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
      for (const std::string_view two : {"**", "<=", ">=", "==", "!="})
        if (text_.substr(at).starts_with(two)) length = 2;
      if (length == 1 && std::string_view("+-*/(),<>").find(c) == std::string_view::npos)
        refuse(at, ErrorKind::value,
               join("'", c >= ' ' && c <= '~' ? c : '?',
                    "' has no meaning in an expression; expected a name, a number or one of ",
                    kSymbols));
    }
    token_.text = text_.substr(at, length);
  }

  void read_number(size_t at) {
    const char *begin = text_.data() + at, *end = text_.data() + text_.size();
    double real = 0;
    const auto [real_stop, real_code] = std::from_chars(begin, end, real);
    int64_t whole = 0;
    const auto [whole_stop, whole_code] = std::from_chars(begin, end, whole);
    token_ = {Kind::number, text_.substr(at, 1), at};
    if (real_stop == begin) refuse(at, ErrorKind::value, "a number needs a digit");
    const bool is_whole = whole_stop == real_stop;
    if (is_whole ? whole_code != std::errc() : real_code != std::errc())
      refuse(at, ErrorKind::value,
             is_whole ? "the number does not fit 64 bits; write it with a point"
                      : "the number does not fit float64; use one of at most 1.7e308");
    token_.text = text_.substr(at, size_t(real_stop - begin));
    number_ = is_whole ? Number(whole) : Number(real);
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
    const Value a = sum();
    if (!is_comparison()) return a;
    const Token sign = token_;
    next();
    const Value b = sum();
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

  Value sum() {
    Value a = product();
    while (is("+") || is("-")) {
      const Token sign = token_;
      next();
      const Value b = product();
      a = located(sign.at, [&] {
        return builder_.arithmetic(sign.text == "+" ? O::add : O::subtract, a, b);
      });
    }
    return a;
  }
  Value product() {
    Value a = factor();
    while (is("*") || is("/")) {
      const Token sign = token_;
      next();
      const Value b = factor();
      a = located(sign.at, [&] {
        return builder_.arithmetic(sign.text == "*" ? O::multiply : O::divide, a, b);
      });
    }
    return a;
  }
  // A sign binds less than a power: -x ** 2 is -(x ** 2).
  Value factor() {
    const Depth depth(*this);
    const size_t at = token_.at;
    if (accept("+")) return factor();
    if (accept("-")) {
      const Value x = factor();
      return located(at, [&] { return builder_.unary(O::negative, x); });
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
    std::string names;
    for (const Operand& o : operands_) names.append(names.empty() ? "" : ", ").append(o.name);
    refuse(name.at, ErrorKind::value,
           join("unknown name '", name.text, "' in the expression; there are ",
                names.empty() ? "none" : names));
  }

  Value call(const Token& name) {
    const auto function = std::ranges::find(kFunctions, name.text, &Function::name);
    const auto dtype = parse_dtype(name.text);
    if (function == std::end(kFunctions) && !dtype) unknown_function(name);
    const size_t least = dtype ? 1 : size_t(function->least),
                 most = dtype ? 1 : size_t(function->most);
    std::array<Value, 3> arguments;
    size_t count = 0;
    expect("(");
    while (!is(")")) {
      if (count > 0) expect(",");
      if (count == most) arity(name, least, most, count + 1);
      arguments[count++] = any();
    }
    if (count < least) arity(name, least, most, count);
    next();
    return located(name.at, [&] {
      return dtype ? builder_.cast(arguments[0], *dtype) : apply(*function, arguments, count);
    });
  }
  [[noreturn]] void arity(const Token& name, size_t least, size_t most, size_t got) const {
    const std::string count = least == most ? join(least) : join(least, " or ", most);
    refuse(name.at, ErrorKind::value,
           join(name.text, " takes ", count, most == 1 ? " argument, got " : " arguments, got ",
                got > most ? "more" : join(got)));
  }
  [[noreturn]] void unknown_function(const Token& name) const {
    std::string names;
    for (const Function& f : kFunctions) names.append(names.empty() ? "" : ", ").append(f.name);
    refuse(
        name.at, ErrorKind::value,
        join("unknown function '", name.text, "'; there are ", names, " and the names of dtypes"));
  }

  Value apply(const Function& f, const std::array<Value, 3>& x, size_t count) {
    switch (f.form) {
      case Form::unary:
        return builder_.unary(f.operation, x[0]);
      case Form::with_parameter: {
        if (count > 1 && !x[1].is_number())
          fail(ErrorKind::type, "the second argument of ", f.name,
               " must be a number, got an array");
        const auto given = [](auto v) { return double(v); };
        return builder_.unary(f.operation, x[0],
                              count > 1 ? std::visit(given, x[1].number) : f.parameter);
      }
      case Form::binary:
        return builder_.arithmetic(f.operation, x[0], x[1]);
      case Form::compare:
        return builder_.compare(f.operation, x[0], x[1]);
      case Form::swapped:
        return builder_.compare(f.operation, x[1], x[0]);
      case Form::all_true:
        return builder_.logical_and(x[0], x[1]);
      case Form::any_true:
        return builder_.logical_or(x[0], x[1]);
      case Form::negation:
        return builder_.logical_not(x[0]);
      case Form::choice:
        return builder_.where(x[0], x[1], x[2]);
      case Form::clip:
        return builder_.arithmetic(O::minimum, builder_.arithmetic(O::maximum, x[0], x[1]), x[2]);
      case Form::is_nan:
        return builder_.is_nan(x[0]);
    }
    fail(ErrorKind::internal, "form ", int(f.form), " is not known");
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

  std::string_view text_;
  std::span<const Operand> operands_;
  Builder builder_;
  std::vector<bool> used_;
  std::vector<Value> values_;
  Token token_;
  Number number_;
  int depth_ = 0;
};

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

void check_names(std::span<const Operand> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!is_name(operands[i].name))
      fail(ErrorKind::value, "elementwise: '", operands[i].name,
           "' is not a name of ASCII letters, digits and _");
    for (size_t j = 0; j < i; ++j)
      if (operands[i].name == operands[j].name)
        fail(ErrorKind::value, "elementwise: two arguments are named ", operands[i].name);
  }
}

}  // namespace

Program compile_expression(std::string_view text, std::span<const Operand> operands,
                           std::optional<DType> out_dtype) {
  check_names(operands);
  Program program;
  Parser(text, operands, program).parse(out_dtype);
  return program;
}

}  // namespace tensorcraft::kernel::elementwise
