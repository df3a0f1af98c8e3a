#include "tools/grammar/grammar_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/message.h"
#include "src/model/vocabulary_loader.h"
#include "src/text/grammar/mask_cache.h"
#include "src/text/ordered_json.h"
#include "src/text/tokenizer.h"
#include "tools/input.h"
#include "tools/model_by_name.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

struct Case {
  std::string schema;
  std::vector<std::string> texts;
};

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  std::istringstream lines(read_stdin());
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const ordered_json read = ordered_json::parse(line, nullptr, false);
    const bool right = read.is_object() && read.contains("schema") && read.contains("texts") &&
                       read["texts"].is_array() &&
                       std::all_of(read["texts"].begin(), read["texts"].end(), [](auto& t) { return t.is_string(); });
    if (!right) {
      throw Error(
          ErrorCode::kInvalidArgument,
          expected_found("grammar", concat("line ", number), "a JSON object with a \"schema\" and a list of \"texts\"",
                         read.is_discarded() ? "text that is not JSON" : "another"));
    }
    Case& added = cases.emplace_back();
    added.schema = read["schema"].dump();
    for (const ordered_json& text : read["texts"]) added.texts.push_back(text.get<std::string>());
  }
  if (cases.empty()) throw Error(ErrorCode::kInvalidArgument, "No schemas. Pipe JSON lines in.");
  return cases;
}

// Microseconds that `work` takes.
template <typename Work>
double microseconds(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

void print_row(const char* what, std::vector<double>& times) {
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[std::min(times.size() - 1, static_cast<size_t>(share * static_cast<double>(times.size())))];
  };
  std::printf("%-12s %8zu %12.1f %12.1f %12.1f\n", what, times.size(), at(0.5), at(0.99), times.back());
}

class GrammarBench {
 public:
  explicit GrammarBench(const std::string& model_file) {
    GgufOpenOptions open;
    open.map_data = false;
    tokenizer_ = std::make_unique<Tokenizer>(load_vocabulary(*open_model(model_file, open)));
    vocabulary_ = grammar::GrammarVocabulary::of(*tokenizer_);
  }

  void measure(const Case& c, const grammar::SchemaOptions& options) {
    std::shared_ptr<const grammar::Grammar> grammar;
    compile_.push_back(microseconds([&] { grammar = grammar::parse_json_schema(c.schema, options); }));
    const auto cache = std::make_shared<grammar::MaskCache>(grammar, vocabulary_);
    for (std::vector<double>* masks : {&first_, &later_}) {
      for (const std::string& text : c.texts) answer(*cache, text, *masks);
    }
  }

  void print() {
    std::printf("%s tokens\n%-12s %8s %12s %12s %12s\n", grouped(vocabulary_->n_tokens()).c_str(), "microseconds",
                "number", "median", "99 %", "most");
    print_row("compile", compile_);
    print_row("first masks", first_);
    print_row("later masks", later_);
    print_row("accept", accept_);
  }

 private:
  // Up to the first token that is not allowed.
  void answer(grammar::MaskCache& cache, const std::string& text, std::vector<double>& masks) {
    grammar::MatchState state = cache.grammar().start();
    std::vector<uint64_t> bits;
    for (const TokenId token : tokenizer_->encode(text, false, false)) {
      masks.push_back(microseconds([&] { cache.allowed(state, bits); }));
      if ((bits[static_cast<size_t>(token) / 64] >> (token % 64) & 1) == 0) return;
      accept_.push_back(microseconds([&] { state = cache.after(state, token); }));
    }
    masks.push_back(microseconds([&] { cache.allowed(state, bits); }));
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const grammar::GrammarVocabulary> vocabulary_;
  std::vector<double> compile_, first_, later_, accept_;  // microseconds
};

}  // namespace

void bench_grammars(const std::string& model_file, const grammar::SchemaOptions& options) {
  const std::vector<Case> cases = read_cases();
  GrammarBench bench(model_file);
  for (const Case& c : cases) bench.measure(c, options);
  bench.print();
}

}  // namespace infer
