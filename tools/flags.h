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

namespace infer {

// Which model to run, and how.
struct ModelFlags {
  std::string model;
  bool no_mmap = false;                     // --no-mmap
  int64_t context = 0;                      // -c; 0: the model's own, at most kDefaultContext
  int threads = 0;                          // -t; 0: physical cores
  int threads_batch = 0;                    // -tb; 0: as -t
  std::string cpu_range;                    // --cpu-range; "": any processor
  std::vector<std::string> devices;         // --device; empty: the first GPU, else the CPU
  std::string gpu_layers;                   // -ngl; "": auto
  std::vector<double> tensor_split;         // --tensor-split; empty: by free memory
  std::vector<std::string> tensor_devices;  // --tensor-device
  std::string cpu_moe;                      // --cpu-moe; "": none
  bool strict_offload = false;              // --strict-offload
  std::string key_type, value_type;         // -ctk, -ctv; "": the device's default
  bool deterministic = false;               // --deterministic
  bool blas = false;                        // --blas
  int64_t blas_min_rows = 0;                // --blas-min-rows; 0: the measured break-even point
  bool profile = false;                     // --profile, for commands that have it

  EngineOptions engine_options() const;  // throws Error(kInvalidArgument)
  GgufOpenOptions open_options() const { return {.use_mmap = !no_mmap}; }
};
// Values of flags. Throw Error(kInvalidArgument) in a sentence that names the flag.
DataType cache_type(const std::string& flag, const std::string& name);
// A number of layers, or "all", or "auto" (kAutoLayers) where that is allowed.
int parse_layers(const char* flag, const std::string& text, int all, bool allows_auto);

void add_model_file_flag(CLI::App& app, std::string& model);
// `required`: -m must be given.
void add_model_flags(CLI::App& app, ModelFlags& flags, bool required = true);
void add_profile_flag(CLI::App& app, ModelFlags& flags);

// How answers and completions are generated and shown, besides sampling.
struct AnswerFlags {
  int n_predict = -1;  // -n
  bool ignore_eos = false;
  std::vector<std::string> stop;
  std::string reasoning = "auto";         // auto, show, hide
  std::string context_overflow = "stop";  // stop, shift-turns
  bool show_stats = false;
};
void add_answer_flags(CLI::App& app, AnswerFlags& flags);

void add_sampling_flags(CLI::App& app, SamplingParams& sampling);

}  // namespace infer
