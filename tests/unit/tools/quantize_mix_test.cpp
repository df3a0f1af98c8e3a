// The type of each tensor, against what llama.cpp chooses for models of several kinds (recorded by
// scripts/make_quantize_mixes.py).
#include "tools/quantize/mix.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "ggml-like/error.h"
#include "tools/name_pattern.h"

using namespace infer;

namespace {

struct Fixture {
  std::string name;
  MixModel model;
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> shapes;
  std::map<std::string, std::vector<DataType>> types;  // "Q4_K_M", "Q4_0 imatrix"

  std::vector<MixTensor> tensors() const {
    std::vector<MixTensor> all;
    for (size_t i = 0; i < names.size(); ++i) all.push_back({names[i], DataType::kF32, shapes[i]});
    return all;
  }
};

std::vector<Fixture> load_fixtures() {
  std::ifstream in(std::string(INFER_SOURCE_DIR) + "/tests/data/quantize_mixes.json");
  const auto document = nlohmann::json::parse(in);
  std::vector<Fixture> fixtures;
  for (const auto& m : document["models"]) {
    Fixture f{m["name"], {m["architecture"], m["n_layer"], m["n_head"], m["n_kv_head"], m["n_expert"]}, {}, {}, {}};
    for (const auto& tensor : m["tensors"]) {
      f.names.push_back(tensor[0]);
      f.shapes.push_back(tensor[1]);
    }
    for (const auto& [type, letters] : m["types"].items()) {
      for (const char letter : letters.get<std::string>()) {
        f.types[type].push_back(find_type(document["letters"][std::string(1, letter)].get<std::string>())->type);
      }
    }
    fixtures.push_back(std::move(f));
  }
  return fixtures;
}

MixModel small_model() { return {"llama", 4, 8, 8, 0}; }

// The type that `options` give to one tensor of 256 x 256 among others of a small model.
DataType choice(const MixOptions& options, const char* name, int64_t row = 256, DataType type = DataType::kF32) {
  const int64_t square[] = {256, 256}, shape[] = {256, row};
  const MixTensor tensors[] = {
      {"token_embd.weight", DataType::kF32, square}, {"output.weight", DataType::kF32, square}, {name, type, shape}};
  const bool is_new = name != tensors[0].name && name != tensors[1].name;
  const std::span<const MixTensor> all(tensors, is_new ? 3 : 2);
  const auto choices = choose_types(small_model(), all, options);
  return choices[is_new ? 2 : name == tensors[0].name ? 0 : 1].type;
}

}  // namespace

TEST_CASE("mixes: every tensor of every model gets the type llama.cpp gives it") {
  int n = 0;
  for (const Fixture& f : load_fixtures()) {
    CAPTURE(f.name);
    const std::vector<MixTensor> tensors = f.tensors();
    for (const auto& [key, expected] : f.types) {
      CAPTURE(key);
      const size_t space = key.find(' ');
      MixOptions options;
      options.type = find_file_type(key.substr(0, space))->type;
      options.has_importance = space != std::string::npos;
      const std::vector<MixChoice> found = choose_types(f.model, tensors, options);
      REQUIRE(found.size() == expected.size());
      for (size_t i = 0; i < found.size(); ++i, ++n) {
        CAPTURE(f.names[i]);
        CHECK(traits(found[i].type).name == traits(expected[i]).name);
      }
    }
  }
  CHECK(n > 40000);
}

TEST_CASE("mixes: the order of the tensors in the file does not matter") {
  for (const Fixture& f : load_fixtures()) {
    CAPTURE(f.name);
    std::vector<MixTensor> tensors = f.tensors();
    MixOptions options;
    options.type = FileType::kQ4_K_M;
    std::reverse(tensors.begin(), tensors.end());
    std::vector<MixChoice> found = choose_types(f.model, tensors, options);
    std::reverse(found.begin(), found.end());
    const auto& expected = f.types.at("Q4_K_M");
    for (size_t i = 0; i < found.size(); ++i) CHECK(found[i].type == expected[i]);
  }
}

TEST_CASE("mixes: types requested by the user") {
  MixOptions o;
  o.type = FileType::kQ4_K_M;
  CHECK(choice(o, "blk.0.attn_q.weight") == DataType::kQ4_K);
  CHECK(choice(o, "output.weight") == DataType::kQ6_K);
  CHECK(choice(o, "token_embd.weight") == DataType::kQ4_K);

  o.pure = true;
  CHECK(choice(o, "output.weight") == DataType::kQ4_K);
  CHECK(choice(o, "blk.3.ffn_down.weight") == DataType::kQ4_K);
  CHECK(choice(o, "blk.3.ffn_norm.weight") == DataType::kF32);
  o.pure = false;

  o.output_type = DataType::kQ8_0;
  o.token_embedding_type = DataType::kF16;
  CHECK(choice(o, "output.weight") == DataType::kQ8_0);
  CHECK(choice(o, "token_embd.weight") == DataType::kF16);
  o.leave_output = true;
  CHECK(choice(o, "output.weight") == DataType::kF32);

  o.override_type = [](std::string_view name) -> std::optional<DataType> {
    if (name.find("attn") == std::string_view::npos) return std::nullopt;
    return DataType::kQ6_K;
  };
  CHECK(choice(o, "blk.0.attn_q.weight") == DataType::kQ6_K);
  CHECK(choice(o, "blk.0.attn_q.weight", 96) == DataType::kQ8_0);
  CHECK(choice(o, "blk.0.attn_q.weight", 90) == DataType::kF16);
  CHECK(choice(o, "blk.0.attn_norm.weight") == DataType::kF32);
  CHECK(choice(o, "blk.0.ffn_up.weight") == DataType::kQ4_K);
}

TEST_CASE("mixes: tied embeddings get the type requested for the output") {
  const int64_t square[] = {256, 256};
  const MixTensor only[] = {{"token_embd.weight", DataType::kF32, square}};
  MixOptions o;
  CHECK(choose_types(small_model(), only, o)[0].type == DataType::kQ6_K);
  o.output_type = DataType::kQ8_0;
  CHECK(choose_types(small_model(), only, o)[0].type == DataType::kQ8_0);
  o.token_embedding_type = DataType::kQ5_K;
  CHECK(choose_types(small_model(), only, o)[0].type == DataType::kQ5_K);
}

TEST_CASE("mixes: unusual models do no harm") {
  const int64_t shape[] = {256, 256}, one[] = {1}, flat[] = {1, 256};
  const MixTensor tensors[] = {{"blk.99999999999999999999.ffn_down.weight", DataType::kF32, shape},
                               {"blk.-1.ffn_down.weight", DataType::kF32, shape},
                               {"blk..ffn_down.weight", DataType::kF32, shape},
                               {"weight", DataType::kF32, one},
                               {"flat.weight", DataType::kF32, flat},
                               {"", DataType::kF32, shape}};
  for (const FileTypeInfo& info : file_types()) {
    for (const int64_t n_expert : {0, 8, -1}) {
      MixOptions o;
      o.type = info.type;
      const auto choices = choose_types({"", -5, 0, 0, n_expert}, tensors, o);
      CHECK(choices[3].type == DataType::kF32);
      CHECK(choices[4].type == DataType::kF32);
      CHECK(choices[5].type == DataType::kF32);
    }
  }
}

TEST_CASE("file types: names and numbers") {
  for (const FileTypeInfo& info : file_types()) {
    CHECK(find_file_type(info.name) == &info);
    CHECK(&file_type_info(info.type) == &info);
    for (const FileTypeInfo& other : file_types()) CHECK((&info == &other) == (info.number == other.number));
  }
  CHECK(file_types().size() == 35);
  CHECK(find_file_type("q4_k_m")->number == 15);
  CHECK(find_file_type("q4_k")->type == FileType::kQ4_K_M);
  CHECK(find_file_type("mxfp4_moe")->type == FileType::kMXFP4);
  for (const char* name : {"", "Q4", "Q4_K_", "Q4_K_MM", " Q8_0"}) CHECK(find_file_type(name) == nullptr);
}

TEST_CASE("name patterns") {
  CHECK(NamePattern("-x", "ffn_(up|gate)").matches("blk.3.ffn_up.weight"));
  CHECK(NamePattern("-x", R"(^blk\.[0-3]\.)").matches("blk.3.ffn_up.weight"));
  CHECK_FALSE(NamePattern("-x", R"(^blk\.[0-3]\.)").matches("blk.13.ffn_up.weight"));
  CHECK_FALSE(NamePattern("-x", "x").matches(""));
  CHECK_THROWS_AS(NamePattern("-x", "a(b"), Error);
  CHECK_THROWS_AS(NamePattern("-x", ""), Error);
  CHECK_THROWS_AS(NamePattern("-x", std::string(100000, '(')), Error);
  // A naive matcher would take exponential time.
  CHECK_THROWS_AS(NamePattern("-x", "^(([a-z])+.)+[A-Z]([a-z])+$").matches(std::string(60, 'a')), Error);
}
