// SPDX-License-Identifier: Apache-2.0
// Caches of keys and values in pageable memory of the host beside a GPU, whose driver is in host
// memory and runs kernels as late as it may.
#include "tensorcraft/cuda/memory.hpp"
#include "tensorcraft/ops/all.hpp"
#include "tensorcraft/ops/transfer_hicache/transfer_hicache.hpp"
#include "tensorcraft/runtime/memory/pinned.hpp"
#include "tests/stress/stress.hpp"
#include "tests/support/simt_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace tensorcraft {
namespace {

using test::SimtDriver;
const Device kGpu = Device::cuda(0), kHost = Device::cpu();

// Runs in a process of its own; what `work` returns is wrong.
void expect_nothing_wrong(const std::function<std::string()>& work) {
  ASSERT_EQ(test::kCompilerIsSet, 0);
  const test::TemporaryFolder folder;
  const std::string log = folder.file("log"), report = folder.file("report");
  const auto run = [&] {
    test::write_file(report, work());
    return 0;
  };
  ASSERT_EQ(test::Child(log, run).wait(std::chrono::minutes(5)), 0) << test::read_file(log);
  EXPECT_EQ(test::read_file(report), "") << test::read_file(log);
}

Tensor random_bytes(const Dims& shape, unsigned seed) {
  Tensor t(DType::uint8, shape);
  std::mt19937 random(seed);
  std::generate_n(t.data_as<uint8_t>(), t.size(), [&] { return uint8_t(random()); });
  return t;
}

Tensor tokens(int64_t n, int64_t of, unsigned seed, DType dtype) {
  std::vector<int64_t> all(static_cast<size_t>(of));
  std::iota(all.begin(), all.end(), 0);
  std::ranges::shuffle(all, std::mt19937(seed));
  all.resize(size_t(n));
  if (dtype == DType::int64) return Tensor::from(all, {n});
  return Tensor::from(std::vector<int32_t>(all.begin(), all.end()), {n});
}

bool are_equal(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(kHost), y = b.to(kHost);
  return x.nbytes() == y.nbytes() && std::memcmp(x.data(), y.data(), x.nbytes()) == 0;
}

Dims shape_of(HicacheLayout layout, int64_t layers, int64_t num_tokens, int64_t bytes) {
  constexpr int64_t kPage = 4;
  switch (layout) {
    case HicacheLayout::layer_first:
      return {layers, num_tokens, bytes};
    case HicacheLayout::page_first:
      return {num_tokens, layers, bytes};
    case HicacheLayout::page_first_direct:
      return {num_tokens / kPage, layers, kPage, bytes};
  }
  return {};
}

struct MoveCase {
  int64_t layers, num_tokens, count, bytes;
  HicacheLayout dst, src;
  Device dst_place, src_place;
  DType index;
};

// Returns what differs from the same call on the CPU.
std::string difference(const MoveCase& c) {
  const Dims to = shape_of(c.dst, c.layers, c.num_tokens, c.bytes),
             from = shape_of(c.src, c.layers, c.num_tokens, c.bytes);
  const Tensor k = random_bytes(from, 1), v = random_bytes(from, 2);
  const Tensor k_dst = random_bytes(to, 3), v_dst = random_bytes(to, 4);
  const Tensor idx_dst = tokens(c.count, c.num_tokens, 5, c.index),
               idx_src = tokens(c.count, c.num_tokens, 6, c.index);
  const TransferHicacheAllLayerOptions options{.dst_layout = c.dst, .src_layout = c.src};
  const Tensor k_there = k_dst.to(c.dst_place), v_there = v_dst.to(c.dst_place);
  transfer_hicache_all_layer(k_there, v_there, idx_dst.to(kGpu), k.to(c.src_place),
                             v.to(c.src_place), idx_src.to(kGpu), options);
  transfer_hicache_all_layer(k_dst, v_dst, idx_dst, k, v, idx_src, options);
  if (are_equal(k_there, k_dst) && are_equal(v_there, v_dst)) return {};
  return join(to_string(c.src_place), " to ", to_string(c.dst_place), ", ", c.layers, " layers, ",
              c.count, " tokens of ", c.bytes, " bytes, layouts ", int(c.src), " and ", int(c.dst),
              "\n");
}

TEST(PageableKv, MovesWhatTheCpuMoves) {
  expect_nothing_wrong([] {
    SimtDriver driver;
    std::string wrong;
    for (const auto& [dst, src] : {std::pair(kGpu, kHost), {kHost, kGpu}, {kHost, kHost}})
      for (const auto dst_layout : {HicacheLayout::layer_first, HicacheLayout::page_first,
                                    HicacheLayout::page_first_direct})
        for (const auto src_layout : {HicacheLayout::layer_first, HicacheLayout::page_first_direct})
          for (const int64_t bytes : {128, 100, 1})
            for (const int64_t count : {0, 1, 13})
              wrong += difference({3, 16, count, bytes, dst_layout, src_layout, dst, src,
                                   bytes == 100 ? DType::int32 : DType::int64});
    return wrong + driver.damage();
  });
}

// More bytes than two windows have, and elements that are no whole number of slots.
TEST(PageableKv, MovesWindowAfterWindow) {
  expect_nothing_wrong([] {
    SimtDriver driver;
    const std::string wrong =
        difference({2, 24, 18, (int64_t(1) << 20) + 128, HicacheLayout::layer_first,
                    HicacheLayout::page_first, kHost, kHost, DType::int64});
    return wrong + driver.damage();
  });
}

// Work in front of the call on its stream comes first, and so does the call before what follows.
TEST(PageableKv, KeepsTheOrderOfItsStream) {
  expect_nothing_wrong([]() -> std::string {
    const SimtDriver driver;
    const Stream stream;
    set_current_stream(stream);
    const Tensor order = tokens(8, 8, 1, DType::int64).to(kGpu);
    const Tensor k(DType::uint8, {8, 128}, kGpu), v(DType::uint8, {8, 128}, kGpu);
    Tensor k_host(DType::uint8, {8, 128}), v_host(DType::uint8, {8, 128});
    std::string wrong;
    for (unsigned char i = 1; i < 5; ++i) {
      cuda::fill_async(k.data(), i, k.nbytes(), stream);
      cuda::fill_async(v.data(), i + 100, v.nbytes(), stream);
      transfer_hicache_one_layer(k_host, v_host, order, k, v, order);
      cuda::fill_async(k.data(), 0, k.nbytes(), stream);
      if (k_host.data_as<uint8_t>()[5] != i || v_host.data_as<uint8_t>()[1023] != i + 100)
        wrong += join("to the host, round ", int(i), "; ");
      transfer_hicache_one_layer(k, v, order, k_host, v_host, order);
      std::memset(k_host.data(), 0xee, k_host.nbytes());  // it has been read
      const Tensor back = k.to(kHost);
      if (back.data_as<uint8_t>()[77] != i) wrong += join("from the host, round ", int(i), "; ");
    }
    return wrong;
  });
}

std::string refusal(ErrorKind kind, std::string_view text, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string_view said = error.what();
    if (error.kind() == kind && said.find(text) != said.npos) return {};
    return join(to_string(error.kind()), ": ", said, "\n");
  }
  return join("not refused: ", text, "\n");
}

TEST(PageableKv, RefusesWhatItCannotMove) {
  expect_nothing_wrong([] {
    SimtDriver driver;
    const Tensor k = random_bytes({8, 128}, 1), v = random_bytes({8, 128}, 2);
    const Tensor k_gpu = random_bytes({8, 128}, 3).to(kGpu),
                 v_gpu = random_bytes({8, 128}, 4).to(kGpu);
    const Tensor before = k_gpu.to(kHost), host_before = k.to(kHost);
    const Tensor order = tokens(8, 8, 1, DType::int64), there = order.to(kGpu);
    const Tensor bad = Tensor::from(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 8}, {8}).to(kGpu);
    std::string wrong;
    const auto refused = [&](ErrorKind kind, std::string_view text, auto&& call) {
      wrong += refusal(kind, text, call);
    };
    refused(ErrorKind::index, "idx_src: element 7 is 8, expected [0, 8), the tokens of k_src",
            [&] { transfer_hicache_one_layer(k_gpu, v_gpu, there, k, v, bad); });
    refused(ErrorKind::index, "idx_dst: element 7 is 8, expected [0, 8), the tokens of k_dst",
            [&] { transfer_hicache_one_layer(k_gpu, v_gpu, bad, k, v, there); });
    refused(ErrorKind::index, "idx_src: element 7 is 8",
            [&] { transfer_hicache_one_layer(k, v, there, k_gpu, v_gpu, bad); });
    refused(ErrorKind::value, "idx_dst: cuda:0 cannot reach indices in memory of the host",
            [&] { transfer_hicache_one_layer(k_gpu, v_gpu, order, k, v, there); });
    refused(ErrorKind::value, "k_src and v_src must lie in memory of one kind",
            [&] { transfer_hicache_one_layer(k_gpu, v_gpu, there, k, v_gpu, there); });
    refused(ErrorKind::value, "out cannot be memory of its own", [&] {
      const Tensor k_out = k_gpu.to(kGpu);
      transfer_hicache_one_layer(k_out, k_gpu, v_gpu, there, k, v, there,
                                 {.v_dst_out = v_gpu.view()});
    });
    refused(ErrorKind::value, "k_dst_out: cuda:0 cannot reach",
            [&] { transfer_hicache_one_layer(k, k_gpu, v_gpu, there, k_gpu, v_gpu, there); });
    const Tensor table =
        Tensor::from(std::vector<int64_t>{reinterpret_cast<int64_t>(k_gpu.data())}, {1});
    refused(ErrorKind::value, "k_ptr_src: cuda:0 cannot reach a table of layers", [&] {
      transfer_hicache_all_layer(k_gpu.view().reshape({1, 8, 128}),
                                 v_gpu.view().reshape({1, 8, 128}), there, table, table, there);
    });
    driver.capturing = true;
    refused(ErrorKind::unsupported, "cannot be moved while a graph is recorded",
            [&] { transfer_hicache_one_layer(k_gpu, v_gpu, there, k, v, there); });
    driver.capturing = false;
    if (!are_equal(k_gpu, before) || !are_equal(k, host_before)) wrong += "something was written";
    return wrong;
  });
}

TEST(PageableKv, ExplainSaysHowItGoesAndWhy) {
  expect_nothing_wrong([] {
    const SimtDriver driver;
    const Tensor k(DType::uint8, {8, 128}), k_gpu(DType::uint8, {8, 128}, kGpu),
        v_gpu(DType::uint8, {8, 128}, kGpu), from_gpu(DType::uint8, {8, 128}, kGpu);
    const Tensor order = tokens(8, 8, 1, DType::int64).to(kGpu);
    const auto staged = [&](const TensorView& src) {
      const std::array<TensorView, 6> in{k_gpu, v_gpu, order, src, src, order};
      const std::vector<op::Value> options(3);
      const std::array<TensorView, 2> out{k_gpu, v_gpu};
      const auto e = find_operator("transfer_hicache_one_layer")
                         .explain(out, {.inputs = in, .options = options}, device_info(kGpu));
      return e.variant.empty() ? std::string("no variant") : e.staged;
    };
    std::string wrong;
    if (!staged(k).starts_with("k_src, v_src: pageable memory of the host, which kernels cannot"))
      wrong += join("pageable: ", staged(k), "\n");
    if (!staged(from_gpu).empty()) wrong += join("on the GPU: ", staged(from_gpu), "\n");
    return wrong;
  });
}

}  // namespace
}  // namespace tensorcraft
