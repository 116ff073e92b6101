// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/file.hpp"

#include "tensorcraft/core/error.hpp"
#include "tensorcraft/core/interrupt.hpp"
#include "tensorcraft/runtime/safetensors/input_file.hpp"
#include "tensorcraft/runtime/transfer/engine.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <ranges>
#include <set>
#include <thread>

namespace tensorcraft {
namespace fs = std::filesystem;
using safetensors::in_quotes;
using safetensors::InputFile;
using safetensors::Refusal;
using safetensors::TensorInfo;

// An open file and the offset of its data.
class SafeTensors::Shard {
 public:
  explicit Shard(const std::string& path) : file(path) {}
  InputFile file;
  uint64_t data_offset = 0;
};

namespace {

[[noreturn]] void refuse(const std::string& path, Refusal reason, const std::string& message) {
  fail(ErrorKind::value, "safetensors: ", path, ": ", message, " [", to_string(reason), "]");
}

template <class T>
T accepted(std::variant<T, safetensors::Refused>&& result, const std::string& path) {
  if (const auto* refused = std::get_if<safetensors::Refused>(&result))
    refuse(path, refused->reason, refused->message);
  return std::get<T>(std::move(result));
}

safetensors::Header read_header(const InputFile& file) {
  std::vector<std::byte> bytes(std::min(file.size(), safetensors::kLengthBytes));
  file.read(bytes.data(), bytes.size(), 0);
  bytes.resize(safetensors::header_extent(bytes, file.size()));
  file.read(bytes.data(), bytes.size(), 0);
  return accepted(safetensors::parse_header(bytes, file.size()), file.path());
}

// ": a, b, ..." for a message; empty without names.
template <class Names>
std::string some_names(const Names& names) {
  std::string some;
  size_t told = 0;
  for (const std::string_view name : names) {
    if (++told > 5) return some + ", ...";
    some += (told > 1 ? ", " : ": ") + in_quotes(name);
  }
  return some;
}

bool is_index(const fs::path& path) { return path.extension() == ".json"; }

// The one file of a folder whose name ends so, or nothing.
std::string only_file(const std::string& folder, const std::vector<std::string>& names,
                      std::string_view ending) {
  std::string found;
  for (const std::string& name : names) {
    if (!std::string_view(name).ends_with(ending)) continue;
    if (!found.empty())
      fail(ErrorKind::value, "safetensors: ", folder, ": more than one file ends in ", ending, ": ",
           found, ", ", name, "; give the path of one of them");
    found = name;
  }
  return found;
}

std::string file_in_folder(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error))
    names.push_back(it->path().filename());
  if (error)
    fail(ErrorKind::io, "safetensors: ", folder, ": the folder cannot be read: ", error.message());
  std::sort(names.begin(), names.end());
  const auto has = [&](const char* name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  std::string chosen = has("model.safetensors.index.json") ? "model.safetensors.index.json"
                       : has("model.safetensors")          ? "model.safetensors"
                                                           : "";
  if (chosen.empty()) chosen = only_file(folder, names, ".safetensors.index.json");
  if (chosen.empty()) chosen = only_file(folder, names, ".safetensors");
  if (chosen.empty())
    fail(ErrorKind::not_found, "safetensors: ", folder,
         ": the folder has no file that ends in .safetensors or .safetensors.index.json");
  return fs::path(folder) / chosen;
}

bool is_loadable(const TensorInfo& info) {
  return info.dtype && info.shape.size() <= size_t(kMaxRank);
}

DType loadable_dtype(const TensorInfo& info, const std::string& path) {
  if (info.shape.size() > size_t(kMaxRank))
    fail(ErrorKind::value, "safetensors: ", path, ": tensor ", in_quotes(info.name), " has ",
         info.shape.size(), " dimensions, at most ", kMaxRank, " can be loaded");
  if (!info.dtype)
    fail(ErrorKind::type, "safetensors: ", path, ": tensor ", in_quotes(info.name), " has dtype ",
         info.format, ", which cannot be loaded; accepted: ", safetensors::loadable_formats(),
         "; convert it to one of them and save the file again");
  return *info.dtype;
}

}  // namespace

// Reads tensors to one device.
class SafeTensors::Loader {
 public:
  Loader(Device device, const LoadOptions& options, uint64_t total)
      : device_(device),
        source_(options.source ? *options.source : allocator(device)),
        stream_(options.stream ? *options.stream : current_stream(device.index)),
        options_(options),
        total_(total) {}
  // Files and memory go after the copies that still use them.
  ~Loader() {
    for (const Upload& upload : uploads_) upload.transfer.cancel();
    for (const Upload& upload : uploads_)
      while (!upload.transfer.done()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // In the order of the entries.
  std::vector<std::shared_ptr<const TensorResource>> load(const std::vector<const Entry*>& wanted) {
    std::vector<std::shared_ptr<const TensorResource>> resources;
    resources.reserve(wanted.size());
    for (const Entry* entry : wanted) {
      if (device_.is_cuda())
        begin_upload(*entry);
      else
        resources.push_back(read(*entry));
    }
    for (; !uploads_.empty(); uploads_.pop_front()) resources.push_back(finish(uploads_.front()));
    return resources;
  }

 private:
  struct Upload {
    const Entry* entry;
    std::shared_ptr<Tensor> storage;
    std::optional<uint64_t> checksum;
    Transfer transfer;
  };

  // Into memory of the host, with the checksum of the bytes.
  std::shared_ptr<const TensorResource> read(const Entry& entry) {
    Tensor storage = empty(entry);
    const std::optional<uint64_t> checksum =
        read_to(storage.data_as<std::byte>(), entry, [this](uint64_t bytes) { report(bytes); });
    entry.shard->file.check_unchanged();
    return std::make_shared<const TensorResource>(entry.info.name, std::move(storage), checksum);
  }

  // The engine's threads read pieces to page-locked memory while others are copied. A checksum
  // needs the bytes in order, so for one they are read here first.
  void begin_upload(const Entry& entry) {
    const auto storage = std::make_shared<Tensor>(empty(entry));
    transfer::Request request{.to = storage->data(),
                              .bytes = storage->nbytes(),
                              .after = {storage->stream()},
                              .keep = storage};
    std::optional<uint64_t> checksum;
    if (options_.checksum) {
      const auto host = std::make_shared<Tensor>(storage->dtype(), storage->shape());
      checksum = read_to(host->data_as<std::byte>(), entry, [](uint64_t) {});
      request.from = host->data();
      request.keep = std::make_shared<std::pair<std::shared_ptr<Tensor>, std::shared_ptr<Tensor>>>(
          storage, host);
      constexpr size_t kHostCopies = 2;  // of tensors that are read and not yet copied
      if (uploads_.size() >= kHostCopies) uploads_[uploads_.size() - kHostCopies].transfer.wait();
    } else {
      const uint64_t begin = entry.shard->data_offset + entry.info.begin;
      request.produce = [&file = entry.shard->file, begin](void* to, size_t at, size_t bytes) {
        file.read(to, bytes, begin + at);
      };
    }
    Transfer transfer = TransferEngine::instance(device_).submit(std::move(request));
    uploads_.push_back({&entry, storage, checksum, std::move(transfer)});
    check_interrupt();
  }

  std::shared_ptr<const TensorResource> finish(Upload& upload) {
    const uint64_t before = done_;
    while (options_.progress && !upload.transfer.done()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      report(before + upload.transfer.bytes_copied() - done_);
      check_interrupt();
    }
    upload.transfer.wait();
    report(before + upload.entry->info.nbytes() - done_);
    upload.entry->shard->file.check_unchanged();
    return std::make_shared<const TensorResource>(upload.entry->info.name,
                                                  std::move(*upload.storage), upload.checksum);
  }

  Tensor empty(const Entry& entry) const {
    const InputFile& file = entry.shard->file;
    const DType dtype = loadable_dtype(entry.info, file.path());
    file.check_unchanged();
    return Tensor(dtype, Dims(entry.info.shape), device_, stream_, source_);
  }

  // All bytes of a tensor, piece by piece.
  template <class Report>
  std::optional<uint64_t> read_to(std::byte* to, const Entry& entry, Report&& report) {
    constexpr uint64_t kPiece = uint64_t(16) << 20;
    const uint64_t bytes = entry.info.nbytes();
    XXH3_state_t hash;
    XXH3_64bits_reset(&hash);
    for (uint64_t done = 0; done < bytes;) {
      const size_t piece = std::min(bytes - done, kPiece);
      entry.shard->file.read(to + done, piece, entry.shard->data_offset + entry.info.begin + done);
      if (options_.checksum) XXH3_64bits_update(&hash, to + done, piece);
      done += piece;
      report(piece);
      check_interrupt();
    }
    if (!options_.checksum) return std::nullopt;
    return XXH3_64bits_digest(&hash);
  }

  void report(uint64_t bytes) {
    if (bytes == 0) return;
    done_ += bytes;
    if (options_.progress) options_.progress(done_, total_);
  }

  Device device_;
  Allocator& source_;
  StreamRef stream_;
  const LoadOptions& options_;
  uint64_t total_, done_ = 0;
  std::deque<Upload> uploads_;
};

void TensorResource::verify() const {
  if (!checksum_)
    fail(ErrorKind::value, "verify: ", in_quotes(name_),
         " was loaded without a checksum; load it with LoadOptions{.checksum = true}");
  uint64_t hash = 0;
  if (storage_.device().is_cuda()) {
    const Tensor host = storage_.to(Device::cpu());
    hash = XXH3_64bits(host.data(), host.nbytes());
  } else {
    hash = XXH3_64bits(storage_.data(), storage_.nbytes());
  }
  if (hash != *checksum_)
    fail(ErrorKind::internal, "verify: the bytes of ", in_quotes(name_), " on ", storage_.device(),
         " changed since they were loaded; something wrote outside its own memory");
}

SafeTensors::SafeTensors(const std::string& path) {
  // Absolute, so that a later change of folder does not matter.
  std::error_code error;
  path_ = fs::absolute(path, error);
  if (path.empty() || error)
    fail(ErrorKind::not_found, "safetensors: ", in_quotes(path), " is not the path of a file");
  if (fs::is_directory(path_, error)) path_ = file_in_folder(path_);
  is_index(path_) ? open_index(path_) : add_shard(path_);
}

SafeTensors::~SafeTensors() = default;
SafeTensors::SafeTensors(SafeTensors&&) noexcept = default;
SafeTensors& SafeTensors::operator=(SafeTensors&&) noexcept = default;

void SafeTensors::add_shard(const std::string& path) {
  auto shard = std::make_unique<Shard>(path);
  safetensors::Header header = read_header(shard->file);
  shard->data_offset = header.data_offset;
  for (TensorInfo& info : header.tensors) {
    const std::string name = info.name;
    const auto [at, added] = entries_.try_emplace(name, Entry{shard.get(), std::move(info)});
    if (!added)
      refuse(path, Refusal::in_two_shards,
             join("tensor ", in_quotes(name), " is also in ", at->second.shard->file.path()));
    names_.push_back(name);
  }
  std::move(header.metadata.begin(), header.metadata.end(), std::back_inserter(metadata_));
  shards_.push_back(std::move(shard));
}

void SafeTensors::open_index(const std::string& path) {
  const InputFile file(path);
  if (file.size() > safetensors::kMaxHeaderBytes)
    refuse(path, Refusal::header_too_long,
           join("the index has ", file.size(), " bytes, at most ", safetensors::kMaxHeaderBytes,
                " are accepted"));
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size(), 0);
  file.check_unchanged();
  const safetensors::ShardMap map = accepted(safetensors::parse_index(text), path);

  const fs::path folder = fs::path(path).parent_path();
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map) shards.insert(shard);
  for (const std::string& shard : shards) add_shard(folder / shard);
  for (const auto& [tensor, shard] : map) {
    const auto at = entries_.find(tensor);
    if (at == entries_.end() || at->second.shard->file.path() != folder / shard)
      refuse(path, Refusal::not_in_shard,
             join("tensor ", in_quotes(tensor), " is not in shard ", in_quotes(shard)));
  }
  if (map.size() == entries_.size()) return;
  std::set<std::string_view> listed;
  for (const auto& [tensor, shard] : map) listed.insert(tensor);
  for (const std::string& name : names_)
    if (!listed.contains(name))
      refuse(path, Refusal::not_in_index,
             join("tensor ", in_quotes(name), " of ", entries_.at(name).shard->file.path(),
                  " is not in the index"));
}

const SafeTensors::Entry& SafeTensors::entry(std::string_view name) const {
  const auto at = entries_.find(name);
  if (at != entries_.end()) return at->second;
  fail(ErrorKind::key, "safetensors: ", path_, ": no tensor is named ", in_quotes(name),
       "; it has ", names_.size(), some_names(names_));
}

const TensorInfo& SafeTensors::info(std::string_view name) const { return entry(name).info; }

uint64_t SafeTensors::nbytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, entry] : entries_) bytes += entry.info.nbytes();
  return bytes;
}

std::shared_ptr<const TensorResource> SafeTensors::load(std::string_view name, Device device,
                                                        const LoadOptions& options) const {
  const Entry& wanted = entry(name);
  return Loader(device, options, wanted.info.nbytes()).load({&wanted}).front();
}

std::vector<std::shared_ptr<const TensorResource>> SafeTensors::load_all(
    Device device, const LoadOptions& options) const {
  std::vector<const Entry*> wanted;
  uint64_t bytes = 0;
  for (const std::string& name : names_) {
    const Entry& entry = entries_.at(name);
    if (options.skip_refused && !is_loadable(entry.info)) continue;
    // A tensor that cannot be loaded is refused before any data is read.
    loadable_dtype(entry.info, entry.shard->file.path());
    wanted.push_back(&entry);
    bytes += entry.info.nbytes();
  }
  return Loader(device, options, bytes).load(wanted);
}

Weights::Weights(const std::vector<std::shared_ptr<const TensorResource>>& tensors) {
  for (const auto& tensor : tensors) tensors_.emplace(tensor->name(), tensor);
}

TensorView Weights::at(std::string_view name, std::source_location where) const {
  if (const auto found = tensors_.find(name); found != tensors_.end()) return found->second->view();
  fail({ErrorKind::key, where}, "weights: no tensor is named ", in_quotes(name), "; there are ",
       tensors_.size(), some_names(std::views::keys(tensors_)));
}

std::vector<std::string_view> Weights::names() const {
  const auto names = std::views::keys(tensors_);
  return {names.begin(), names.end()};
}

Weights load_safetensors(const std::string& path, Device device, std::source_location where) {
  return at_line(where, [&] { return Weights(SafeTensors(path).load_all(device)); });
}

}  // namespace tensorcraft
