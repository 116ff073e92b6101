// SPDX-License-Identifier: Apache-2.0
// Code compiled with -fsanitize=thread calls these functions at each access of memory. In the race
// build these take the place of the compiler's own library and feed the shadow map; accesses to
// anything but shared memory are of no interest.
#include "tensorcraft/core/error.hpp"
#include "tensorcraft/simt/cluster.hpp"
#include "tensorcraft/simt/shadow.hpp"

#include <cstring>

#if defined(TENSORCRAFT_SIMT_RACE)
namespace {

using tensorcraft::simt::Cluster;
using tensorcraft::simt::Shadow;

// The shared memory of the cluster that this OS thread runs, with what lies between its blocks'.
// Every access asks it first, and most are to other memory: found without a call.
struct Watched {
  const std::byte *begin = nullptr, *end = nullptr;
  Shadow* shadow = nullptr;
};
thread_local constinit Watched watched [[gnu::tls_model("initial-exec")]];

[[gnu::noinline]] void misaligned(const void* address, size_t bytes, const void* from) {
  if (Cluster* cluster = Cluster::current())
    cluster->fault(tensorcraft::join("misaligned access: ", bytes, " bytes at ", address, " in ",
                                     tensorcraft::simt::describe({.address = from})));
}
inline void aligned(const void* address, size_t bytes, const void* from) {
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) misaligned(address, bytes, from);
}
inline Shadow* shadow_of(const volatile void* address) {
  const auto* const at = static_cast<const volatile std::byte*>(address);
  return at >= watched.begin && at < watched.end ? watched.shadow : nullptr;
}
inline void read(const void* address, size_t bytes, const void* from) {
  if (Shadow* s = shadow_of(address)) s->read(address, bytes, {.address = from});
}
inline void write(const void* address, size_t bytes, const void* from) {
  if (Shadow* s = shadow_of(address)) s->write(address, bytes, {.address = from});
}
inline void atomic(const volatile void* address, size_t bytes, const void* from) {
  if (Shadow* s = shadow_of(address))
    s->atomic(const_cast<const void*>(address), bytes, {.address = from});
}

}  // namespace

void tensorcraft::simt::watch(const std::byte* begin, const std::byte* end, Shadow* shadow) {
  watched = {begin, end, shadow};
}

#define TC_HERE __builtin_return_address(0)
#define TC_ACCESS(bytes)                                                                        \
  void __tsan_read##bytes(void* p) { aligned(p, bytes, TC_HERE), read(p, bytes, TC_HERE); }     \
  void __tsan_write##bytes(void* p) { aligned(p, bytes, TC_HERE), write(p, bytes, TC_HERE); }   \
  void __tsan_unaligned_read##bytes(void* p) { read(p, bytes, TC_HERE); }                       \
  void __tsan_unaligned_write##bytes(void* p) { write(p, bytes, TC_HERE); }                     \
  void __tsan_volatile_read##bytes(void* p) { read(p, bytes, TC_HERE); }                        \
  void __tsan_volatile_write##bytes(void* p) { write(p, bytes, TC_HERE); }                      \
  void __tsan_unaligned_volatile_read##bytes(void* p) { read(p, bytes, TC_HERE); }              \
  void __tsan_unaligned_volatile_write##bytes(void* p) { write(p, bytes, TC_HERE); }            \
  void __tsan_read_write##bytes(void* p) { read(p, bytes, TC_HERE), write(p, bytes, TC_HERE); } \
  void __tsan_unaligned_read_write##bytes(void* p) {                                            \
    read(p, bytes, TC_HERE), write(p, bytes, TC_HERE);                                          \
  }

#define TC_FETCH(bits, name)                                                                      \
  uint##bits##_t __tsan_atomic##bits##_fetch_##name(volatile uint##bits##_t* p, uint##bits##_t v, \
                                                    int) {                                        \
    atomic(p, bits / 8, TC_HERE);                                                                 \
    return __atomic_fetch_##name(p, v, __ATOMIC_SEQ_CST);                                         \
  }
#define TC_EXCHANGE(bits, kind)                                                                    \
  int __tsan_atomic##bits##_compare_exchange_##kind(                                               \
      volatile uint##bits##_t* p, uint##bits##_t* expected, uint##bits##_t v, int, int) {          \
    atomic(p, bits / 8, TC_HERE);                                                                  \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }
#define TC_ATOMIC(bits)                                                                       \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* p, int) {          \
    atomic(p, bits / 8, TC_HERE);                                                             \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                              \
  }                                                                                           \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* p, uint##bits##_t v, int) {       \
    if (Shadow* s = shadow_of(p))                                                             \
      s->atomic_store(const_cast<uint##bits##_t*>(p), bits / 8, {.address = TC_HERE});        \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                           \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* p, uint##bits##_t v, \
                                                int) {                                        \
    atomic(p, bits / 8, TC_HERE);                                                             \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                       \
  }                                                                                           \
  TC_FETCH(bits, add)                                                                         \
  TC_FETCH(bits, sub)                                                                         \
  TC_FETCH(bits, and)                                                                         \
  TC_FETCH(bits, or)                                                                          \
  TC_FETCH(bits, xor)                                                                         \
  TC_FETCH(bits, nand)                                                                        \
  TC_EXCHANGE(bits, strong)                                                                   \
  TC_EXCHANGE(bits, weak)

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}
TC_ACCESS(1)
TC_ACCESS(2)
TC_ACCESS(4)
TC_ACCESS(8)
TC_ACCESS(16)
void __tsan_read_range(void* p, unsigned long bytes) { read(p, bytes, TC_HERE); }
void __tsan_write_range(void* p, unsigned long bytes) { write(p, bytes, TC_HERE); }
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  read(from, bytes, TC_HERE), write(to, bytes, TC_HERE);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  read(from, bytes, TC_HERE), write(to, bytes, TC_HERE);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
  write(to, bytes, TC_HERE);
  return std::memset(to, value, bytes);
}
TC_ATOMIC(8)
TC_ATOMIC(16)
TC_ATOMIC(32)
TC_ATOMIC(64)
}  // extern "C"
#endif
