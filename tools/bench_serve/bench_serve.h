// infer bench-serve: the latency and throughput of an OpenAI endpoint under concurrent load.
#pragma once

#include <string>
#include <vector>

namespace infer {

struct BenchServeOptions {
  std::string url;
  std::vector<int> concurrency = {1, 4, 16, 32};
  std::string mix = "chat";              // prefill, decode, chat
  std::string model;                     // "": the endpoint's default
  std::string api = "chat";              // chat or completions
  std::string api_key_file;              // "": $INFER_API_KEY, if set
  std::string plot;                      // SVG file; "": none
  int requests = 0;                      // per level; 0: four per client, at least 16
  int prompt_words = 0, max_tokens = 0;  // 0: the mix's default
  int timeout_seconds = 300;
  bool compare_drafts = false;
  bool json = false;
};

// Returns the exit code: 0, 1 if a level had no answer at all, 130 after Ctrl-C. Throws Error.
int run_bench_serve(const BenchServeOptions& options);

}  // namespace infer
