// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/op/host/onednn_convolution.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/hash.hpp"
#include "tensorcraft/op/host/onednn.hpp"
#include "tensorcraft/op/host/onednn_convolution_parts.hpp"
#include "tensorcraft/op/host/onednn_parts.hpp"
#include "tensorcraft/op/host/parallel.hpp"
#include "tensorcraft/op/host/rows.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tensorcraft::host::onednn {
#ifdef TENSORCRAFT_ONEDNN
namespace {

enum Memory { kX, kW, kBias, kOut, kGivenX, kGivenW, kGivenOut, kNumMemories };

// The primitives of slices of one size with their memory objects. It belongs to the thread that
// made it, so its addresses need no lock. `convolution` is null if oneDNN has none. Reorders are
// null where oneDNN takes the order that is given.
struct Prepared {
  explicit Prepared(const Library& lib)
      : convolution(lib.primitive_destroy),
        pack_x(lib.primitive_destroy),
        pack_w(lib.primitive_destroy),
        unpack_out(lib.primitive_destroy),
        w_desc(lib.memory_desc_destroy) {
    for (auto& m : memory) m = std::make_unique<Handle<dnnl_memory_t>>(lib.memory_destroy);
  }
  Handle<dnnl_primitive_t> convolution, pack_x, pack_w, unpack_out;
  std::unique_ptr<Handle<dnnl_memory_t>> memory[kNumMemories];
  size_t bytes[kNumMemories] = {};
  Desc w_desc;       // as the primitive reads them
  int64_t unit = 0;  // of filters whose weights of one tap and channel are side by side; 0: unknown
};

// Describes tensors and makes primitives; the first failure ends it.
struct Maker {
  const Library& lib;
  Prepared& to;
  bool ok = true;

  void check(dnnl_status_t status) { ok = ok && status == dnnl_success; }
  void describe(Desc& desc, DType dtype, std::initializer_list<int64_t> dims,
                std::initializer_list<int64_t> strides) {
    if (ok)
      check(lib.memory_desc_create_with_strides(&desc.value, int(dims.size()), dims.begin(),
                                                data_type(dtype), strides.begin()));
  }
  // Describes a tensor in an order that oneDNN chooses.
  void describe_any(Desc& desc, DType dtype, std::initializer_list<int64_t> dims) {
    if (ok)
      check(lib.memory_desc_create_with_tag(&desc.value, int(dims.size()), dims.begin(),
                                            data_type(dtype), dnnl_format_tag_any));
  }
  void make_memory(Memory which, const_dnnl_memory_desc_t desc) {
    if (!ok) return;
    to.bytes[which] = lib.memory_desc_get_size(desc);
    check(lib.memory_create(&to.memory[which]->value, desc, lib.engine, DNNL_MEMORY_NONE));
  }
  // Moves elements from one order to another, if they differ.
  void make_reorder(Handle<dnnl_primitive_t>& primitive, const_dnnl_memory_desc_t from,
                    const_dnnl_memory_desc_t into) {
    if (!ok || lib.memory_desc_equal(from, into)) return;
    Handle<dnnl_primitive_desc_t> desc(lib.primitive_desc_destroy);
    check(lib.reorder_primitive_desc_create(&desc.value, from, lib.engine, into, lib.engine,
                                            nullptr));
    if (ok) check(lib.primitive_create(&primitive.value, desc.value));
  }
};

// The tensors of a slice as they are given, and in an order that oneDNN chooses: it has fast code
// for channels last without gaps, so images that lie so are left as they are.
struct Tensors {
  explicit Tensors(const Library& lib)
      : x(lib.memory_desc_destroy),
        w(lib.memory_desc_destroy),
        bias(lib.memory_desc_destroy),
        out(lib.memory_desc_destroy),
        any_x(lib.memory_desc_destroy),
        any_w(lib.memory_desc_destroy),
        any_out(lib.memory_desc_destroy) {}
  Desc x, w, bias, out, any_x, any_w, any_out;
};

// The stride of one image says nothing.
void describe_image(Maker& make, DType dtype, std::initializer_list<int64_t> dims,
                    const ImageStrides& at, Desc& given, Desc& any) {
  const int64_t* const size = dims.begin();
  const int64_t sample = size[0] == 1 ? size[2] * at.row : at.sample;
  make.describe(given, dtype, dims, {sample, at.channel, at.row, at.column});
  const bool is_plain = at.channel == 1 && at.column == size[1] && at.row == size[3] * size[1] &&
                        sample == size[2] * at.row;
  if (!is_plain) make.describe_any(any, dtype, dims);
}

void describe_weights(Maker& make, const Convolution& c, const Slice& s, Tensors& t) {
  const ImageStrides& at = c.w_at;
  const auto describe = [&](std::initializer_list<int64_t> dims,
                            std::initializer_list<int64_t> strides) {
    make.describe(t.w, c.dtype, dims, strides);
    make.describe_any(t.any_w, c.dtype, dims);
  };
  if (c.groups == 1)
    describe({s.filters, c.channels, c.rows.taps, c.columns.taps},
             {at.sample, at.channel, at.row, at.column});
  else
    describe({c.groups, c.filters, c.channels, c.rows.taps, c.columns.taps},
             {c.filters * at.sample, at.sample, at.channel, at.row, at.column});
}

// Null if oneDNN has no fast code for it.
void make_convolution(Maker& make, const Convolution& c, const Inputs& rows, const Inputs& columns,
                      const Tensors& t, Handle<dnnl_primitive_desc_t>& desc) {
  const Library& lib = make.lib;
  const dnnl_dims_t strides = {c.rows.stride, c.columns.stride},
                    dilates = {c.rows.dilation - 1, c.columns.dilation - 1},
                    before = {rows.before, columns.before}, after = {rows.after, columns.after};
  Handle<dnnl_primitive_attr_t> attributes(lib.primitive_attr_destroy);
  if (make.ok) make.check(lib.primitive_attr_create(&attributes.value));
  if (make.ok)
    make.check(lib.primitive_attr_set_fpmath_mode(attributes.value, dnnl_fpmath_mode_strict));
  if (make.ok)
    make.check(lib.convolution_forward_primitive_desc_create(
        &desc.value, lib.engine, dnnl_forward_inference, dnnl_convolution_direct,
        t.any_x.value ? t.any_x.value : t.x.value, t.any_w.value, t.bias.value,
        t.any_out.value ? t.any_out.value : t.out.value, strides, dilates, before, after,
        attributes.value));
  if (make.ok) make.ok = has_fast_code(lib, desc.value);
}

// The unit in which a primitive reads filters; 0 if pack_unit() cannot make that order.
int64_t unit_of(const Maker& make, const Convolution& c, const Slice& s,
                const_dnnl_memory_desc_t own) {
  if (c.dtype != DType::float32 || c.groups != 1 || spread_of_filter(c, 1).run == 0) return 0;
  constexpr std::pair<int64_t, dnnl_format_tag_t> kOrders[] = {
      {16, dnnl_Acdb16a}, {32, dnnl_Acdb32a}, {48, dnnl_Acdb48a}, {64, dnnl_Acdb64a}};
  const dnnl_dims_t dims = {s.filters, c.channels, c.rows.taps, c.columns.taps};
  for (const auto& [unit, tag] : kOrders) {
    Desc order(make.lib.memory_desc_destroy);
    if (s.filters % unit == 0 &&
        make.lib.memory_desc_create_with_tag(&order.value, 4, dims, dnnl_f32, tag) ==
            dnnl_success &&
        make.lib.memory_desc_equal(order.value, own))
      return unit;
  }
  return 0;
}

// Makes the primitives that move elements to the order of a convolution and back, and memory
// objects for all of them.
void make_moves(Maker& make, const_dnnl_primitive_desc_t desc, const Tensors& t) {
  Prepared& to = make.to;
  const auto as_read = [&](dnnl_query_t what) {
    return make.lib.primitive_desc_query_md(desc, what, 0);
  };
  const const_dnnl_memory_desc_t own_x = as_read(dnnl_query_src_md),
                                 own_w = as_read(dnnl_query_weights_md),
                                 own_out = as_read(dnnl_query_dst_md);
  make.make_reorder(to.pack_x, t.x.value, own_x);
  make.make_reorder(to.pack_w, t.w.value, own_w);
  make.make_reorder(to.unpack_out, own_out, t.out.value);
  make.make_memory(kX, own_x);
  make.make_memory(kW, own_w);
  make.make_memory(kOut, own_out);
  make.make_memory(kGivenX, t.x.value);
  make.make_memory(kGivenW, t.w.value);
  make.make_memory(kGivenOut, t.out.value);
  if (t.bias.value) make.make_memory(kBias, t.bias.value);
  if (make.ok) make.check(make.lib.memory_desc_clone(&to.w_desc.value, own_w));
}

void prepare(const Library& lib, const Convolution& c, const Slice& s, Prepared& to) {
  const Inputs rows = inputs_of(c.rows, s.row, s.rows),
               columns = inputs_of(c.columns, 0, c.columns.out);
  if (rows.size == 0 || columns.size == 0) return;  // padding alone
  Maker make{lib, to};
  Tensors t(lib);
  const int64_t channels = c.groups * c.channels, filters = c.groups * s.filters;
  describe_image(make, c.dtype, {s.images, channels, rows.size, columns.size}, c.x_at, t.x,
                 t.any_x);
  describe_image(make, c.dtype, {s.images, filters, s.rows, c.columns.out},
                 are_planes(c.dtype, c.out_at, filters)
                     ? channels_last(s.rows, c.columns.out, filters)
                     : c.out_at,
                 t.out, t.any_out);
  describe_weights(make, c, s, t);
  if (c.bias) make.describe(t.bias, c.dtype, {filters}, {1});
  Handle<dnnl_primitive_desc_t> desc(lib.primitive_desc_destroy);
  make_convolution(make, c, rows, columns, t, desc);
  if (!make.ok) return;
  make_moves(make, desc.value, t);
  if (make.ok) to.unit = unit_of(make, c, s, to.w_desc.value);
  if (make.ok && lib.primitive_create(&to.convolution.value, desc.value) != dnnl_success)
    to.convolution.value = nullptr;
}

// All that the primitives of a slice depend on; addresses are given to each run.
struct Key {
  std::array<int64_t, 32> values;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    return hash_words(std::bit_cast<std::array<uint64_t, 32>>(key.values));
  }
};
Key key_of(const Convolution& c, const Slice& s) {
  const Inputs rows = inputs_of(c.rows, s.row, s.rows);
  return {{int64_t(c.dtype), c.groups,          c.channels,       s.filters,          s.images,
           s.rows,           c.bias != nullptr, rows.size,        rows.before,        rows.after,
           c.rows.taps,      c.rows.stride,     c.rows.dilation,  c.columns.in,       c.columns.out,
           c.columns.taps,   c.columns.stride,  c.columns.before, c.columns.dilation, c.filters,
           c.x_at.sample,    c.x_at.row,        c.x_at.column,    c.x_at.channel,     c.w_at.sample,
           c.w_at.row,       c.w_at.column,     c.w_at.channel,   c.out_at.sample,    c.out_at.row,
           c.out_at.column,  c.out_at.channel}};
}

// Returns what the calling thread has prepared for the slice. A full cache starts again: shapes
// that come back are few.
Prepared& prepared_for(const Library& lib, const Convolution& c, const Slice& s) {
  constexpr size_t kMaxPrepared = 256;
  thread_local std::unordered_map<Key, std::unique_ptr<Prepared>, KeyHash> cache;
  const Key key = key_of(c, s);
  if (const auto found = cache.find(key); found != cache.end()) return *found->second;
  const auto making = making_primitives();
  if (cache.size() >= kMaxPrepared) cache.clear();
  auto made = std::make_unique<Prepared>(lib);
  prepare(lib, c, s, *made);
  return *cache.emplace(key, std::move(made)).first->second;
}

void run(const Library& lib, const Handle<dnnl_primitive_t>& primitive,
         std::initializer_list<dnnl_exec_arg_t> arguments) {
  dnnl_stream_t stream = stream_of_thread(lib);
  const dnnl_status_t status =
      lib.primitive_execute(primitive.value, stream, int(arguments.size()), arguments.begin());
  if (status != dnnl_success || lib.stream_wait(stream) != dnnl_success)
    fail(ErrorKind::internal, "conv2d: oneDNN failed to run its convolution, status ", int(status));
}

// Memory of the calling thread, in units of floats.
void* bytes_of(Slot slot, size_t bytes) { return scratch(slot, int64_t(bytes / 4 + 1)); }

// Brings the filters of a slice to the order that the primitive reads.
void pack_filters(const Library& lib, const Convolution& c, const Slice& s, void* to) {
  const OneThread one_thread(lib);
  Prepared& prepared = prepared_for(lib, c, s);
  dnnl_memory_t from = prepared.memory[kGivenW]->value, into = prepared.memory[kW]->value;
  lib.memory_set_data_handle(from, moved(c.w, s.filter * c.w_at.sample, c.dtype));
  lib.memory_set_data_handle(into, to);
  run(lib, prepared.pack_w, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, into}});
}

// x: the first image of the slice.
void execute(const Library& lib, const Convolution& c, const Slice& s, const void* x,
             const void* filters) {
  const OneThread one_thread(lib);
  Prepared& prepared = prepared_for(lib, c, s);
  if (!prepared.convolution.value)
    fail(ErrorKind::unsupported, "conv2d: oneDNN has no primitive for a slice of this problem");
  const auto memory = [&](Memory which, const void* data) {
    lib.memory_set_data_handle(prepared.memory[which]->value, const_cast<void*>(data));
    return prepared.memory[which]->value;
  };
  const int64_t first = inputs_of(c.rows, s.row, s.rows).first;
  x = moved(x, first * c.x_at.row, c.dtype);
  void* out = moved(c.out, c.out_at.offset(s.image, s.row, 0, s.filter), c.dtype);
  const void *own_x = x, *own_out = out;
  if (prepared.pack_x.value) {
    own_x = bytes_of(Slot::row_b, prepared.bytes[kX]);
    run(lib, prepared.pack_x,
        {{DNNL_ARG_FROM, memory(kGivenX, x)}, {DNNL_ARG_TO, memory(kX, own_x)}});
  }
  const bool planes = are_planes(c.dtype, c.out_at, c.groups * s.filters);
  if (planes || prepared.unpack_out.value) own_out = bytes_of(Slot::row_c, prepared.bytes[kOut]);
  const dnnl_exec_arg_t source{DNNL_ARG_SRC, memory(kX, own_x)},
      weights{DNNL_ARG_WEIGHTS, memory(kW, filters)}, result{DNNL_ARG_DST, memory(kOut, own_out)};
  if (c.bias)
    run(lib, prepared.convolution,
        {source,
         weights,
         result,
         {DNNL_ARG_BIAS, memory(kBias, moved(c.bias, s.filter, c.dtype))}});
  else
    run(lib, prepared.convolution, {source, weights, result});
  if (planes) return unpack_planes(c, s, static_cast<const float*>(own_out));
  if (prepared.unpack_out.value)
    run(lib, prepared.unpack_out,
        {{DNNL_ARG_FROM, memory(kOut, own_out)}, {DNNL_ARG_TO, memory(kGivenOut, out)}});
}

const char* reason_against(const Convolution& c) {
  if (c.batch <= 0 || c.channels <= 0 || c.filters <= 0) return "an extent is 0";
  if (data_type(c.dtype) == dnnl_data_type_undef) return "the dtype";
  const auto forwards = [](const ImageStrides& at) {
    return at.sample >= 0 && at.row > 0 && at.column > 0 && at.channel > 0;
  };
  if (!forwards(c.x_at) || !forwards(c.w_at) || !forwards(c.out_at)) return "the strides";
  return nullptr;
}

// Brings filters to the order that primitives read, and images that are planes to channels last.
// share() packs what several slices read, in small jobs; the thread that computes a slice packs
// what only that slice reads, and has it in its cache then.
class Packing {
 public:
  Packing(const Library& lib, const Convolution& given, const Convolution& c, const Cut& cut)
      : lib_(lib), given_(given), c_(c), cut_(cut) {
    const Prepared& first = prepared_for(lib, c, cut.slice(c, 0));
    packs_w_ = first.pack_w.value != nullptr;
    packs_x_ = given.x_at.channel != c.x_at.channel;
    for (int64_t piece = 0; piece < cut.by_filters; ++piece)
      units_.push_back(prepared_for(lib, c, cut.slice(c, piece)).unit);
    in_parts_ = packs_w_ && std::find(units_.begin(), units_.end(), 0) == units_.end();
    shares_w_ = packs_w_ && !cut.slices_have_own_filters();
    shares_x_ = packs_x_ && !cut.slices_have_own_images();
    // The first piece of the filters is the largest.
    bytes_of_piece_ = round_up(first.bytes[kW], size_t(64));
    if (shares_w_)
      w_ =
          static_cast<std::byte*>(bytes_of(Slot::pack_a, bytes_of_piece_ * size_t(cut.by_filters)));
    if (shares_x_) x_ = scratch(Slot::pack_b, c.batch * c.x_at.sample);
    line_ = given.x_at.row == c.columns.in ? c.rows.in * c.columns.in : c.columns.in;
    per_line_ = div_ceil(line_, kPlaces);
    per_image_ = c.rows.in * c.columns.in / line_ * per_line_;
  }

  void share() {
    const int64_t of_w = !shares_w_ ? 0 : in_parts_ ? div_ceil(c_.filters, kPart) : cut_.by_filters;
    const int64_t of_x = shares_x_ ? c_.batch * per_image_ : 0;
    parallel_for(of_w + of_x, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (i >= of_w)
          pack_places((i - of_w) / per_image_, (i - of_w) % per_image_,
                      x_ + (i - of_w) / per_image_ * c_.x_at.sample);
        else if (in_parts_)
          pack_part(i * kPart, shared(i * kPart / cut_.filters));
        else
          pack_filters(lib_, c_, cut_.slice(c_, i), shared(i));
    });
  }

  // The first image of a slice, and its filters, as primitives read them; perhaps in memory of the
  // calling thread.
  const void* images_of(const Slice& s) {
    if (!packs_x_) return moved(c_.x, s.image * c_.x_at.sample, c_.dtype);
    if (shares_x_) return x_ + s.image * c_.x_at.sample;
    float* const own = scratch(Slot::pack_b, s.images * c_.x_at.sample);
    for (int64_t i = 0; i < s.images * per_image_; ++i)
      pack_places(s.image + i / per_image_, i % per_image_, own + i / per_image_ * c_.x_at.sample);
    return own;
  }
  const void* filters_of(int64_t piece) {
    const Slice s = cut_.slice(c_, piece);
    if (!packs_w_) return moved(c_.w, s.filter * c_.w_at.sample, c_.dtype);
    if (shares_w_) return shared(piece);
    void* const own = bytes_of(Slot::pack_a, bytes_of_piece_);
    if (!in_parts_) pack_filters(lib_, c_, s, own);
    for (int64_t filter = 0; in_parts_ && filter < s.filters; filter += kPart)
      pack_part(s.filter + filter, own);
    return own;
  }
  // Does it look at the filters, and were all that it has packed finite?
  bool checks() const { return in_parts_; }
  bool found_finite() const { return finite_; }

 private:
  static constexpr int64_t kPart = 16, kPlaces = 64;

  void* shared(int64_t piece) const { return w_ + size_t(piece) * bytes_of_piece_; }
  void pack_part(int64_t filter, void* to_piece) {
    const int64_t piece = filter / cut_.filters, in_piece = filter % cut_.filters;
    const int64_t unit = units_[size_t(piece)];
    const int64_t elements = inputs_of_filter(c_);
    float* to = static_cast<float*>(to_piece) + in_piece / unit * unit * elements + in_piece % unit;
    const void* from = moved(c_.w, filter * c_.w_at.sample, c_.dtype);
    if (!transpose(to, spread_of_filter(c_, unit), static_cast<const float*>(from), c_.w_at.sample,
                   kPart, elements))
      finite_ = false;
  }
  // Some of the places of an image, which goes to `to`.
  void pack_places(int64_t image, int64_t part, float* to) {
    const int64_t channels = c_.groups * c_.channels;
    const int64_t line = part / per_line_, place = part % per_line_ * kPlaces;
    const void* from = moved(c_.x, given_.x_at.offset(image, line, place, 0), c_.dtype);
    transpose(to + (line * line_ + place) * channels, {kPlaces, channels, 0},
              static_cast<const float*>(from), given_.x_at.channel, channels,
              std::min(kPlaces, line_ - place));
  }

  const Library& lib_;
  const Convolution &given_, &c_;
  const Cut& cut_;
  std::vector<int64_t> units_;                       // of each piece of the filters
  int64_t line_ = 0, per_line_ = 0, per_image_ = 0;  // places of x side by side; parts to pack
  bool packs_w_ = false, shares_w_ = false, in_parts_ = false, packs_x_ = false, shares_x_ = false;
  size_t bytes_of_piece_ = 0;
  std::byte* w_ = nullptr;
  float* x_ = nullptr;
  std::atomic<bool> finite_ = true;
};

// declines() of the convolution that runs.
const char* reason_against_slices(const Library& lib, const Convolution& c) {
  const Cut cut = cut_of(c, num_threads());
  const auto prepared = [&](int64_t i) -> Prepared& {
    return prepared_for(lib, c, cut.slice(c, i));
  };
  // Slices of the same filters share what was packed for the first of them.
  for (int64_t i = 0; i < cut.count(); ++i) {
    const Prepared &one = prepared(i), &shares = prepared(i % cut.by_filters), &first = prepared(0);
    if (!one.convolution.value || !one.pack_w.value != !first.pack_w.value)
      return "oneDNN has no fast primitive for it on this machine";
    if (!lib.memory_desc_equal(one.w_desc.value, shares.w_desc.value))
      return "oneDNN wants its filters in several orders";
  }
  return nullptr;
}

}  // namespace

const char* declines(const Convolution& given) {
  if (!available()) return "oneDNN is not available";
  if (const char* reason = reason_against(given)) return reason;
  // A call asks more than once, and calls of one shape follow each other.
  thread_local Key last{};
  thread_local int threads_of_last = 0;
  thread_local const char* reason_of_last = nullptr;
  const Key key = key_of(given, {0, given.batch, 0, given.rows.out, 0, given.filters});
  if (threads_of_last != num_threads() || !(key == last)) {
    const Library& lib = library();
    const OneThread one_thread(lib);
    threads_of_last = 0;  // a failure leaves no answer
    reason_of_last = reason_against_slices(lib, as_run(given));
    last = key;
    threads_of_last = num_threads();
  }
  return reason_of_last;
}

bool convolve(const Convolution& given) {
  if (const char* reason = declines(given))
    fail(ErrorKind::unsupported, "conv2d: oneDNN does not take this problem: ", reason);
  const Library& lib = library();
  const Convolution c = as_run(given);
  const Cut cut = cut_of(c, num_threads());
  Packing packing(lib, given, c, cut);
  const bool pads = has_padding(c);
  if (pads && !packing.checks() && !has_finite_filters(c)) return false;
  packing.share();
  if (pads && !packing.found_finite()) return false;
  parallel_for(cut.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Slice s = cut.slice(c, i);
      const void* const filters = packing.filters_of(i % cut.by_filters);
      execute(lib, c, s, packing.images_of(s), filters);
    }
  });
  return !pads || packing.found_finite();
}

#else

const char* declines(const Convolution&) { return "this build has no oneDNN"; }
bool convolve(const Convolution&) {
  fail(ErrorKind::unsupported, "conv2d: ", unavailable_reason());
}

#endif
}  // namespace tensorcraft::host::onednn
