// SPDX-License-Identifier: Apache-2.0
#include "operator_text.hpp"

#include "tensorcraft/ops/all.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

namespace tensorcraft::python {
namespace {

using op::Description;
using op::OutputInfo;
using op::Parameter;
using op::ParameterKind;

constexpr size_t kColumns = 100;  // of a docstring

// Parameters whose type or default is another than the registry's, by name: ": Literal[True]".
using Overrides = std::map<std::string_view, std::string>;

// "a", "b"
std::string quoted(const std::vector<std::string_view>& names) {
  std::string s;
  for (const auto name : names) s.append(s.empty() ? "\"" : ", \"").append(name).append("\"");
  return s;
}

std::string literal(const std::vector<std::string_view>& names) {
  return "Literal[" + quoted(names) + "]";
}

std::vector<std::string_view> choices_of(const Parameter& p) {
  std::vector<std::string_view> names;
  for (const auto name : p.choices)
    if (name != "none" || !p.optional) names.push_back(name);  // else None says it
  return names;
}

std::vector<std::string_view> variants_of(const Description& d) {
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const auto& v : d.variants) add(v.name);
  for (const auto& v : d.variants) add(v.alias);
  return names;
}

std::string python_type(const Parameter& p) {
  constexpr const char* kIntegers = "int | Sequence[int]";
  const auto type = [&]() -> std::string {
    switch (p.kind) {
      case ParameterKind::boolean:
        return p.or_tensor ? "bool | ArrayLike" : "bool";
      case ParameterKind::integer:
        return "int";
      case ParameterKind::integers:
        return kIntegers;
      case ParameterKind::integer_lists:
        return std::string(kIntegers) + " | Sequence[Sequence[int]]" +
               (p.choices.empty() ? "" : " | " + literal(choices_of(p)));
      case ParameterKind::number:
        return p.or_tensor ? "ArrayLike" : "float";
      case ParameterKind::dtype:
        return "DTypeLike";
      case ParameterKind::text:
        return "str";
      case ParameterKind::settings:
        return "Mapping[str, int | str]";
      case ParameterKind::choice:
        return literal(choices_of(p));
      case ParameterKind::tensor:
      case ParameterKind::named_values:
        return "ArrayLike";
    }
    return "Any";
  }();
  return p.optional ? type + " | None" : type;
}

// The parameter that takes all other keyword arguments, which then are the inputs; null: none does.
const Parameter* named_values(const Description& d) {
  for (const Parameter& p : d.options)
    if (p.kind == ParameterKind::named_values) return &p;
  return nullptr;
}

std::string default_of(const Parameter& p) {
  const bool is_name = p.kind == ParameterKind::dtype && p.default_value != "None";
  return is_name ? '"' + p.default_value + '"' : p.default_value;
}

// The inputs that have names of their own.
std::vector<Parameter> own_inputs(const Description& d) {
  std::vector<Parameter> own;
  std::ranges::copy_if(d.inputs, std::back_inserter(own), [](const auto& p) { return !p.named; });
  return own;
}

// In a program the types are texts, which are read only if someone asks for them.
enum class Types { texts, code };

// Returns the type of out= for a call that has so many results.
std::string out_type(const std::string& array, size_t results) {
  std::string entries;
  for (size_t i = 0; i < results; ++i) entries += (i ? ", " : "") + array + " | None";
  return results > 1 ? array + " | tuple[" + entries + "] | None" : array + " | None";
}

std::string signature(const Description& d, Types types, const Overrides& own = {}) {
  const std::string quote = types == Types::texts ? "'" : "";
  std::string s;
  const auto add = [&](std::string_view name, const std::string& type, const std::string& value) {
    if (!s.empty()) s += ", ";
    s.append(name);
    const auto found = own.find(name);
    s += found != own.end() ? found->second
                            : ": " + quote + type + quote + (value.empty() ? "" : " = " + value);
  };
  const Parameter* const named = named_values(d);
  const auto own_arrays = own_inputs(d);
  const bool all_named = own_arrays.empty();  // so that arrays may have any name
  for (const auto& p : own_arrays) add(p.name, python_type(p), {});
  for (const auto& p : d.options)
    if (p.positional) add(p.name, python_type(p), all_named ? "" : default_of(p));
  s += all_named ? ", /, *" : ", *";
  for (const auto& p : d.options)
    if (!p.positional && &p != named) add(p.name, python_type(p), default_of(p));
  // How many results there are depends on the options.
  const std::string tuple = d.outputs.size() > 1 ? "tuple[ArrayLike | None, ...] | " : "";
  add("out", "ArrayLike | " + tuple + "None", "None");
  add("stream", "StreamLike | None", "None");
  add("variant", literal(variants_of(d)) + " | None", "None");
  add("device", "str | None", "None");
  if (!named) return s;
  const auto found = own.find(named->name);
  return s + ", **" + std::string(named->name) +
         (found != own.end() ? found->second : ": " + quote + python_type(*named) + quote);
}

// An option that a call gives or leaves out, and which results it then has beyond the first.
struct Outcome {
  std::map<std::string_view, bool> options;
  std::vector<const OutputInfo*> extra;
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::vector<Outcome> outcomes_of(const Description& d) {
  const auto option_of = [](std::string_view word) {
    return word.substr(word.starts_with('!') ? 1 : 0);
  };
  std::vector<std::string_view> options;
  for (size_t i = 1; i < d.outputs.size(); ++i)
    for (const auto word : words_of(d.outputs[i].when))
      if (std::ranges::find(options, option_of(word)) == options.end())
        options.push_back(option_of(word));
  std::vector<Outcome> all(size_t(1) << options.size());
  for (size_t bits = 0; bits < all.size(); ++bits) {
    for (size_t i = 0; i < options.size(); ++i) all[bits].options[options[i]] = bits >> i & 1;
    for (size_t i = 1; i < d.outputs.size(); ++i) {
      const auto words = words_of(d.outputs[i].when);
      if (std::ranges::all_of(words, [&](std::string_view word) {
            return all[bits].options[option_of(word)] != word.starts_with('!');
          }))
        all[bits].extra.push_back(&d.outputs[i]);
    }
  }
  return all;
}

// "TopkResult"; "LayerNormMeanRstdResult" if the operator has results of several forms.
std::string result_class(const Description& d, const std::vector<const OutputInfo*>& extra) {
  std::set<std::vector<const OutputInfo*>> forms;
  for (const Outcome& o : outcomes_of(d))
    if (!o.extra.empty()) forms.insert(o.extra);
  std::string words(d.name);
  if (forms.size() > 1)
    for (const OutputInfo* o : extra) words.append("_").append(o->name);
  std::string name;
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] != '_')
      name += i == 0 || words[i - 1] == '_' ? char(std::toupper(words[i])) : words[i];
  return name + "Result";
}

// Each class of results once, with its fields in their order.
std::map<std::string, std::vector<const OutputInfo*>> classes_of(const Description& d) {
  std::map<std::string, std::vector<const OutputInfo*>> classes;
  for (const Outcome& o : outcomes_of(d)) {
    if (o.extra.empty()) continue;
    auto& fields = classes[result_class(d, o.extra)];
    fields = {&d.outputs[0]};
    fields.insert(fields.end(), o.extra.begin(), o.extra.end());
  }
  return classes;
}

// The types that an outcome asks for; nullopt if no Python signature can say them.
std::optional<Overrides> overrides_of(const Description& d, const Outcome& outcome) {
  Overrides own;
  bool has_default = false;
  for (const Parameter& p : d.inputs)
    if (const auto found = outcome.options.find(p.name); found != outcome.options.end())
      own[p.name] = found->second ? ": ArrayLike" : ": None";
  for (const Parameter& p : d.options) {
    const auto found = outcome.options.find(p.name);
    const bool is_given = found != outcome.options.end() && found->second;
    if (p.positional && is_given && has_default) return std::nullopt;
    has_default |= p.positional && !p.default_value.empty() && !is_given;
    if (found == outcome.options.end()) continue;
    if (p.kind == ParameterKind::boolean)
      own[p.name] = is_given ? ": Literal[True]" : ": Literal[False] = False";
    else
      own[p.name] = is_given ? ": ArrayLike" : ": None = None";
  }
  return own;
}

// May a call name a dtype of the result that NumPy lacks?
bool names_result_dtype(const Description& d) {
  return std::ranges::any_of(
      d.options, [](const Parameter& p) { return p.kind == ParameterKind::dtype && !p.optional; });
}

// Is there a product by packed weights, packed_NAME, that its name calls too?
bool takes_packed_weight(const Description& d) {
  const std::string packed = "packed_" + std::string(d.name);
  return std::ranges::any_of(
      operators(), [&](const op::Operator* o) { return o->description().name == packed; });
}

// One overload for each kind of array and outcome, then the signature itself, for all else.
void write_stub(std::ostream& out, const Description& d) {
  const std::string name(d.name);
  const Parameter* const named = named_values(d);
  const auto add = [&](Overrides own, const std::string& result, const char* note = "") {
    if (takes_packed_weight(d)) own.emplace(d.inputs[1].name, ": ArrayLike | PackedWeight");
    out << "@overload\ndef " << name << "(" << signature(d, Types::code, own) << ") -> " << result
        << ": ..." << note << '\n';
  };
  const bool all_named = own_inputs(d).empty();
  // Numbers alone would fit both kinds of array.
  const char* const note = all_named ? "  # type: ignore[overload-overlap]" : "";
  for (const std::string array : {"Tensor", "NDArray[Any]"}) {
    const bool is_known = array == "Tensor" || !names_result_dtype(d);
    for (const Outcome& outcome : outcomes_of(d)) {
      auto own = overrides_of(d, outcome);
      if (!own) continue;
      const std::string first = is_known ? array : "Any";
      const std::string result =
          outcome.extra.empty() ? first : result_class(d, outcome.extra) + "[" + first + "]";
      own->emplace("out", ": " + out_type(array, 1 + outcome.extra.size()) + " = None");
      own->emplace(all_named ? named->name : d.inputs[0].name,
                   ": " + array + (all_named ? " | Number" : ""));
      add(*own, result, array == "Tensor" ? note : "");
      if (named || d.group != "elementwise" || d.inputs.size() != 2) continue;
      (*own)[d.inputs[0].name] = ": Number";
      (*own)[d.inputs[1].name] = ": " + array;
      add(*own, result);
    }
  }
  add({}, "Any");
}

// `text` in lines of at most kColumns: the first after `begin`, the others after `indent` blanks.
std::string wrapped(std::string_view text, std::string_view begin, size_t indent) {
  std::string all(begin);
  size_t column = begin.size();
  bool is_first = true;
  for (const std::string_view word : words_of(text)) {
    if (!is_first && column + 1 + word.size() > kColumns) {
      all.append("\n").append(indent, ' ');
      column = indent;
    } else if (!is_first) {
      all += ' ';
      ++column;
    }
    all.append(word);
    column += word.size();
    is_first = false;
  }
  return all + "\n";
}

std::string docstring(const Description& d, const std::string& example) {
  constexpr size_t kText = 4, kEntry = 8;
  const std::string text(kText, ' '), entry(kEntry, ' '), quotes = "\"\"\"";
  std::string s = wrapped(d.summary, text + quotes, kText) + "\n" + wrapped(d.details, text, kText);
  std::string aliases;
  for (const auto a : d.aliases) aliases.append(aliases.empty() ? "tc." : ", tc.").append(a);
  if (!aliases.empty()) s += "\n" + wrapped("Also called " + aliases + ".", text, kText);
  s += "\n    Args:\n";
  const auto add = [&](std::string_view name, std::string_view doc) {
    s += wrapped(std::string(name) + ": " + std::string(doc) + ".", entry, kEntry + 4);
  };
  for (const auto& p : own_inputs(d)) add(p.name, documented(p));
  for (const auto& p : d.options) add(p.name, documented(p));
  add("out",
      d.outputs.size() > 1
          ? "array to write the first result into, or a tuple with an array or None for each "
            "result; what is given is returned"
          : "array to write the result into; it is returned");
  add("stream",
      "tc.Stream, integer handle or object with __cuda_stream__; default: the framework's current "
      "stream. Work is enqueued there and not waited for");
  add("variant", "force one of " + quoted(variants_of(d)) + "; default: the best that accepts");
  add("device", "where host arrays are computed; default: tc.default_device()");
  s += "\n    Returns:\n";
  for (const auto& o : d.outputs) add(o.name, o.doc);
  s += "\n    Raises:\n";
  add("ValueError, TypeError",
      "an argument does not fit; the text says which and what is accepted");
  add("NotImplementedError", "no variant accepts; the text has every reason");
  if (!example.empty()) s += "\n    Example:\n" + entry + ">>> " + example + "\n";
  return s + text + quotes + "\n";
}

std::string tuple_of(const std::vector<Parameter>& parameters) {
  std::string s = "(";
  for (const auto& p : parameters) s.append(p.name).append(", ");
  return s.size() > 1 ? s.substr(0, s.size() - 1) + ")" : "()";
}

// Text as Python writes it.
std::string literal(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    s += c;
  }
  return s + '"';
}

void write_classes(std::ostream& py, std::ostream& pyi, const Description& d) {
  for (const auto& [name, fields] : classes_of(d)) {
    py << name << " = _result_class(\"" << d.name << "\", \"" << name << '"';
    pyi << "class " << name << "(NamedTuple, Generic[_Array]):\n";
    for (const OutputInfo* o : fields) {
      py << ", " << o->name << '=' << literal(o->doc);
      pyi << "    " << o->name << ": _Array\n";
    }
    py << ")\n\n\n";
  }
}

}  // namespace

void write_function(std::ostream& py, std::ostream& pyi, const Description& d, size_t index,
                    const std::string& example) {
  write_classes(py, pyi, d);
  py << "def " << d.name << "(" << signature(d, Types::texts) << ") -> 'Any':\n"
     << docstring(d, example) << "    return _call(" << index << ", " << tuple_of(own_inputs(d))
     << ", " << tuple_of(d.options) << ", out, stream, variant, device)\n\n\n";
  write_stub(pyi, d);
  for (const auto alias : d.aliases) {
    py << alias << " = " << d.name << "\n\n\n";
    pyi << alias << " = " << d.name << "\n";
  }
}

void write_row(std::ostream& py, const Description& d, size_t index) {
  py << "    \"" << d.name << "\": Operator(" << index << ", \"" << d.name << "\", \"" << d.group
     << "\", " << d.name << ", (";
  for (const auto& t : d.dtypes) py << '"' << t << "\", ";
  py << "), (";
  for (const auto& v : d.variants)
    py << "(\"" << v.name << "\", \"" << to_string(v.device) << "\", \"" << v.idea << "\"), ";
  py << "), " << d.inputs.size() << ", (";
  for (const auto& p : d.options) py << '"' << p.name << "\", ";
  py << "), \"" << d.summary << "\", (";
  for (const auto a : d.aliases) py << '"' << a << "\", ";
  py << ")),\n";
}

void write_results(std::ostream& py, const Description& d) {
  for (const auto& [name, fields] : classes_of(d)) {
    py << "    (\"" << d.name << '"';
    for (const OutputInfo* o : fields) py << ", \"" << o->name << '"';
    py << "): " << name << ",\n";
  }
}

std::vector<std::string> result_names(const Description& d) {
  std::vector<std::string> names;
  for (const auto& [name, fields] : classes_of(d)) names.push_back(name);
  return names;
}

std::string text_of_added(const Description& d, size_t index) {
  std::ostringstream py, stub;
  write_function(py, stub, d, index, "");
  py << "OPERATORS.update({\n";
  write_row(py, d, index);
  py << "})\nRESULTS.update({\n";
  write_results(py, d);
  py << "})\n";
  return py.str();
}

}  // namespace tensorcraft::python
