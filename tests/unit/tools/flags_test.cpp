// Pieces of the command line that need no model: names, wrapping, and processors of memory nodes.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/help.h"
#include "tools/llama_cpp_flags.h"
#include "tools/option_names.h"
#include "tools/processor_flags.h"

using namespace infer;

TEST_CASE("the nearest name needs few edits") {
  const std::vector<std::string> known = {"--temp", "--threads", "-ngl", "--top-k"};
  CHECK(nearest_name("--tmep", known) == "--temp");
  CHECK(nearest_name("--thread", known) == "--threads");
  CHECK(nearest_name("--top_k", known) == "--top-k");
  CHECK(nearest_name("-ng", known) == "-ngl");
  CHECK(nearest_name("--frobnicate", known).empty());
  CHECK(nearest_name("", known).empty());
  CHECK(nearest_name(std::string(100000, 'x'), known).empty());
}

TEST_CASE("lines are wrapped between words") {
  CHECK(wrapped("one two three", 0, 0, 7) == "one two\nthree");
  CHECK(wrapped("one two three", 4, 4, 8) == "one\n    two\n    three");
  CHECK(wrapped("  indented text", 0, 2, 80) == "  indented text");
  CHECK(wrapped("a-word-longer-than-the-line b", 0, 2, 10) == "a-word-longer-than-the-line\n  b");
  CHECK(wrapped("", 0, 0, 10).empty());
}

TEST_CASE("threads are spread over the nodes of a machine") {
  const auto folder = std::filesystem::temp_directory_path() / ("infer_numa_test_" + std::to_string(getpid()));
  for (const auto& [node, list] : {std::pair{0, "0-2,8"}, std::pair{1, "3-5"}, std::pair{2, ""}}) {
    std::filesystem::create_directories(folder / ("node" + std::to_string(node)));
    std::ofstream(folder / ("node" + std::to_string(node)) / "cpulist") << list << "\n";
  }
  const auto nodes = numa_nodes(folder.string());
  std::filesystem::remove_all(folder);
  using List = std::vector<int>;
  CHECK(nodes == std::vector<List>{{0, 1, 2, 8}, {3, 4, 5}});
  CHECK(numa_nodes("/nowhere").empty());

  const List all = {0, 1, 2, 3, 4, 5, 8};
  CHECK(numa_processors("distribute", nodes, {}, all, 0) == List{0, 3, 1, 4, 2, 5, 8});
  CHECK(numa_processors("distribute", nodes, {1, 2, 5}, all, 0) == List{1, 5, 2});
  CHECK(numa_processors("isolate", nodes, {}, all, 4) == List{3, 4, 5});
  CHECK(numa_processors("isolate", nodes, {1, 5}, all, 4) == List{5});
  CHECK(numa_processors("numactl", nodes, {}, {1, 3}, 0) == List{1, 3});
  // One node: threads stay where -C and -Cr put them.
  CHECK(numa_processors("distribute", {{0, 1}}, {}, {0, 1}, 0).empty());
  CHECK(numa_processors("isolate", {}, {1}, {0, 1}, 0) == List{1});
}

TEST_CASE("each flag of llama.cpp has one row, with the sentences it needs") {
  std::vector<std::string> seen;
  for (const LlamaCppFlag& flag : llama_cpp_flags()) {
    CAPTURE(flag.names);
    const std::string_view accepted = flag.accepted, why = flag.why, instead = flag.instead;
    CHECK(why.empty() == accepted.empty());
    CHECK(instead.empty() == (accepted == "*"));
    for (const std::string_view sentence : {why, instead}) CHECK((sentence.empty() || sentence.ends_with('.')));
    for (const std::string& name : CLI::detail::split(flag.names, ',')) {
      CHECK(name.starts_with('-'));
      CHECK(std::find(seen.begin(), seen.end(), name) == seen.end());
      seen.push_back(name);
    }
  }
}
