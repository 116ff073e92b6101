// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/runtime/safetensors/file.hpp"

#include "tests/runtime/safetensors/writer.hpp"
#include "tests/support/expect_line.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tensorcraft {
namespace {

using test::error_of;
using test::file_bytes;
using test::TemporaryFolder;
using test::tensor_entry;

constexpr const char* kIndex = "model.safetensors.index.json";

std::string header_of(std::initializer_list<std::string> entries) {
  std::string header;
  for (const std::string& entry : entries) header += (header.empty() ? "{" : ",") + entry;
  return header + "}";
}

// One file with the float32 tensor "x" of `bytes` bytes.
std::string one_tensor(uint64_t bytes, std::string_view name = "x") {
  return file_bytes(header_of({tensor_entry(name, "F32", join("[", bytes / 4, "]"), 0, bytes)}),
                    bytes);
}

std::string index_of(std::string_view weight_map) {
  return join(R"({"weight_map":{)", weight_map, "}}");
}

// The kind and the reason's name of the error that opening gives, "" if there is none.
std::string refusal_of(const std::string& path) {
  const auto error = error_of([&] { SafeTensors{path}; });
  if (!error) return "";
  const std::string text = error->what();
  const size_t bracket = text.rfind('[');
  return join(to_string(error->kind()), bracket == text.npos ? "" : " " + text.substr(bracket));
}

class Shards : public ::testing::Test {
 protected:
  Shards() {
    folder.write("1.safetensors", one_tensor(8, "a"));
    folder.write("2.safetensors", one_tensor(12, "b"));
  }
  std::string with_map(std::string_view weight_map) {
    folder.write(kIndex, index_of(weight_map));
    return refusal_of(folder.path());
  }
  TemporaryFolder folder;
};

}  // namespace

TEST(SafeTensors, ListsWhatAFileHolds) {
  const TemporaryFolder folder;
  const std::string header =
      header_of({tensor_entry("b", "U8", "[3]", 8, 11), tensor_entry("a", "F32", "[2,1]", 0, 8),
                 R"("__metadata__":{"format":"pt"})"});
  const SafeTensors file(folder.write("x.safetensors", file_bytes(header, 11)));
  EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(file.contains("b"));
  EXPECT_FALSE(file.contains("c"));
  EXPECT_EQ(file.info("a").shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(file.nbytes(), 11u);
  EXPECT_EQ(file.metadata().at(0).second, "pt");
}

TEST(SafeTensors, LoadsExactBytesIntoAlignedReadOnlyMemory) {
  const TemporaryFolder folder;
  // "b" is at an odd offset of the file.
  const std::string header =
      header_of({tensor_entry("a", "U8", "[3]", 0, 3), tensor_entry("b", "I32", "[2,2]", 3, 19),
                 tensor_entry("e", "F16", "[0,4]", 19, 19), tensor_entry("s", "I8", "[]", 19, 20)});
  const SafeTensors file(folder.write("x.safetensors", file_bytes(header, 20)));
  const auto b = file.load("b");
  EXPECT_EQ(b->view().shape(), (Dims{2, 2}));
  EXPECT_EQ(b->view().dtype(), DType::int32);
  EXPECT_TRUE(b->view().is_aligned(64));
  EXPECT_TRUE(b->view().read_only());
  for (int i = 0; i < 16; ++i) EXPECT_EQ(b->view().data_as<const uint8_t>()[i], 3 + i);
  const auto all = file.load_all();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[2]->view().shape(), (Dims{0, 4}));
  EXPECT_EQ(all[2]->view().data(), nullptr);
  EXPECT_EQ(all[3]->view().rank(), 0);
  EXPECT_EQ(*all[3]->view().data_as<const uint8_t>(), 19);
}

TEST(SafeTensors, NeverLetsOneWriteThroughAResource) {
  using View = decltype(std::declval<const TensorResource&>().view());
  static_assert(std::is_same_v<View, TensorView>, "the view carries its access");
  static_assert(!std::is_copy_constructible_v<TensorResource>);
  const TemporaryFolder folder;
  const auto x = SafeTensors(folder.write("x.safetensors", one_tensor(16))).load("x");
  EXPECT_TRUE(x->view().read_only());
  EXPECT_TRUE(x->view().reshape({2, 2}).read_only());
  EXPECT_TRUE(x->view().slice(0, 1, 3).read_only());
  EXPECT_TRUE(x->view().select(0, 1).read_only());
  for (const TensorView& t : {x->view(), x->view().reshape({2, 2}), x->view().slice(0, 1, 3)}) {
    static_assert(std::is_same_v<decltype(t.data()), const void*>);
    const auto refused = error_of([&] { t.writable_data(); });
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->kind(), ErrorKind::buffer);
    EXPECT_TRUE(error_of([&] { t.data_as<uint8_t>(); }));
  }
}

TEST(SafeTensors, GivesResourcesThatOutliveTheFile) {
  const TemporaryFolder folder;
  std::shared_ptr<const TensorResource> x;
  {
    const SafeTensors file(folder.write("x.safetensors", one_tensor(16)));
    x = file.load("x");
  }
  std::filesystem::remove(folder.path() + "/x.safetensors");
  EXPECT_EQ(x->view().data_as<const uint8_t>()[15], 15);
}

TEST(SafeTensors, VerifiesAgainstTheChecksumOfTheLoad) {
  const TemporaryFolder folder;
  const SafeTensors file(folder.write("x.safetensors", one_tensor(1024)));
  const auto x = file.load("x", Device::cpu(), {.checksum = true});
  EXPECT_NO_THROW(x->verify());
  const_cast<uint8_t*>(x->view().data_as<const uint8_t>())[1023] ^= 1;  // a stray write
  const auto changed = error_of([&] { x->verify(); });
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->kind(), ErrorKind::internal);
  const auto without = error_of([&] { file.load("x")->verify(); });
  ASSERT_TRUE(without);
  EXPECT_EQ(without->kind(), ErrorKind::value);
}

TEST(SafeTensors, NamesAnUnknownTensorAndWhatThereIs) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.safetensors", one_tensor(4));
  const SafeTensors file(path);
  const auto error = error_of([&] { file.load("y"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::key);
  EXPECT_EQ(error->what(), "safetensors: " + path + ": no tensor is named \"y\"; it has 1: \"x\"");
}

TEST(SafeTensors, OpensAFileWithATensorItCannotLoad) {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "x.safetensors", file_bytes(header_of({tensor_entry("d", "F64", "[1]", 0, 8),
                                             tensor_entry("r", "U8", "[1,1,1,1,1,1,1,1,1]", 8, 9),
                                             tensor_entry("u", "U8", "[1,1,1,1,1,1,1,1]", 9, 10)}),
                                  10));
  const SafeTensors file(path);
  EXPECT_EQ(file.load("u")->view().rank(), 8);
  const auto type = error_of([&] { file.load("d"); });
  ASSERT_TRUE(type);
  EXPECT_EQ(type->kind(), ErrorKind::type);
  EXPECT_EQ(type->what(), "safetensors: " + path +
                              ": tensor \"d\" has dtype F64, which cannot be loaded; accepted: "
                              "F32, F16, BF16, F8_E4M3, F8_E5M2, I8, I16, I32, I64, U8, BOOL; "
                              "convert it to one of them and save the file again");
  const auto rank = error_of([&] { file.load("r"); });
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->kind(), ErrorKind::value);
  bool began = false;
  const auto all = error_of(
      [&] { file.load_all(Device::cpu(), {.progress = [&](auto, auto) { began = true; }}); });
  ASSERT_TRUE(all);
  EXPECT_FALSE(began);
  const auto others = file.load_all(Device::cpu(), {.skip_refused = true});
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0]->name(), "u");
}

TEST(SafeTensors, SaysTheFileAndTheReasonOfARefusal) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.safetensors", one_tensor(8).substr(0, 60));
  const auto error = error_of([&] { SafeTensors{path}; });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::value);
  EXPECT_TRUE(std::string_view(error->what()).starts_with("safetensors: " + path + ": "));
  EXPECT_EQ(refusal_of(folder.write("e.safetensors", "")), "value [file_too_short]");
  EXPECT_EQ(refusal_of(folder.write("l.safetensors", one_tensor(8) + "x")),
            "value [file_too_long]");
  EXPECT_EQ(refusal_of(folder.path() + "/missing.safetensors"), "not_found");
  EXPECT_EQ(refusal_of(""), "not_found");
}

TEST(SafeTensors, FindsTheFileOfAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal_of(folder.path()), "not_found");
  folder.write("a.safetensors", one_tensor(4, "a"));
  EXPECT_EQ(SafeTensors(folder.path()).names()[0], "a");
  folder.write("b.safetensors", one_tensor(4, "b"));
  EXPECT_EQ(refusal_of(folder.path()), "value");
  folder.write("model.safetensors", one_tensor(4, "m"));
  EXPECT_EQ(SafeTensors(folder.path()).names()[0], "m");
}

TEST(SafeTensors, ReportsProgressUpToTheTotal) {
  const TemporaryFolder folder;
  const uint64_t bytes = 40u << 20;
  const SafeTensors file(folder.write("x.safetensors", one_tensor(bytes)));
  std::vector<uint64_t> done;
  file.load_all(Device::cpu(), {.progress = [&](uint64_t d, uint64_t total) {
                  EXPECT_EQ(total, bytes);
                  done.push_back(d);
                }});
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_GE(done.size(), 2u);
  EXPECT_EQ(done.back(), bytes);
}

// W13: the callback changes the file while it is read.
TEST(SafeTensors, NoticesAFileThatChangesDuringTheLoad) {
  const TemporaryFolder folder;
  const uint64_t bytes = 40u << 20;
  const std::string content = one_tensor(bytes);
  const auto load_while = [&](auto&& change) -> std::string {
    const std::string path = folder.write("x.safetensors", content);
    const SafeTensors file(path);
    bool changed = false;
    const auto error = error_of([&] {
      file.load("x", Device::cpu(), {.progress = [&](auto, auto) {
                  if (!changed) change(path);
                  changed = true;
                }});
    });
    if (!error || error->kind() != ErrorKind::io) return "";
    const std::string text = error->what();
    return text.substr(text.rfind('['));
  };
  namespace fs = std::filesystem;
  EXPECT_EQ(load_while([](const std::string&) {}), "");
  EXPECT_EQ(load_while([](auto& path) { fs::resize_file(path, 17u << 20); }), "[short_read]");
  EXPECT_EQ(load_while([&](auto& path) { fs::resize_file(path, content.size() + 1); }),
            "[changed_while_reading]");
  EXPECT_EQ(load_while([&](auto& path) { fs::rename(folder.write("other", content), path); }),
            "[changed_while_reading]");
}

// Promise 19's shape: 200 GB that no disk holds, read in the parts that are asked for.
TEST(SafeTensors, ReadsFromASparseFileOf200GB) {
  const TemporaryFolder folder;
  const uint64_t half = 100'000'000'000;
  const std::string header =
      header_of({tensor_entry("big", "U8", "[100000000000]", 0, half),
                 tensor_entry("small", "U8", "[4]", half, half + 4),
                 tensor_entry("rest", "U8", "[100000000000]", half + 4, 2 * half + 4)});
  const std::string path = folder.write("x.safetensors", file_bytes(header, 0));
  std::error_code error;
  std::filesystem::resize_file(path, 8 + header.size() + 2 * half + 4, error);
  if (error) GTEST_SKIP() << "this file system has no files of 200 GB: " << error.message();
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(std::streamoff(8 + header.size() + half))
      .write("abcd", 4);
  const auto small = SafeTensors(path).load("small");
  EXPECT_EQ(std::string_view(small->view().data_as<const char>(), 4), "abcd");
}

TEST_F(Shards, LoadFromTheFilesTheIndexNames) {
  EXPECT_EQ(with_map(R"("b":"2.safetensors","a":"1.safetensors")"), "");
  const SafeTensors model(folder.path());
  EXPECT_EQ(model.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(model.load("b")->view().nbytes(), 12u);
  EXPECT_EQ(SafeTensors(folder.path() + "/" + kIndex).load("a")->view().nbytes(), 8u);
}

TEST_F(Shards, RefuseAnIndexThatDoesNotAgreeWithThem) {
  EXPECT_EQ(with_map(R"("a":"1.safetensors","b":"1.safetensors")"), "value [not_in_shard]");
  EXPECT_EQ(with_map(R"("a":"2.safetensors","b":"1.safetensors")"), "value [not_in_shard]");
  EXPECT_EQ(with_map(R"("a":"1.safetensors","b":"3.safetensors")"), "not_found");
  EXPECT_EQ(with_map(R"("a":"../1.safetensors")"), "value [bad_shard_name]");
  folder.write("1.safetensors", file_bytes(header_of({tensor_entry("a", "U8", "[1]", 0, 1),
                                                      tensor_entry("c", "U8", "[1]", 1, 2)}),
                                           2));
  EXPECT_EQ(with_map(R"("a":"1.safetensors","b":"2.safetensors")"), "value [not_in_index]");
  folder.write("1.safetensors", one_tensor(4, "b"));
  EXPECT_EQ(with_map(R"("a":"1.safetensors","b":"2.safetensors")"), "value [in_two_shards]");
}

TEST_F(Shards, RefuseATruncatedShard) {
  folder.write("2.safetensors", one_tensor(12, "b").substr(0, 70));
  EXPECT_EQ(with_map(R"("a":"1.safetensors","b":"2.safetensors")"), "value [truncated_file]");
}

TEST_F(Shards, LoadSafetensorsGivesEveryTensorByItsName) {
  with_map(R"("a":"1.safetensors","b":"2.safetensors")");
  const Weights weights = load_safetensors(folder.path());
  EXPECT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights.names(), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_TRUE(weights.contains("a") && !weights.contains("c"));
  EXPECT_EQ(weights.at("b").shape(), Dims{3});
  EXPECT_TRUE(weights.at("b").read_only());
  const Weights copy = weights;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(copy.at("a").data(), weights.at("a").data());
}

TEST_F(Shards, LoadSafetensorsNamesTheCallersLine) {
  with_map(R"("a":"1.safetensors","b":"2.safetensors")");
  const Weights weights = load_safetensors(folder.path());
  test::expect_line([&] { weights.at("c"); });
  test::expect_line([&] { load_safetensors(folder.path() + "/no_such_file"); });
  const auto error = error_of([&] { weights.at("c"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::key);
  EXPECT_STREQ(error->what(), "weights: no tensor is named \"c\"; there are 2: \"a\", \"b\"");
}

}  // namespace tensorcraft
