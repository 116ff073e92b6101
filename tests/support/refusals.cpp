// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that refuses what the C library would give: a thread, memory, a file.
// Only calls that TensorCraft makes count, by itself or through the C++ library. No code of the
// library knows of it.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

// Kinds, as tests/python/test_refusals.py numbers them.
enum Kind { kThread, kMap, kAllocation, kOpen, kMemoryFile, kKinds };

struct Plan {
  std::atomic<long> seen = 0, refused = 0;
  std::atomic<long> first = 0;      // the call that is refused, counted from 1; 0: none
  std::atomic<bool> lasts = false;  // all later ones are too
};
Plan plans[kKinds];
std::atomic<size_t> least_bytes = 0;
std::atomic<bool> is_on = false;
thread_local bool is_asking = false;

// The first frame that is not of the C or C++ library decides whose call it is. oneDNN's threads
// are TensorCraft's; its memory is its own, as the loader's is: without it they end the process.
struct Walk {
  const Kind kind;
  bool is_ours = false;

  bool passes(const char* file) const {
    for (const char* one : {"libc.so", "libstdc++", "libgcc_s", "refusals"})
      if (std::strstr(file, one)) return true;
    return kind == kThread && (std::strstr(file, "libgomp") || std::strstr(file, "libdnnl"));
  }
  static _Unwind_Reason_Code visit(_Unwind_Context* context, void* self) {
    Walk& walk = *static_cast<Walk*>(self);
    Dl_info place;
    if (!dladdr(reinterpret_cast<void*>(_Unwind_GetIP(context)), &place) || !place.dli_fname ||
        walk.passes(place.dli_fname))
      return _URC_NO_REASON;
    const char* const name = std::strrchr(place.dli_fname, '/');
    walk.is_ours = std::strstr(name ? name : place.dli_fname, "tensorcraft") != nullptr;
    return _URC_END_OF_STACK;
  }
};

bool is_tensorcrafts(Kind kind) {
  Walk walk{kind};
  _Unwind_Backtrace(&Walk::visit, &walk);
  return walk.is_ours;
}

bool refuses(Kind kind) {
  if (!is_on.load(std::memory_order_relaxed) || is_asking) return false;
  is_asking = true;  // to find out whose call it is may take memory
  const bool is_ours = is_tensorcrafts(kind);
  is_asking = false;
  if (!is_ours) return false;
  Plan& plan = plans[kind];
  const long call = ++plan.seen, first = plan.first;
  const bool refused = first > 0 && (plan.lasts ? call >= first : call == first);
  plan.refused += refused;
  return refused;
}

bool refuses_memory(size_t bytes) { return bytes >= least_bytes && refuses(kAllocation); }

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void* no_memory() {
  errno = ENOMEM;
  return nullptr;
}

int open_at(int folder, const char* path, int flags, mode_t mode) {
  if (refuses(kOpen)) {
    errno = EMFILE;
    return -1;
  }
  return int(syscall(SYS_openat, folder, path, flags, mode));
}

FILE* open_stream(const char* call, const char* path, const char* mode) {
  if (refuses(kOpen)) {
    errno = EMFILE;
    return nullptr;
  }
  return next<FILE* (*)(const char*, const char*)>(call)(path, mode);
}

}  // namespace

extern "C" {

// The `first` call of a kind from now on is refused, and if `lasts` all later ones; 0: none. Memory
// counts from `bytes` on.
void refusals_plan(int kind, long first, int lasts, size_t bytes) {
  is_on = false;
  least_bytes = bytes;
  for (Plan& plan : plans) plan.seen = plan.refused = plan.first = 0;
  plans[kind].lasts = lasts != 0;
  plans[kind].first = first;
  is_on = true;
}
void refusals_end() { is_on = false; }
long refusals_seen(int kind) { return plans[kind].seen; }
long refusals_given(int kind) { return plans[kind].refused; }

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = next<Create>("pthread_create");
  return refuses(kThread) ? EAGAIN : create(thread, attributes, run, argument);
}

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (bytes >= least_bytes && refuses(kMap)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
void* mmap64(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  return mmap(at, bytes, protection, flags, file, offset);
}

void* malloc(size_t bytes) { return refuses_memory(bytes) ? no_memory() : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) {
  return refuses_memory(count * bytes) ? no_memory() : __libc_calloc(count, bytes);
}
void* realloc(void* block, size_t bytes) {
  return refuses_memory(bytes) ? no_memory() : __libc_realloc(block, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return refuses_memory(bytes) ? no_memory() : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  if (refuses_memory(bytes)) return ENOMEM;
  *block = __libc_memalign(alignment, bytes);
  return *block ? 0 : ENOMEM;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_at(folder, path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) { return open_stream("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return open_stream("fopen64", path, mode); }

int memfd_create(const char* name, unsigned flags) noexcept {
  if (refuses(kMemoryFile)) {
    errno = EMFILE;
    return -1;
  }
  return int(syscall(SYS_memfd_create, name, flags));
}

}  // extern "C"
