#include "src/hub/cache.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "ggml-like/error.h"
#include "src/hub/hub.h"
#include "src/hub/part_file.h"

using namespace infer;

namespace {

namespace fs = std::filesystem;

// An empty folder, removed at the end.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "infer-hub-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
};

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

CachedModel add_model(const ModelCache& cache, const std::string& name, const std::string& file) {
  const ModelName parsed = *parse_model_name(name);
  RemoteFile remote;
  remote.path = file;
  const fs::path path = cache.path_of(parsed, remote);
  write(path, "GGUF" + file);
  CachedModel model{
      parsed.text(), parsed.base(), parsed.tag, parsed.tag, {{path, fs::file_size(path), "", "\"e\""}}, {}, true};
  cache.add(model);
  return model;
}

std::string names(const std::vector<CachedModel>& models) {
  std::string text;
  for (const CachedModel& model : models) text += (text.empty() ? "" : " ") + model.name;
  return text;
}

}  // namespace

TEST_CASE("a model is in the cache from its record on") {
  const Folder folder;
  const ModelCache cache(folder.path);
  CHECK(cache.models().empty());
  const CachedModel model = add_model(cache, "hf.co/o/r:Q4_0", "m-Q4_0.gguf");
  write(folder.path / "hf.co/o/r/other-Q8_0.gguf", "GGUF");
  REQUIRE(names(cache.models()) == "hf.co/o/r:Q4_0");
  const CachedModel read = cache.models().front();
  CHECK(read.path() == folder.path / "hf.co/o/r/m-Q4_0.gguf");
  CHECK(read.files[0].etag == "\"e\"");
  CHECK(read.quantization == "Q4_0");
  CHECK(read.last_used);
  SUBCASE("until a file changes its size") {
    write(model.path(), "GGUF");
    CHECK(cache.models().empty());
  }
  SUBCASE("until a file is missing") {
    fs::remove(model.path());
    CHECK(cache.models().empty());
  }
  SUBCASE("until it is removed, with the folders that become empty") {
    cache.remove(model);
    CHECK(cache.models().empty());
    CHECK(fs::exists(folder.path / "hf.co/o/r/other-Q8_0.gguf"));
    fs::remove(folder.path / "hf.co/o/r/other-Q8_0.gguf");
    cache.remove(add_model(cache, "hf.co/o/r:Q4_0", "a/m-Q4_0.gguf"));
    CHECK(fs::is_empty(folder.path));
  }
}

TEST_CASE("damaged records are skipped") {
  const Folder folder;
  const ModelCache cache(folder.path);
  const CachedModel model = add_model(cache, "hf.co/o/r:Q4_0", "m-Q4_0.gguf");
  write(folder.path / "secret", "secret");
  const fs::path record = model.path().string() + ".json";
  for (
      const char* text :
      {"", "{", "[]", "{\"name\": 5}", R"({"name": "n", "base": "b", "label": "", "quantization": "", "files": []})",
       R"({"name": "n", "base": "b", "label": "", "quantization": "", "files": [{"name": "../../../secret", "size": 6}]})",
       R"({"name": "n", "base": "b", "label": "", "quantization": "", "files": [{"name": "m-Q4_0.gguf", "size": -1}]})"}) {
    CAPTURE(text);
    write(record, text);
    CHECK(cache.models().empty());
  }
}

TEST_CASE("a file of two models stays until both are removed") {
  const Folder folder;
  const ModelCache cache(folder.path);
  const CachedModel one = add_model(cache, "hf.co/o/r:Q4_0", "m-Q4_0.gguf");
  CachedModel two = add_model(cache, "hf.co/o/r:Q8_0", "m-Q8_0.gguf");
  two.files.push_back(one.files.front());
  cache.add(two);
  cache.remove(one);
  CHECK(fs::exists(one.path()));
  cache.remove(two);
  CHECK_FALSE(fs::exists(one.path()));
}

TEST_CASE("names find models") {
  const Folder folder;
  HubOptions options;
  options.cache = folder.path / "own";
  options.foreign_caches = {folder.path / "foreign"};
  const fs::path repo = folder.path / "foreign/models--O--r";
  const std::string blob(64, 'a');
  write(repo / "blobs" / blob, "GGUF");
  write(repo / "refs/main", "c2\n");
  fs::create_directories(repo / "snapshots/c1");
  fs::create_directories(repo / "snapshots/c2/sub");
  fs::create_symlink("../../../blobs/" + blob, repo / "snapshots/c2/sub/m-Q2_K.gguf");
  fs::create_symlink("../../../blobs/" + blob, repo / "snapshots/c2/sub/m-Q4_0.gguf");
  fs::create_symlink("nowhere", repo / "snapshots/c2/m-Q8_0.gguf");
  const Hub hub(options, {});
  add_model(hub.cache(), "hf.co/O/r:Q4_0", "m-Q4_0.gguf");
  add_model(hub.cache(), "hf.co/O/r:Q4_K_M", "m-Q4_K_M.gguf");
  add_model(hub.cache(), "hf.co/O/other:Q4_0", "m-Q4_0.gguf");

  const auto found = [&](const char* name) { return names(hub.find(*parse_model_name(name))); };
  CHECK(found("o/R") == "hf.co/O/r:Q4_K_M hf.co/O/r:Q4_0 hf.co/O/r:Q2_K");
  CHECK(found("o/r:q4_0") == "hf.co/O/r:Q4_0");
  CHECK(found("o/r:q2_k") == "hf.co/O/r:Q2_K");
  CHECK(found("hf.co/o/r/m-Q4_0.gguf") == "hf.co/O/r:Q4_0");
  CHECK(found("o/r:Q8_0") == "");
  CHECK(found("o/none") == "");
  const CachedModel foreign = hub.find(*parse_model_name("o/r:q2_k")).front();
  CHECK_FALSE(foreign.is_own);
  CHECK(foreign.files[0].sha256 == blob);
  CHECK(hub.find(*parse_model_name("o/r:q4_0")).front().is_own);
}

TEST_CASE("folders of the environment") {
  const auto folder = [](std::initializer_list<std::pair<std::string, std::string>> variables) {
    return default_cache_folder([&](const char* name) -> std::string {
      for (const auto& [key, value] : variables) {
        if (key == name) return value;
      }
      return "";
    });
  };
  CHECK(folder({{"INFER_MODELS", "/m"}, {"XDG_CACHE_HOME", "/c"}, {"HOME", "/h"}}) == "/m");
  CHECK(folder({{"XDG_CACHE_HOME", "/c"}, {"HOME", "/h"}}) == "/c/infer");
  CHECK(folder({{"HOME", "/h"}}) == "/h/.cache/infer");
  CHECK_THROWS_AS(folder({}), Error);
}

TEST_CASE("the state of a part") {
  const Folder folder;
  const fs::path target = folder.path / "a/x.gguf";
  PartState state = PartState::empty(2500, 1000);
  CHECK(state.done.size() == 3);
  CHECK(state.bytes(2) == 500);
  state.done = {1000, 5, 0};
  state.sha256 = std::string(64, 'b');
  state.name = "n";
  {
    PartFile part(target, {});
    part.start_over(2500);
    part.save(state);
    part.write(1000, "hello", 5);
    CHECK(is_being_downloaded(target));
  }
  CHECK_FALSE(is_being_downloaded(target));
  SUBCASE("is taken up") {
    PartFile part(target, {});
    REQUIRE(part.state());
    CHECK(part.state()->done == state.done);
    CHECK(part.state()->total_done() == 1005);
    CHECK(part.state()->same_content(state));
    char text[5];
    part.read(1000, text, 5);
    CHECK(std::string(text, 5) == "hello");
    part.finish();
    CHECK(fs::file_size(target) == 2500);
    CHECK_FALSE(fs::exists(part_path(target)));
    CHECK_FALSE(fs::exists(part_state_path(target)));
  }
  SUBCASE("counts only with a part of the right size") {
    fs::resize_file(part_path(target), 2499);
    CHECK_FALSE(PartFile(target, {}).state());
  }
  SUBCASE("counts only if it is possible") {
    for (const char* text : {"", "{", "{\"size\": 2500}", R"({"size": 2500, "segment": 0, "done": []})",
                             R"({"size": 2500, "segment": 1000, "done": [1000, 5]})",
                             R"({"size": 2500, "segment": 1000, "done": [1000, 5, 501]})",
                             R"({"size": 2500, "segment": 1000, "done": [1000, 5, -1]})",
                             R"({"size": 9007199254740992, "segment": 1, "done": []})"}) {
      CAPTURE(text);
      write(part_state_path(target), text);
      CHECK_FALSE(load_part_state(target));
    }
  }
}

TEST_CASE("which bytes belong to the same content") {
  PartState a = PartState::empty(10, 5), b = a;
  CHECK_FALSE(a.same_content(b));  // nothing says so
  a.etag = b.etag = "\"e\"";
  CHECK(a.same_content(b));
  a.sha256 = std::string(64, 'a');
  CHECK(a.same_content(b));
  b.sha256 = std::string(64, 'b');
  CHECK_FALSE(a.same_content(b));
  b.sha256 = a.sha256;
  b.etag = "\"f\"";
  CHECK(a.same_content(b));
  b.size = 11;
  CHECK_FALSE(a.same_content(b));
}

TEST_CASE("a part belongs to one process at a time") {
  const Folder folder;
  const fs::path target = folder.path / "x.gguf";
  PartFile first(target, {});
  int notes = 0, polls = 0;
  HubEvents events;
  events.note = [&](const std::string&) { ++notes; };
  events.cancelled = [&] { return ++polls > 3; };
  CHECK_THROWS_AS(PartFile(target, events), Error);
  CHECK(notes == 1);
  first.start_over(3);
  first.finish();
  PartFile second(target, {});  // a new part, not the finished file
  CHECK_FALSE(second.waited());
  second.start_over(1);
  CHECK(fs::file_size(target) == 3);
}
