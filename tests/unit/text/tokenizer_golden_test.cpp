// Every reference case of every vocabulary in ../shared/goldens/tokenizer: text to ids, ids to bytes and to streamed
// text, special ids, and the ids of rendered chat prompts.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "ggml-like/gguf.h"
#include "src/model/vocabulary_loader.h"
#include "src/text/detokenizer.h"
#include "src/text/tokenizer.h"
#include "tests/support/skip.h"

namespace infer {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

json read_json(const fs::path& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), path.string());
  return json::parse(in);
}

std::shared_ptr<const Tokenizer> load(const fs::path& path) {
  static std::map<fs::path, std::shared_ptr<const Tokenizer>> loaded;
  auto& tokenizer = loaded[path];
  if (!tokenizer) {
    GgufOpenOptions options;
    options.map_data = false;
    tokenizer = std::make_shared<const Tokenizer>(load_vocabulary(*GgufFile::open(path, options)));
  }
  return tokenizer;
}

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// Calls `each(json, file name, tokenizer)` for the reference files that end in `suffix`.
template <typename Each>
void for_each_golden(const char* test_name, const std::string& suffix, Each each) {
  const auto shared = test::shared_dir(test_name);
  if (!shared) return;
  const fs::path folder = *shared / "goldens" / "tokenizer";
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(suffix)) continue;
    const json golden = read_json(entry.path());
    each(golden, name, *load(fs::weakly_canonical(folder / golden["vocab"].get<std::string>())));
    ++files;
  }
  CHECK(files > 0);
}

}  // namespace

TEST_CASE("reference texts have the reference ids") {
  for_each_golden(
      "tokenizer ids", ".tokenize.json", [](const json& golden, const std::string& name, const Tokenizer& t) {
        for (const json& c : golden["cases"]) {
          const std::string text = c["text"];
          CAPTURE(name);
          CAPTURE(json(text.substr(0, 200)).dump(-1, ' ', true, json::error_handler_t::replace));
          CAPTURE(c["add_special"].get<bool>());
          CAPTURE(c["parse_special"].get<bool>());
          CHECK(t.encode(text, c["add_special"], c["parse_special"]) == c["ids"].get<std::vector<TokenId>>());
        }
      });
}

TEST_CASE("special ids are the reference's") {
  for_each_golden("tokenizer info", ".tokenize.json",
                  [](const json& golden, const std::string& name, const Tokenizer& t) {
                    CAPTURE(name);
                    const json& info = golden["info"];
                    CHECK(t.n_tokens() == info["n_tokens"].get<TokenId>());
                    CHECK(t.vocabulary().bos == info["bos"].get<TokenId>());
                    CHECK(t.vocabulary().eos == info["eos"].get<TokenId>());
                    CHECK(t.vocabulary().eot == info["eot"].get<TokenId>());
                    CHECK(t.vocabulary().add_bos == info["add_bos"].get<bool>());
                    CHECK(t.vocabulary().add_eos == info["add_eos"].get<bool>());
                    CHECK(t.eog() == info["eog"].get<std::vector<TokenId>>());
                  });
}

TEST_CASE("reference ids have the reference pieces and stream") {
  for_each_golden("detokenizer", ".detokenize.json",
                  [](const json& golden, const std::string& name, const Tokenizer& t) {
                    for (const json& c : golden["cases"]) {
                      CAPTURE(name);
                      CAPTURE(c["ids"].dump());
                      Detokenizer stream;
                      const auto ids = c["ids"].get<std::vector<TokenId>>();
                      for (size_t i = 0; i < ids.size(); ++i) {
                        CAPTURE(ids[i]);
                        CHECK(t.piece(ids[i], true) == from_hex(c["pieces_hex"][i]));
                        CHECK(t.piece(ids[i], false) == from_hex(c["pieces_plain_hex"][i]));
                        CHECK(stream.add(t.piece(ids[i], false)) == c["stream"][i].get<std::string>());
                      }
                      CHECK(stream.flush() == c["stream_flush"].get<std::string>());
                    }
                  });
}

TEST_CASE("rendered chat prompts have the reference ids") {
  const auto shared = test::shared_dir("chat prompt ids");
  if (!shared) return;
  const fs::path folder = *shared / "goldens" / "tokenizer";
  const json golden = read_json(folder / "chat_prompts.json");
  int cases = 0;
  for (const json& c : golden["cases"]) {
    CAPTURE(c["vocab"].get<std::string>());
    CAPTURE(c["prompt"].get<std::string>());
    const auto tokenizer = load(fs::weakly_canonical(folder / c["vocab"].get<std::string>()));
    CHECK(tokenizer->encode(c["prompt"].get<std::string>(), c["add_special"], true) ==
          c["ids"].get<std::vector<TokenId>>());
    ++cases;
  }
  CHECK(cases > 0);
}

}  // namespace infer
