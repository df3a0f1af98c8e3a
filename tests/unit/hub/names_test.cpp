#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "src/hub/hugging_face.h"
#include "src/hub/json.h"
#include "src/hub/model_name.h"
#include "src/hub/probe.h"
#include "src/hub/variants.h"

using namespace infer;

namespace {

std::string canonical(const std::string& text, bool bare = true) {
  const std::optional<ModelName> name = parse_model_name(text, bare);
  return name ? name->text() : "none";
}

std::vector<Variant> variants_of(std::initializer_list<const char*> paths) {
  std::vector<RemoteFile> files;
  for (const char* path : paths) {
    RemoteFile file;
    file.path = path;
    file.size = 1;
    files.push_back(file);
  }
  return group_variants(files);
}

std::string labels(const std::vector<Variant>& variants) {
  std::string text;
  for (const Variant& v : variants) text += (text.empty() ? "" : " ") + v.label + "*" + std::to_string(v.files.size());
  return text;
}

}  // namespace

TEST_CASE("names on Hugging Face") {
  CHECK(canonical("org/repo") == "hf.co/org/repo");
  CHECK(canonical("org/repo:Q4_K_M") == "hf.co/org/repo:Q4_K_M");
  CHECK(canonical("hf.co/org/repo:q4_0") == "hf.co/org/repo:q4_0");
  CHECK(canonical("huggingface.co/org/repo") == "hf.co/org/repo");
  CHECK(canonical("https://huggingface.co/org/repo/") == "hf.co/org/repo");
  CHECK(canonical("https://huggingface.co/org/repo/resolve/main/a/b%20c.gguf?download=true") ==
        "hf.co/org/repo/a/b c.gguf");
  CHECK(canonical("https://huggingface.co/org/repo/blob/main/b.gguf") == "hf.co/org/repo/b.gguf");
  CHECK(canonical("hf.co/org/repo/b.gguf") == "hf.co/org/repo/b.gguf");
  CHECK(parse_model_name("org/repo:Q4_0")->folder() == "hf.co/org/repo");
}

TEST_CASE("names in Ollama's registry") {
  CHECK(canonical("ollama.com/library/qwen3:0.6b") == "ollama.com/library/qwen3:0.6b");
  CHECK(canonical("ollama.com/qwen3") == "ollama.com/library/qwen3:latest");
  CHECK(canonical("https://ollama.com/someone/x") == "ollama.com/someone/x:latest");
  CHECK(canonical("llama3.2") == "ollama.com/library/llama3.2:latest");
  CHECK(canonical("qwen3:0.6b") == "ollama.com/library/qwen3:0.6b");
  CHECK(canonical("x", false) == "none");
  CHECK(canonical("registry.ollama.ai/library/x:y") == "ollama.com/library/x:y");
}

TEST_CASE("names that are URLs") {
  CHECK(canonical("http://host:81/a/x.gguf?token=secret") == "http://host:81/a/x.gguf");
  CHECK(parse_model_name("http://host:81/a/x.gguf?token=secret")->folder() == "url/host_81/a");
  CHECK(parse_model_name("http://host/x.gguf")->folder() == "url/host");
  CHECK(parse_model_name("http://[::1]/x.gguf")->folder() == "url/__1");
}

TEST_CASE("what is no name") {
  for (const char* text : {"",
                           "x.gguf",
                           "x.bin",
                           "x.safetensors:y",
                           ".x",
                           "-x",
                           "x y",
                           "x:",
                           "..",
                           "./org/repo",
                           "/org/repo",
                           "../repo",
                           "a/b/c",
                           "org/x.gguf",
                           "org/.hidden",
                           "org/re po",
                           "org/repo:",
                           "org/repo:a/b",
                           "hf.co/org",
                           "hf.co/../repo",
                           "hf.co/org/..",
                           "hf.co/org/repo/../x.gguf",
                           "hf.co/org/repo/x.bin",
                           "hf.co/org/repo/resolve/dev/x.gguf",
                           "hf.co/org/repo/%2e%2e/x.gguf",
                           "ollama.com/a/b/c",
                           "ollama.com/../b",
                           "ftp://h/x.gguf",
                           "http://h/../../x.gguf",
                           "http://h/%2e%2e/x.gguf",
                           "http://h/a//x.gguf",
                           "http://h/"}) {
    CAPTURE(text);
    CHECK(canonical(text) == "none");
  }
  CHECK(canonical("org/repo", false) == "none");
  CHECK(canonical("hf.co/org/repo", false) == "hf.co/org/repo");
}

TEST_CASE("paths from a server stay in their folder") {
  for (const char* path : {"a", "a/b.gguf", "a b/c", "é.gguf"}) CHECK(is_safe_relative_path(path));
  const std::string long_name(300, 'a');
  for (const std::string& path :
       {std::string(""), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("../a"),
        std::string("a/../b"), std::string("a/."), std::string(".a"), std::string("a\\..\\b"), std::string("a\nb"),
        std::string("a\0b", 3), std::string("\xff"), long_name}) {
    CAPTURE(path);
    CHECK_FALSE(is_safe_relative_path(path));
  }
}

TEST_CASE("quantizations of file names") {
  CHECK(quantization_of("Model-7B-Q4_K_M.gguf") == "Q4_K_M");
  CHECK(quantization_of("model.q8_0.gguf") == "Q8_0");
  CHECK(quantization_of("m-UD-IQ2_XXS.gguf") == "UD-IQ2_XXS");
  CHECK(quantization_of("m-BF16-00001-of-00002.gguf") == "BF16");
  CHECK(quantization_of("Q5_K_S/model.gguf") == "Q5_K_S");
  CHECK(quantization_of("m-MXFP4_MOE.gguf") == "MXFP4_MOE");
  CHECK(quantization_of("gpt-oss-20b-mxfp4.gguf") == "MXFP4");
  CHECK(quantization_of("m-TQ1_0.gguf") == "TQ1_0");
  CHECK(quantization_of("Qwen3-4B-it.gguf") == "");
}

TEST_CASE("files are grouped into variants") {
  CHECK(labels(variants_of({"m-Q8_0.gguf", "m-Q4_K_M.gguf", "README.md", "mmproj-m-F16.gguf", "m-imatrix.gguf",
                            "mtp-m-Q4_0.gguf"})) == "Q4_K_M*1 Q8_0*1");
  const std::vector<Variant> split =
      variants_of({"b/m-BF16-00002-of-00003.gguf", "b/m-BF16-00003-of-00003.gguf", "b/m-BF16-00001-of-00003.gguf"});
  REQUIRE(labels(split) == "BF16*3");
  CHECK(split[0].files[0].path == "b/m-BF16-00001-of-00003.gguf");
  CHECK(split[0].files[2].path == "b/m-BF16-00003-of-00003.gguf");
  CHECK(split[0].size() == 3);
  CHECK(labels(variants_of({"m-Q2_K-00001-of-00002.gguf", "m-Q4_0.gguf"})) == "Q4_0*1");  // a part is missing
  CHECK(labels(variants_of({"m-00001-of-00000.gguf", "m-00000-of-00001.gguf"})) == "*1 *1");
}

TEST_CASE("tags choose variants") {
  const std::vector<Variant> all =
      variants_of({"m-Q4_K_M.gguf", "m-UD-Q4_K_M.gguf", "m-UD-Q2_K.gguf", "n-Q4_K_M.gguf"});
  CHECK(labels(matching_variants(all, "q4_k_m")) == "Q4_K_M*1 Q4_K_M*1");
  CHECK(labels(matching_variants(all, "ud-q4_k_m")) == "UD-Q4_K_M*1");
  CHECK(labels(matching_variants(all, "Q2_K")) == "UD-Q2_K*1");
  CHECK(labels(matching_variants(all, "Q2")) == "");
  CHECK(matching_variants(all, "").size() == 4);
  CHECK(variant_name("hf.co/o/r", all[1], all) == "hf.co/o/r:UD-Q2_K");
  CHECK(variant_name("hf.co/o/r", all[0], all) == "hf.co/o/r/m-Q4_K_M.gguf");
}

TEST_CASE("the preferred variant") {
  const auto first = [](std::initializer_list<const char*> paths) {
    std::vector<Variant> all = variants_of(paths);
    sort_by_preference(all);
    return all.front().label;
  };
  CHECK(first({"m-F16.gguf", "m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-Q2_K.gguf"}) == "Q4_K_M");
  CHECK(first({"m-F16.gguf", "m-Q8_0.gguf", "m-Q2_K.gguf"}) == "Q8_0");
  CHECK(first({"m-UD-Q4_K_XL.gguf", "m-Q4_K_S.gguf"}) == "UD-Q4_K_XL");
  CHECK(first({"m-IQ1_S.gguf", "m-whatever.gguf"}) == "");
  CHECK(first({"m-F32.gguf", "m-whatever.gguf"}) == "F32");
}

TEST_CASE("pages follow each other in the Link header") {
  CHECK(next_page("<https://h/a?cursor=x>; rel=\"next\"") == "https://h/a?cursor=x");
  CHECK(next_page("<https://h/1>; rel=\"first\", <https://h/2>; rel=\"next\"") == "https://h/2");
  CHECK(next_page("<https://h/1>; rel=\"first\"") == "");
  CHECK(next_page("") == "");
  CHECK(next_page(">x<") == "");
}

TEST_CASE("ranges and tags of responses") {
  ContentRange range;
  REQUIRE(parse_content_range("bytes 5-9/100", range));
  CHECK(range.first == 5);
  CHECK(range.last == 9);
  CHECK(range.total == 100);
  for (const char* text : {"", "bytes */100", "bytes 5-9/*", "bytes 9-5/100", "bytes 5-100/100", "5-9/100",
                           "bytes -1-9/100", "bytes 5-9/100x", "bytes 5-99999999999999999999/100"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_content_range(text, range));
  }
  const auto etag = [](const char* value) {
    ResponseHead head;
    head.headers = {{"etag", value}};
    return strong_etag(head);
  };
  CHECK(etag("\"abc\"") == "\"abc\"");
  CHECK(etag("W/\"abc\"") == "");
  CHECK(etag("abc") == "");
  CHECK(etag("\"\"") == "");
}

TEST_CASE("JSON is read within bounds") {
  const auto parse = [](const std::string& text) { return parse_hub_json(text, "test"); };
  CHECK(parse("{\"a\": [1]}").is_object());
  for (const std::string& text :
       {std::string(""), std::string("{"), std::string("1"), std::string("\"x\""), std::string("null"),
        std::string(100000, '['), std::string(40, '[') + std::string(40, ']'), std::string("{} {}")}) {
    CHECK_THROWS_AS(parse(text), Error);
  }
  const nlohmann::json json = parse(R"({"s": "x", "n": 5, "m": -5, "f": 1.5, "big": 9007199254740993, "o": {}})");
  CHECK(json_string(json, "s", "test") == "x");
  CHECK(json_size(json, "n", "test") == 5);
  CHECK(json_optional_string(json, "n") == "");
  for (const char* name : {"m", "f", "big", "o", "s", "missing"}) CHECK_THROWS_AS(json_size(json, name, "test"), Error);
  CHECK_THROWS_AS(json_string(json, "n", "test"), Error);
}
