// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/diagnose/fragments.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/cuda/device.hpp"
#include "tensorcraft/cuda/launch_kernel.hpp"
#include "tensorcraft/device/float8.cuh"
#include "tensorcraft/device/fragments.cuh"
#include "tensorcraft/jit/kernel.hpp"
#include "tensorcraft/runtime/memory/tensor.hpp"
#include "tensorcraft/simt/fragments.hpp"
#include "tensorcraft/simt/launch.hpp"

#include <functional>
#include <iomanip>
#include <random>
#include <sstream>

namespace tensorcraft::diagnose {
namespace {

size_t index(int i) { return size_t(i); }

namespace fragments = kernel::fragments;
using simt::Element;
using Words = std::vector<uint32_t>;

// ---- The maps as text

// One operand: lines of `columns` elements, `per_register` neighbours of which share a register.
struct Map {
  std::string title;
  char letter;
  int lines, columns, per_register, registers;
  std::function<Element(int lane, int reg, int i)> at;
};

Element swapped(const Element& e) { return {e.column, e.row}; }

std::vector<Map> mma_maps(const std::string& name, int per_register) {
  const int k = 8 * per_register;
  return {{name + " A 16 x " + std::to_string(k), 'a', 16, k, per_register, 4,
           [=](int lane, int reg, int i) { return simt::a_element(per_register, lane, reg, i); }},
          {name + " B " + std::to_string(k) + " x 8, by columns", 'b', 8, k, per_register, 2,
           [=](int lane, int reg, int i) {
             return swapped(simt::b_element(per_register, lane, reg, i));
           }}};
}

Map sum_map(const std::string& title, int columns) {
  return {title, 'd', 16, columns, 1, columns / 2, [](int lane, int reg, int) {
            return simt::c_element(lane, reg);
          }};
}

std::vector<Map> wmma_maps(const std::string& name, int per_register) {
  auto maps = mma_maps(name, per_register);
  maps[1] = {name + " B by columns",
             'b',
             16,
             8 * per_register,
             per_register,
             4,
             [=](int lane, int reg, int i) {
               return swapped(simt::wmma_b_element(per_register, lane, reg, i));
             }};
  return maps;
}

Map matrix_map(const std::string& title, bool transposed) {
  return {title, 'r', 8, 8, transposed ? 1 : 2, 1, [=](int lane, int, int i) {
            return simt::matrix_element(lane, i, transposed);
          }};
}

// A register is named once for each run of its elements in a line.
std::string text(const Map& map) {
  std::vector<std::vector<std::string>> cells(
      size_t(map.lines), std::vector<std::string>(size_t(map.columns / map.per_register)));
  // Transposed, the two elements of a register are one below the other.
  const int elements = map.letter == 'r' ? 2 : map.per_register;
  for (int lane = 0; lane < 32; ++lane)
    for (int reg = 0; reg < map.registers; ++reg)
      for (int i = 0; i < elements; ++i) {
        const Element e = map.at(lane, reg, i);
        std::string& cell = cells[size_t(e.row)][size_t(e.column / map.per_register)];
        cell = join(lane, ".", map.letter, reg);
        if (map.per_register < elements) cell += i ? "hi" : "lo";
      }
  std::ostringstream out;
  out << map.title << '\n';
  for (const auto& line : cells) {
    for (const std::string& cell : line) out << std::setw(7) << cell;
    out << '\n';
  }
  return out.str();
}

// ---- The instructions at work

// A kernel of device/fragments.cuh, what it gets and what it must give.
struct Trial {
  std::string instruction;
  jit::Rung rung;
  simt::Body body;
  int threads;
  int capability;  // of the device, at least
  Words in, expected;
};

template <void (*kKernel)(const fragments::Params&)>
void on_host(const void* params) {
  kKernel(*static_cast<const fragments::Params*>(params));
}

jit::Rung rung(std::string_view function) {
  const std::string name(function.substr(function.rfind(':') + 1));
  return {"fragments", name, "tensorcraft/device/fragments.cuh", std::string(function)};
}

using Encode = uint32_t (*)(int value);
uint32_t encode_f16(int x) { return f16(float(x)).bits; }
uint32_t encode_bf16(int x) { return bf16(float(x)).bits; }
uint32_t encode_float(int x) { return bit_cast<uint32_t>(float(x)); }
uint32_t encode_e4m3(int x) { return e4m3(float(x)).bits; }
uint32_t encode_s8(int x) { return uint8_t(x); }
uint32_t encode_int(int x) { return uint32_t(x); }

std::vector<int> small_numbers(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> numbers(size_t(count), 0);
  for (int& n : numbers) n = int(random() % 5) - 2;
  return numbers;
}

uint32_t pack(int per_register, const std::function<uint32_t(int)>& element) {
  uint32_t word = 0;
  for (int i = 0; i < per_register; ++i) word |= element(i) << (i * 32 / per_register);
  return word;
}

// Small integers, whose product every lane must have in the registers that the maps say.
Trial product(const char* name, std::string_view function, simt::Body body, int per_register,
              Encode encode, Encode encode_sum, int capability = 80) {
  const int k = 8 * per_register;
  const auto a = small_numbers(16 * k, 1), b = small_numbers(k * 8, 2), c = small_numbers(128, 3);
  Trial trial{name, rung(function), body, 32, capability, {}, {}};
  for (int lane = 0; lane < 32; ++lane) {
    for (int reg = 0; reg < 4; ++reg)
      trial.in.push_back(pack(per_register, [&](int i) {
        const Element e = simt::a_element(per_register, lane, reg, i);
        return encode(a[index(e.row * k + e.column)]);
      }));
    for (int reg = 0; reg < 2; ++reg)
      trial.in.push_back(pack(per_register, [&](int i) {
        const Element e = simt::b_element(per_register, lane, reg, i);
        return encode(b[index(e.row * 8 + e.column)]);
      }));
    for (int reg = 0; reg < 4; ++reg) {
      const Element e = simt::c_element(lane, reg);
      int sum = c[index(e.row * 8 + e.column)];
      trial.in.push_back(encode_sum(sum));
      for (int l = 0; l < k; ++l) sum += a[index(e.row * k + l)] * b[index(l * 8 + e.column)];
      trial.expected.push_back(encode_sum(sum));
    }
  }
  return trial;
}

Trial matrices(const char* name, std::string_view function, simt::Body body, bool transposed) {
  Trial trial{name, rung(function), body, 32, 80, {}, {}};
  const auto numbered = [](int element) { return uint32_t(element); };
  for (int word = 0; word < 128; ++word)
    trial.in.push_back(pack(2, [&](int i) { return numbered(word * 2 + i); }));
  for (int lane = 0; lane < 32; ++lane)
    for (int matrix = 0; matrix < 4; ++matrix)
      trial.expected.push_back(pack(2, [&](int i) {
        const Element e = simt::matrix_element(lane, i, transposed);
        return numbered(matrix * 64 + e.row * 8 + e.column);
      }));
  return trial;
}

// Lines of 64 bytes: A's and C's rows, B's columns.
Trial wmma(const char* name, std::string_view function, simt::Body body, int per_register,
           Encode encode) {
  const int k = 8 * per_register, line = 16 * per_register;
  const auto a = small_numbers(16 * line, 4), b = small_numbers(16 * line, 5),
             c = small_numbers(256, 6);
  Trial trial{name, rung(function), body, 32, 80, {}, {}};
  for (const auto* operand : {&a, &b})
    for (int word = 0; word < 256; ++word)
      trial.in.push_back(pack(
          per_register, [&](int i) { return encode((*operand)[index(word * per_register + i)]); }));
  for (const int value : c) trial.in.push_back(encode_float(value));
  for (int lane = 0; lane < 32; ++lane) {
    for (int reg = 0; reg < 4; ++reg)
      trial.expected.push_back(pack(per_register, [&](int i) {
        const Element e = simt::a_element(per_register, lane, reg, i);
        return encode(a[index(e.row * line + e.column)]);
      }));
    for (int reg = 0; reg < 4; ++reg)
      trial.expected.push_back(pack(per_register, [&](int i) {
        const Element e = simt::wmma_b_element(per_register, lane, reg, i);
        return encode(b[index(e.column * line + e.row)]);
      }));
    for (int reg = 0; reg < 8; ++reg) {
      const Element e = simt::c_element(lane, reg);
      trial.expected.push_back(encode_float(c[index(e.row * 16 + e.column)]));
    }
    for (int reg = 0; reg < 16; ++reg) {  // of WMMA, then of two mma.sync
      const Element e = simt::c_element(lane, reg % 8);
      int sum = c[index(e.row * 16 + e.column)];
      for (int l = 0; l < k; ++l) sum += a[index(e.row * line + l)] * b[index(e.column * line + l)];
      trial.expected.push_back(encode_float(sum));
    }
  }
  return trial;
}

// D of m64n16k16: A's registers by the map of mma.sync, warp w having rows 16 w and on.
Trial wgmma() {
  const auto a = small_numbers(64 * 16, 7), b = small_numbers(16 * 16, 8);
  Trial trial{"wgmma m64n16k16 bf16",
              rung("tensorcraft::kernel::fragments::wgmma_bf16"),
              on_host<fragments::wgmma_bf16>,
              128,
              90,
              {},
              {}};
  for (int thread = 0; thread < 128; ++thread)
    for (int reg = 0; reg < 4; ++reg)
      trial.in.push_back(pack(2, [&](int i) {
        const Element e = simt::a_element(2, thread % 32, reg, i);
        return encode_bf16(a[index((thread / 32 * 16 + e.row) * 16 + e.column)]);
      }));
  for (int word = 0; word < 128; ++word)
    trial.in.push_back(pack(2, [&](int i) { return encode_bf16(b[index(word * 2 + i)]); }));
  for (int thread = 0; thread < 128; ++thread)
    for (int reg = 0; reg < 8; ++reg) {
      const Element e = simt::c_element(thread % 32, reg);
      const int row = thread / 32 * 16 + e.row;
      int sum = 0;
      for (int l = 0; l < 16; ++l) sum += a[index(row * 16 + l)] * b[index(e.column * 16 + l)];
      trial.expected.push_back(encode_float(sum));
    }
  return trial;
}

const std::vector<Trial>& trials() {
  static const std::vector<Trial> all{
      product("mma.sync m16n8k16 f16", "tensorcraft::kernel::fragments::mma_f16",
              on_host<fragments::mma_f16>, 2, encode_f16, encode_float),
      product("mma.sync m16n8k16 bf16", "tensorcraft::kernel::fragments::mma_bf16",
              on_host<fragments::mma_bf16>, 2, encode_bf16, encode_float),
      product("mma.sync m16n8k8 tf32", "tensorcraft::kernel::fragments::mma_tf32",
              on_host<fragments::mma_tf32>, 1, encode_float, encode_float),
      product("mma.sync m16n8k32 e4m3", "tensorcraft::kernel::fragments::mma_e4m3",
              on_host<fragments::mma_e4m3>, 4, encode_e4m3, encode_float, 89),
      product("mma.sync m16n8k32 s8", "tensorcraft::kernel::fragments::mma_s8",
              on_host<fragments::mma_s8>, 4, encode_s8, encode_int),
      wmma("WMMA m16n16k8 tf32", "tensorcraft::kernel::fragments::wmma_tf32",
           on_host<fragments::wmma_tf32>, 1, encode_float),
      wmma("WMMA m16n16k16 f16", "tensorcraft::kernel::fragments::wmma_f16",
           on_host<fragments::wmma_f16>, 2, encode_f16),
      matrices("ldmatrix.x4", "tensorcraft::kernel::fragments::ldmatrix",
               on_host<fragments::ldmatrix>, false),
      matrices("ldmatrix.x4.trans", "tensorcraft::kernel::fragments::ldmatrix_trans",
               on_host<fragments::ldmatrix_trans>, true),
      wgmma()};
  return all;
}

Words run_on_gpu(const Trial& trial, Device device) {
  const auto kernel = jit::get_kernel({.rung = &trial.rung, .threads = trial.threads}, device);
  Words out(trial.expected.size());
  Tensor gpu_in(DType::int32, {int64_t(trial.in.size())}, device);
  const Tensor gpu_out(DType::int32, {int64_t(out.size())}, device);
  gpu_in.copy_from_host(trial.in.data(), gpu_in.nbytes());
  LaunchKernel({1}, {uint32_t(trial.threads)}, current_stream(device.index))(
      *kernel, fragments::Params{gpu_in.data_as<const uint32_t>(), gpu_out.data_as<uint32_t>()});
  gpu_out.copy_to_host(out.data(), gpu_out.nbytes());
  return out;
}

Words run_on_host(const Trial& trial) {
  Words out(trial.expected.size());
  const fragments::Params params{trial.in.data(), out.data()};
  simt::launch({.name = trial.instruction, .block = {unsigned(trial.threads)}}, trial.body,
               &params);
  return out;
}

FragmentCheck compare(const Trial& trial, const Words& got) {
  FragmentCheck result{trial.instruction, int(got.size()), 0, {}};
  const size_t per_lane = got.size() / size_t(trial.threads);
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == trial.expected[i]) continue;
    if (result.wrong++ == 0)
      result.first = join("thread ", i / per_lane, ", register ", i % per_lane, ": 0x", std::hex,
                          got[i], " instead of 0x", trial.expected[i]);
  }
  return result;
}

}  // namespace

std::string describe_fragments() {
  std::string all = "Each entry is LANE.REGISTER; neighbours in a register share an entry.\n";
  const auto add = [&](const std::vector<Map>& maps) {
    for (const Map& map : maps) all += "\n" + text(map);
  };
  add(mma_maps("mma.sync m16n8k16 f16, bf16:", 2));
  add(mma_maps("mma.sync m16n8k8 tf32:", 1));
  add(mma_maps("mma.sync m16n8k32 e4m3, e5m2, s8, u8:", 4));
  add({sum_map("mma.sync: C and D 16 x 8", 8)});
  add(wmma_maps("WMMA m16n16k8 tf32, as two mma.sync:", 1));
  add(wmma_maps("WMMA m16n16k16 f16, as two mma.sync (registers 4 to 7 repeat 0 to 3):", 2));
  add({sum_map("WMMA: C and D 16 x 16", 16)});
  add({matrix_map("ldmatrix: one 8 x 8 matrix", false),
       matrix_map("ldmatrix.trans: one 8 x 8 matrix, the lower and the upper half", true)});
  add(
      {sum_map("wgmma: D, rows of the first warp, columns 0 to 15; 8 columns on, register + 4; "
               "the next warp has the next 16 rows",
               16)});
  return all;
}

std::vector<FragmentCheck> verify_fragments(Device device) {
  std::vector<FragmentCheck> results;
  const bool is_gpu = device.is_cuda();
  const DeviceInfo info = is_gpu ? device_info(device) : device_info_of_arch("sm_90a");
  for (const Trial& trial : trials()) {
    const bool is_wgmma = trial.capability == 90;
    if (is_wgmma ? !info.has_wgmma() : info.compute_capability < trial.capability) continue;
    results.push_back(compare(trial, is_gpu ? run_on_gpu(trial, device) : run_on_host(trial)));
  }
  return results;
}

}  // namespace tensorcraft::diagnose
