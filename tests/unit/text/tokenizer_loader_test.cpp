// Vocabularies from GGUF metadata: defaults of each model, what the file's keys override, and files that are refused.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "src/model/vocabulary_loader.h"

namespace infer {
namespace {

using Metadata = std::vector<std::pair<std::string, GgufValue>>;

std::pair<std::string, GgufValue> text(const char* key, const char* value) {
  return {std::string("tokenizer.ggml.") + key, GgufValue::of_string(value)};
}
std::pair<std::string, GgufValue> number(const char* key, int64_t value) {
  return {std::string("tokenizer.ggml.") + key, GgufValue::of_int(GgufType::kUint32, value)};
}
std::pair<std::string, GgufValue> texts(const char* key, std::vector<std::string> values) {
  return {std::string("tokenizer.ggml.") + key, GgufValue::of_strings(std::move(values))};
}

Vocabulary load(Metadata metadata) {
  const auto path = std::filesystem::temp_directory_path() / ("infer_vocabulary_" + std::to_string(getpid()) + ".gguf");
  GgufWriter(path, std::move(metadata), {}).finish();
  const auto file = GgufFile::open(path);
  std::filesystem::remove(path);
  return load_vocabulary(*file);
}

std::string error_of(Metadata metadata, ErrorCode code) {
  try {
    load(std::move(metadata));
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("defaults of a SentencePiece vocabulary, limited to its size") {
  const Vocabulary v = load({text("model", "llama"), texts("tokens", {"<unk>", "<s>"})});
  CHECK(v.model == TokenizerModel::kSentencePiece);
  CHECK(v.unk == 0);
  CHECK(v.bos == 1);
  CHECK(v.eos == kNoToken);  // 2 is past the end
  CHECK(v.add_bos);
  CHECK_FALSE(v.add_eos);
  CHECK(v.add_space_prefix);
  CHECK(v.tokens[1].type == TokenType::kNormal);
}

TEST_CASE("keys of the file override the defaults") {
  const Vocabulary v = load({text("model", "llama"),
                             texts("tokens", {"<unk>", "<s>", "x"}),
                             {"tokenizer.ggml.scores", GgufValue::of_floats({0, -1, -2.5F})},
                             {"tokenizer.ggml.token_type", GgufValue::of_ints(GgufType::kInt32, {2, 3, 99})},
                             {"tokenizer.ggml.add_bos_token", GgufValue::of_bool(false)},
                             {"tokenizer.ggml.add_space_prefix", GgufValue::of_bool(false)},
                             {"general.name", GgufValue::of_string("Phi-3")},
                             number("eos_token_id", 2),
                             number("padding_token_id", 0xFFFFFFFF),
                             number("seperator_token_id", 1)});
  CHECK_FALSE(v.add_bos);
  CHECK_FALSE(v.add_space_prefix);
  CHECK(v.eos == 2);
  CHECK(v.pad == kNoToken);
  CHECK(v.sep == 1);
  CHECK(v.general_name == "Phi-3");
  CHECK(v.tokens[2].score == -2.5F);
  CHECK(v.tokens[1].type == TokenType::kControl);
  CHECK(v.tokens[2].type == TokenType::kUnused);
}

TEST_CASE("defaults that come with the pre-tokenizer") {
  const auto load_bpe = [](const char* pre) {
    return load({text("model", "gpt2"), text("pre", pre), texts("tokens", {"a", "b"}), texts("merges", {"a b"})});
  };
  CHECK(load_bpe("llama-bpe").ignore_merges);
  CHECK(load_bpe("llama-bpe").add_bos);
  CHECK_FALSE(load_bpe("qwen2").ignore_merges);
  CHECK_FALSE(load_bpe("qwen2").add_bos);
  CHECK_FALSE(load_bpe("gpt-2").escape_whitespaces);
  CHECK(load_bpe("gemma4").escape_whitespaces);
  CHECK(load_bpe("qwen2").merges == std::vector<std::string>{"a b"});
  const Vocabulary gemma = load({text("model", "gemma4"),
                                 texts("tokens", {"a", "b"}),
                                 texts("merges", {"a b"}),
                                 number("bos_token_id", 1),
                                 {"tokenizer.ggml.add_bos_token", GgufValue::of_bool(false)}});
  CHECK(gemma.pre == "gemma4");
  CHECK(gemma.add_bos);
}

TEST_CASE("vocabularies that are refused") {
  CHECK(error_of({text("model", "rwkv")}, ErrorCode::kUnsupported).find("'rwkv'") != std::string::npos);
  CHECK(error_of({text("model", "gpt2"), text("pre", "newest")}, ErrorCode::kUnsupported).find("'newest'") !=
        std::string::npos);
  CHECK(error_of({}, ErrorCode::kInvalidFile).find("model") != std::string::npos);
  CHECK(error_of({text("model", "llama")}, ErrorCode::kInvalidFile).find("tokens") != std::string::npos);
  CHECK(error_of({text("model", "llama"), number("tokens", 3)}, ErrorCode::kInvalidFile).find("tokens") !=
        std::string::npos);
  CHECK(error_of({text("model", "gpt2"), texts("tokens", {"a"})}, ErrorCode::kInvalidFile).find("merges") !=
        std::string::npos);
  CHECK(error_of(
            {text("model", "llama"), texts("tokens", {"a", "b"}), {"tokenizer.ggml.scores", GgufValue::of_floats({1})}},
            ErrorCode::kInvalidFile)
            .find("scores") != std::string::npos);
  CHECK(error_of({text("model", "llama"), texts("tokens", {"a"}), number("eos_token_id", 1)}, ErrorCode::kInvalidFile)
            .find("eos_token_id") != std::string::npos);
  CHECK(error_of({text("model", "t5"), texts("tokens", {"a"}), texts("precompiled_charsmap", {"x"})},
                 ErrorCode::kInvalidFile)
            .find("precompiled_charsmap") != std::string::npos);
}

}  // namespace infer
