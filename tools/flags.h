// Command-line flags shared by several subcommands. Each is defined and checked only here, so that a flag means the
// same everywhere.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "ggml-like/gguf.h"
#include "src/engine/engine.h"
#include "src/text/sampler_params.h"
#include "tools/reasoning_flags.h"

namespace infer {

// Which model to run, and how. A flag that the engine acts on is parsed directly into its EngineOptions.
struct ModelFlags {
  std::string model;                 // -m
  GgufOpenOptions open_options;      // --no-mmap
  EngineOptions engine;              // as far as one flag determines it
  std::string gpu_layers;            // -ngl; "": auto
  int batch = 0;                     // -b: limit on the tokens of a step; 0: none
  bool lock = false;                 // --mlock
  bool verbose = false;              // -v
  std::vector<std::string> ignored;  // lines about flags with nothing to do

  ModelFlags() { engine.devices.clear(); }  // without --device: the first GPU, else the CPU
  // `engine`, plus what several flags determine together. Throws Error(kInvalidArgument).
  EngineOptions engine_options() const;
  // Opens the model file; `model` may be a name, see find_model_file().
  std::shared_ptr<const GgufFile> open() const;
  // With -v, reports the flags that had nothing to do.
  void report_ignored(const std::function<void(const std::string& line)>& report) const;
};
// Parse flag values. Throw Error(kInvalidArgument) with a sentence that names the flag.
DataType cache_type(const std::string& flag, const std::string& name);
const std::vector<std::string>& cache_type_names();             // for completion
std::vector<TokenId> parse_token_ids(const std::string& list);  // of --tokens: "1,2,3"
// A number of layers, or "all", or "auto" (kAutoLayers) where that is allowed.
int parse_layers(const char* flag, const std::string& text, int all, bool allows_auto);

void add_model_file_flag(CLI::App& app, std::string& model);
// `required`: -m must be given.
void add_model_flags(CLI::App& app, ModelFlags& flags, bool required = true);
void add_batch_flags(CLI::App& app, ModelFlags& flags);  // -b, -ub
void add_profile_flag(CLI::App& app, ModelFlags& flags);

// How answers and completions are generated and shown, besides sampling.
struct AnswerFlags {
  int n_predict = -1;  // -n: per answer, reasoning included; -1: until the model ends it
  bool ignore_eos = false;
  std::vector<std::string> stop;
  ReasoningFlags reasoning;
  std::string reasoning_display = "auto";  // auto, show, hide
  std::string context_overflow = "stop";   // if a chat fills the context: stop, shift-turns
  int keep = 0;  // tokens at the start whose turns are not forgotten; -1: those of the first turn
  bool show_stats = false;

  // The oldest turns are forgotten and the rest recomputed.
  bool shifts_turns() const { return context_overflow == "shift-turns"; }
};
void add_answer_flags(CLI::App& app, AnswerFlags& flags);

void add_sampling_flags(CLI::App& app, SamplingParams& sampling);

}  // namespace infer
