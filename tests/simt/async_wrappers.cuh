// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/ptx/barrier.cuh"
#include "tensorcraft/device/ptx/bulk.cuh"
#include "tensorcraft/device/ptx/cluster.cuh"
#include "tensorcraft/device/ptx/control.cuh"
#include "tensorcraft/device/ptx/fence.cuh"
#include "tensorcraft/device/ptx/mbarrier.cuh"
#include "tensorcraft/device/ptx/memory_order.cuh"
#include "tensorcraft/device/ptx/tma.cuh"
#include "tensorcraft/device/shared.cuh"

// Every instruction of these files once, to be compiled; it is not a program that runs.
namespace tensorcraft::kernel::async_wrappers {

using namespace tensorcraft::ptx;

struct Shared {
  uint64_t bar;
  uint32_t x[4];
  alignas(1024) char tile[4096];
};
struct Params {
  TensorMap map;
  char* g;
  uint32_t* f;
};
template <int kRank>
TC_DEVICE void ranks(const Params& p, Shared& s) {
  int32_t at[kRank] = {};
  tma_load(s.tile, &p.map, at, &s.bar);
  tma_load_multicast(s.tile, &p.map, at, &s.bar, uint16_t(3));
  tma_store(&p.map, at, s.tile);
  tma_reduce_add(&p.map, at, s.tile);
  tma_reduce_min(&p.map, at, s.tile);
  tma_reduce_max(&p.map, at, s.tile);
  tma_reduce_and(&p.map, at, s.tile);
  tma_reduce_or(&p.map, at, s.tile);
  tma_reduce_xor(&p.map, at, s.tile);
  tma_reduce_inc(&p.map, at, s.tile);
  tma_reduce_dec(&p.map, at, s.tile);
  tma_prefetch(&p.map, at);
}
TC_DEVICE void run(const Params& p) {
  Shared& s = dynamic_shared<Shared>();
  mbarrier_init(&s.bar, 1);
  fence_mbarrier_init();
  fence_proxy_async();
  mbarrier_arrive(&s.bar);
  mbarrier_arrive(&s.bar, 2);
  mbarrier_arrive_cluster(&s.bar, 1);
  mbarrier_arrive_cluster_read(&s.bar, 1);
  mbarrier_arrive_expect_tx(&s.bar, 16);
  mbarrier_expect_tx(&s.bar, 16);
  mbarrier_wait_parity(&s.bar, 0);
  if (mbarrier_test_wait_parity(&s.bar, 1)) p.f[0] = 1;
  cp_async_mbarrier_arrive(&s.bar);
  cp_async_mbarrier_arrive_noinc(&s.bar);
  mbarrier_inval(&s.bar);
  bar_sync(1, 64);
  bar_arrive(2, 128);
  setmaxnreg_dec<24>();
  setmaxnreg_inc<40>();
  griddepcontrol_wait();
  griddepcontrol_launch_dependents();
  nanosleep(20);
  st_release_gpu_u32(p.f, ld_acquire_gpu_u32(p.f));
  red_release_gpu_add_u32(p.f, 1);
  auto c = cluster_ctaid();
  auto n = cluster_nctaid();
  p.f[1] = c.x + n.y + cluster_ctarank() + cluster_nctarank();
  cluster_arrive_relaxed();
  cluster_wait();
  cluster_sync();
  *mapa(&s.x[0], 1) = 3;
  st_shared_cluster_u32(s.x, 1, ld_shared_cluster_u32(s.x, 0));
  st_async_u32(s.x, 2, &s.bar, 1);
  cp_async_bulk_load(s.tile, p.g, 16, &s.bar);
  cp_async_bulk_load_multicast(s.tile, p.g, 16, &s.bar, uint16_t(1));
  cp_async_bulk_to_cluster(s.tile, s.tile + 16, 16, &s.bar, 1);
  cp_async_bulk_store(p.g, s.tile, 16);
  cp_reduce_async_bulk_add_f32(p.g, s.tile, 16);
  cp_reduce_async_bulk_add_f16(p.g, s.tile, 16);
  cp_reduce_async_bulk_add_bf16(p.g, s.tile, 16);
  cp_reduce_async_bulk_add_u32(p.g, s.tile, 16);
  cp_reduce_async_bulk_add_u64(p.g, s.tile, 16);
  cp_reduce_async_bulk_min_s32(p.g, s.tile, 16);
  cp_reduce_async_bulk_max_s32(p.g, s.tile, 16);
  cp_async_bulk_prefetch(p.g, 16);
  cp_async_bulk_commit_group();
  cp_async_bulk_wait_group<0>();
  cp_async_bulk_wait_group_read<1>();
  prefetch_tensormap(&p.map);
  ranks<1>(p, s);
  ranks<2>(p, s);
  ranks<3>(p, s);
  ranks<4>(p, s);
  ranks<5>(p, s);
}

}  // namespace tensorcraft::kernel::async_wrappers
