// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/jit/entry.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/device/ptx/begin_kernel.h"

#include <cctype>
#include <charconv>
#include <cstring>

namespace tensorcraft::jit {
namespace {

// The value of field i as its name or its number.
std::string value_text(const ConfigField& field, const ConfigBytes& config, size_t i) {
  int32_t value = 0;
  std::memcpy(&value, config.data() + i * sizeof(value), sizeof(value));
  if (field.values.empty()) return std::to_string(value);
  if (value < 0 || size_t(value) >= field.values.size())
    fail(ErrorKind::internal, "jit: ", field.name, " has no value ", value);
  return std::string(field.values[size_t(value)]);
}

// "Config{.block_m = 64, .layout = decltype(Config::layout)::row_major}", with its whole name.
std::string config_text(const KernelKey& key) {
  const Rung& rung = *key.rung;
  std::string text = rung.config + "{";
  for (size_t i = 0; i < rung.fields.size(); ++i) {
    const ConfigField& field = rung.fields[i];
    text.append(i ? ", ." : ".").append(field.name).append(" = ");
    if (!field.values.empty()) text.append(join("decltype(", rung.config, "::", field.name, ")::"));
    text.append(value_text(field, key.config, i));
  }
  return text + "}";
}

// The line that defines the Config; empty if the rung has none.
std::string constant_text(const KernelKey& key) {
  if (key.rung->config.empty()) return {};
  return join("constexpr auto kConfig = ", config_text(key), ";\n");
}

// "tensorcraft::kernel::gemm::Tma::run<float, kConfig>"
std::string function_text(const KernelKey& key) {
  std::string arguments;
  for (int i = 0; i < key.num_types; ++i)
    arguments.append(i ? ", " : "").append(device_type(key.types[size_t(i)]));
  if (!key.rung->config.empty()) arguments.append(arguments.empty() ? "" : ", ").append("kConfig");
  return arguments.empty() ? key.rung->function : join(key.rung->function, "<", arguments, ">");
}

// The type of its only argument.
std::string params_text(std::string_view function) {
  return join("tensorcraft::KernelParams<decltype(&", function, ")>");
}

// The statement that waits for the kernels in front, which may still run (op::launch_plan): nothing
// before it touches memory. Empty before sm_90, which starts none early.
std::string begin_text(const Rung& rung, std::string_view arch) {
  constexpr std::string_view kRun = "::run";
  if (arch_number(arch) < 90) return {};
  if (!rung.function.ends_with(kRun)) return join(ptx::kBeginKernel, "\n  ");
  const std::string_view type =
      std::string_view(rung.function).substr(0, rung.function.size() - kRun.size());
  return join("if constexpr (!tensorcraft::kBeginsItself<", type, ">)\n    ", ptx::kBeginKernel,
              "\n  ");
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

// "bm64" for "block_m" and "64": the first letters of the words, letters and digits of the value.
std::string short_field(std::string_view name, std::string_view value) {
  std::string result;
  char before = '_';
  for (const char c : name) {
    if (before == '_') result += c;
    before = c;
  }
  for (const char c : value)
    if (std::isalnum(static_cast<unsigned char>(c))) result += c;
  return result;
}

void check(const KernelKey& key) {
  if (!key.rung) fail(ErrorKind::value, "jit: a kernel key needs a rung, got none");
  if (key.threads < 1 || key.threads > 1024) {
    fail(ErrorKind::value, "jit: ", key.rung->function, ": threads must be in [1, 1024], got ",
         key.threads);
  }
  if (key.num_types < 0 || key.num_types > kMaxKernelTypes) {
    fail(ErrorKind::value, "jit: ", key.rung->function, ": num_types must be in [0, ",
         kMaxKernelTypes, "], got ", key.num_types);
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

std::string entry_name(const Rung& rung) { return join(rung.op, "_", rung.name); }

std::string config_fields(const Rung& rung, const ConfigBytes& config, uint64_t which) {
  std::string text;
  for (size_t i = 0; i < rung.fields.size(); ++i)
    if (which >> i & 1)
      text.append(text.empty() ? "" : ", ")
          .append(rung.fields[i].name)
          .append(" = ")
          .append(value_text(rung.fields[i], config, i));
  return text;
}

std::string entry_text(const KernelKey& key, std::string_view arch) {
  check(key);
  const Rung& rung = *key.rung;
  const std::string fields = config_fields(rung, key.config);
  const std::string run = function_text(key), params = params_text(run);
  return join("// Auto-generated ", upper(rung.op), " kernel\n",
              "// Generator: TensorCraft\n",                                 //
              "// Target architecture: ", display_arch(arch), "\n",          //
              "// Precision: ", precision(key), "\n",                        //
              "// Configuration: ", fields.empty() ? "none" : fields, "\n",  //
              "#include \"", rung.header, "\"\n\n", constant_text(key),      //
              "extern \"C\" __global__ void __launch_bounds__(", key.threads, ", ", key.min_blocks,
              ")\n    ", entry_name(rung), "(const __grid_constant__ ", params, " p) {\n  ",
              begin_text(rung, arch), run, "(p);\n}\n");
}

std::string host_function(const KernelKey& key, std::string_view head) {
  check(key);
  const std::string run = function_text(key);
  return join(constant_text(key), head, "(const void* params) {\n  ", run, "(*static_cast<const ",
              params_text(run), "*>(params));\n}\n");
}

std::string host_text(const KernelKey& key) {
  check(key);
  const std::string head =
      join("extern \"C\" __attribute__((visibility(\"default\"))) void ", entry_name(*key.rung));
  return join(
      "// The entry of a rung for the emulator, generated by TensorCraft\n"
      "#include \"tensorcraft/device/host.h\"\nusing namespace tensorcraft;\n#include \"",
      key.rung->header, "\"\n\n", host_function(key, head));
}

std::string readable_name(const KernelKey& key) {
  check(key);
  std::string name = entry_name(*key.rung);
  for (int i = 0; i < key.num_types; ++i) name.append("_").append(to_string(key.types[size_t(i)]));
  for (size_t i = 0; i < key.rung->fields.size(); ++i) {
    const ConfigField& field = key.rung->fields[i];
    name.append("_").append(short_field(field.name, value_text(field, key.config, i)));
  }
  return name;
}

}  // namespace tensorcraft::jit
