// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/entry.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/ptx/begin_kernel.h"

#include <cctype>
#include <charconv>

namespace tensorcraft::jit {
namespace {

// The last two names of "tensorcraft::kernel::gemm::block_tiled".
struct FunctionName {
  std::string_view op, rung;
};

FunctionName split_function(std::string_view function) {
  const size_t last = function.rfind("::");
  if (last == function.npos || last == 0) {
    fail(ErrorKind::value, "jit: rung function '", function,
         "' must be qualified, as in tensorcraft::kernel::gemm::naive");
  }
  const std::string_view scope = function.substr(0, last);
  const size_t before = scope.rfind("::");
  return {before == scope.npos ? scope : scope.substr(before + 2), function.substr(last + 2)};
}

std::string config_text(const KernelKey& key) {
  return key.rung->config_text ? key.rung->config_text(key.config.data()) : std::string();
}

// The type of a kernel's parameter, with the Config in its place.
std::string params_text(const Rung& rung, std::string_view config) {
  constexpr std::string_view kPlace = ", Config>";
  std::string_view params = rung.params;
  if (!params.ends_with(kPlace)) return std::string(params);
  params.remove_suffix(kPlace.size());
  return join(params, ", ", config, ">");
}

// "block_m = 64, block_n = 64" out of "Config{.block_m = 64, .block_n = 64}".
std::string config_fields(std::string_view text) {
  const size_t open = text.find('{'), close = text.rfind('}');
  if (open == text.npos || close == text.npos || close < open) return {};
  std::string fields;
  for (const char c : text.substr(open + 1, close - open - 1)) {
    const bool designator = c == '.' && (fields.empty() || fields.back() == ' ');
    if (!designator) fields += c;
  }
  return fields;
}

std::string precision(const KernelKey& key) {
  std::string text;
  for (int i = 0; i < key.num_types; ++i) {
    text.append(i ? ", " : "").append(to_string(key.types[size_t(i)]));
  }
  return text.empty() ? "none" : text;
}

// "sm_90a" as people write it: "SM90a".
std::string display_arch(std::string_view arch) {
  return arch.starts_with("sm_") ? "SM" + std::string(arch.substr(3)) : std::string(arch);
}

std::string upper(std::string_view text) {
  std::string result;
  for (const unsigned char c : text) result += char(std::toupper(c));
  return result;
}

// Letters and digits of a value, its namespaces dropped: "Layout::nn" gives "nn".
std::string short_value(std::string_view value) {
  if (const size_t scope = value.rfind("::"); scope != value.npos) value.remove_prefix(scope + 2);
  std::string result;
  for (const unsigned char c : value) {
    if (std::isalnum(c)) result += char(c);
  }
  return result;
}

// "bm64" for "block_m = 64".
std::string short_field(std::string_view field) {
  const size_t equals = field.find('=');
  if (equals == field.npos) return short_value(field);
  std::string result;
  bool word_begins = true;
  for (const char c : field.substr(0, equals)) {
    const bool in_word = std::isalnum(static_cast<unsigned char>(c));
    if (in_word && word_begins) result += c;
    word_begins = !in_word;
  }
  return result + short_value(field.substr(equals + 1));
}

void check(const KernelKey& key) {
  if (!key.rung) fail(ErrorKind::value, "jit: a kernel key needs a rung, got none");
  if (key.threads < 1 || key.threads > 1024) {
    fail(ErrorKind::value, "jit: ", key.rung->function, ": threads must be in [1, 1024], got ",
         key.threads);
  }
  if (key.num_types < 0 || key.num_types > kMaxTypes) {
    fail(ErrorKind::value, "jit: ", key.rung->function, ": num_types must be in [0, ", kMaxTypes,
         "], got ", key.num_types);
  }
}

}  // namespace

int arch_number(std::string_view arch) {
  const size_t digits = arch.starts_with("sm_") ? 3 : arch.npos;
  int number = 0;
  if (digits != arch.npos) {
    std::from_chars(arch.data() + digits, arch.data() + arch.size(), number);
  }
  if (number <= 0) {
    fail(ErrorKind::value, "jit: unknown architecture '", arch,
         "'; expected a name such as sm_80, sm_90a or sm_120a");
  }
  return number;
}

std::string_view device_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float";
    case DType::float16:
      return "tensorcraft::f16";
    case DType::bfloat16:
      return "tensorcraft::bf16";
    case DType::float8_e4m3fn:
      return "tensorcraft::e4m3";
    case DType::float8_e5m2:
      return "tensorcraft::e5m2";
    case DType::int8:
      return "int8_t";
    case DType::int16:
      return "int16_t";
    case DType::int32:
      return "int32_t";
    case DType::int64:
      return "int64_t";
    case DType::uint8:
      return "uint8_t";
    case DType::bool_:
      return "bool";
  }
  fail(ErrorKind::internal, "jit: no device type for dtype ", int(dtype));
}

std::string entry_name(const Rung& rung) {
  const auto [op, name] = split_function(rung.function);
  return join(op, "_", name);
}

std::string entry_text(const KernelKey& key, std::string_view arch) {
  check(key);
  const Rung& rung = *key.rung;
  const std::string config = config_text(key);
  const std::string fields = config_fields(config);
  std::string arguments;
  for (int i = 0; i < key.num_types; ++i) {
    arguments.append(i ? ", " : "").append(device_type(key.types[size_t(i)]));
  }
  if (!config.empty()) arguments.append(arguments.empty() ? "" : ", ").append(config);
  if (!arguments.empty()) arguments = "<" + arguments + ">";
  // The kernel in front may still run (op::launch_plan): nothing before this touches memory.
  const std::string begin = arch_number(arch) >= 90 ? join(ptx::kBeginKernel, "\n  ") : "";
  return join("// Auto-generated ", upper(split_function(rung.function).op), " kernel\n",
              "// Generator: TensorCraft\n",                                 //
              "// Target architecture: ", display_arch(arch), "\n",          //
              "// Precision: ", precision(key), "\n",                        //
              "// Configuration: ", fields.empty() ? "none" : fields, "\n",  //
              "#include \"", rung.header, "\"\n\n",                          //
              "extern \"C\" __global__ void __launch_bounds__(", key.threads, ", ", key.min_blocks,
              ")\n    ", entry_name(rung), "(const __grid_constant__ ", params_text(rung, config),
              " p) {\n  ", begin, rung.function, arguments, "(p);\n}\n");
}

std::string readable_name(const KernelKey& key) {
  check(key);
  std::string name = entry_name(*key.rung);
  for (int i = 0; i < key.num_types; ++i) {
    name.append("_").append(to_string(key.types[size_t(i)]));
  }
  std::string fields = config_fields(config_text(key));
  for (std::string_view rest = fields; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string field = short_field(rest.substr(0, comma));
    if (!field.empty()) name.append("_").append(field);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return name;
}

}  // namespace tensorcraft::jit
