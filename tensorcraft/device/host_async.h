// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/host.h"
#include "tensorcraft/device/tensor_map.h"

// Host bodies of the instructions that run beside the threads or order such, as declarations:
// tensorcraft/simt/ defines them. What a wrapper of device/ptx/ says of its instruction holds here.
namespace tensorcraft::simt {

// cp.async
void cp_async_mbarrier_arrive(uint64_t* barrier, bool increments,
                              const SourceLine& line = SourceLine::current());

// mbarrier. `rank` is the block of the cluster whose barrier, at the same place, is meant.
void mbarrier_init(uint64_t* barrier, uint32_t count,
                   const SourceLine& line = SourceLine::current());
void mbarrier_inval(uint64_t* barrier, const SourceLine& line = SourceLine::current());
void mbarrier_arrive(uint64_t* barrier, uint32_t count,
                     const SourceLine& line = SourceLine::current());
void mbarrier_arrive_cluster(uint64_t* barrier, uint32_t rank, uint32_t count,
                             const SourceLine& line = SourceLine::current());
void mbarrier_expect_tx(uint64_t* barrier, uint32_t bytes, bool arrives,
                        const SourceLine& line = SourceLine::current());
bool mbarrier_test_wait(const uint64_t* barrier, uint32_t parity,
                        const SourceLine& line = SourceLine::current());
bool mbarrier_try_wait(const uint64_t* barrier, uint32_t parity,
                       const SourceLine& line = SourceLine::current());

// Bulk copies. A mask of 0 means the own block and no multicast.
enum class Reduce : int { add, min, max, inc, dec, bit_and, bit_or, bit_xor };
enum class ReduceType : int { u32, s32, u64, s64, f16, bf16, f32, f64, b32, b64 };
void bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* barrier, uint16_t mask,
               const SourceLine& line = SourceLine::current());
void bulk_store(void* to, const void* from, uint32_t bytes,
                const SourceLine& line = SourceLine::current());
void bulk_reduce(Reduce op, ReduceType type, void* to, const void* from, uint32_t bytes,
                 const SourceLine& line = SourceLine::current());
void bulk_to_cluster(void* to, const void* from, uint32_t bytes, uint64_t* barrier, uint32_t rank,
                     const SourceLine& line = SourceLine::current());
void bulk_prefetch(const void* from, uint32_t bytes,
                   const SourceLine& line = SourceLine::current());
void bulk_commit_group();
void bulk_wait_group(int pending, bool read, const SourceLine& line = SourceLine::current());
void tensor_load(void* to, const TensorMap* map, const int32_t* at, int rank, uint64_t* barrier,
                 uint16_t mask, const SourceLine& line = SourceLine::current());
void tensor_load_im2col(void* to, const TensorMap* map, const int32_t* at, const uint16_t* offsets,
                        int rank, uint64_t* barrier,
                        const SourceLine& line = SourceLine::current());
void tensor_store(const TensorMap* map, const int32_t* at, int rank, const void* from,
                  const SourceLine& line = SourceLine::current());
void tensor_reduce(Reduce op, const TensorMap* map, const int32_t* at, int rank, const void* from,
                   const SourceLine& line = SourceLine::current());
void tensor_prefetch(const TensorMap* map, const int32_t* at, int rank,
                     const SourceLine& line = SourceLine::current());
void st_async(void* to, const void* value, uint32_t bytes, uint64_t* barrier, uint32_t rank,
              const SourceLine& line = SourceLine::current());

// Fences
void fence_proxy_async();
void fence_mbarrier_init();

// Clusters
Index3 cluster_ctaid();
Index3 cluster_nctaid();
uint32_t cluster_ctarank();
uint32_t cluster_nctarank();
void cluster_arrive(const SourceLine& line = SourceLine::current());
void cluster_wait(const SourceLine& line = SourceLine::current());
void* mapa(const void* own, uint32_t rank, const SourceLine& line = SourceLine::current());
// As mapa(), for an access of `bytes` that happens now.
void* cluster_access(const void* own, uint32_t rank, size_t bytes, const char* instruction,
                     const SourceLine& line = SourceLine::current());

// Named barriers
void bar_sync(int id, int threads, const SourceLine& line = SourceLine::current());
void bar_arrive(int id, int threads, const SourceLine& line = SourceLine::current());

// Others
void setmaxnreg(int registers, bool increases, const SourceLine& line = SourceLine::current());
void griddepcontrol_wait();
void griddepcontrol_launch_dependents();
// Lets others run: a loop that waits for memory to change calls one that does.
void let_others_run(const char* instruction, const SourceLine& line = SourceLine::current());

}  // namespace tensorcraft::simt
