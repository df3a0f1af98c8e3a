#include "tools/flags.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/text/sampler_chain.h"
#include "tools/arguments.h"
#include "tools/metadata_flags.h"
#include "tools/model_by_name.h"
#include "tools/name_pattern.h"
#include "tools/processor_flags.h"
#include "tools/status_line.h"

namespace infer {
namespace {

// The seed as in SamplingParams: unset for -1, which asks for a random one.
std::optional<uint64_t> parse_seed(const std::string& text) {
  if (text == "-1") return std::nullopt;
  uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc() || at != end) {
    throw CLI::ValidationError(
        "--seed", printable(text, 40) + " is not a seed. Give -1 (random) or a whole number from 0 below 2^64.");
  }
  return seed;
}

void print_note(const std::string& line) { std::fprintf(stderr, "note: %s\n", line.c_str()); }

void check_shares(const std::vector<double>& shares, size_t n_devices) {
  if (shares.empty()) return;
  double sum = 0;
  for (const double share : shares) sum += share >= 0 ? share : NAN;
  if (shares.size() != n_devices || !(sum > 0) || std::isinf(sum)) {
    std::string found;
    for (const double share : shares) found += concat(found.empty() ? "" : ",", share);
    throw Error(ErrorCode::kInvalidArgument,
                concat("--tensor-split ", found, " does not fit. Give a share for each device of --device (", n_devices,
                       "), 0 or more, at least one above 0."));
  }
}

// PATTERN=DEVICE, split at the last equals sign, as given with `flag`.
TensorRule parse_tensor_rule(const char* flag, const std::string& text, NamePattern::Extent extent) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                concat(flag, ": ", printable(text, 100), " is not valid. Write PATTERN=DEVICE."));
  }
  const auto pattern = std::make_shared<NamePattern>(flag, text.substr(0, equals), extent);
  return {concat(flag, " ", printable(text, 100)),
          [pattern](const std::string& name) { return pattern->matches(name); }, text.substr(equals + 1)};
}

// The device with llama.cpp's name for a type of buffer: CUDA0 is cuda0; CPU, CUDA_Host and the like are the CPU.
std::string device_of_buffer(const std::string& buffer) {
  std::string name = CLI::detail::to_lower(buffer);
  return name.starts_with("cpu") || name.find("host") != std::string::npos ? "cpu" : name;
}

// As llama.cpp continues without the lock, so does this.
void lock_in_memory(const GgufFile& file) {
  for (const GgufTensor& tensor : file.tensors()) {
    if (mlock(tensor.data, tensor.n_bytes) == 0) continue;
    print_note(concat("--mlock: The system does not let this process lock the model in memory (", std::strerror(errno),
                      "). Raise its limit with ulimit -l; the model now runs without the lock."));
    return;
  }
}

}  // namespace

const std::vector<std::string>& cache_type_names() {
  static const std::vector<std::string> names = {"f32",  "f16",  "bf16", "q8_0",  "q4_0",
                                                 "q4_1", "q5_0", "q5_1", "iq4_nl"};
  return names;
}

DataType cache_type(const std::string& flag, const std::string& name) {
  const std::vector<std::string>& names = cache_type_names();
  const std::string lower = CLI::detail::to_lower(name);
  if (std::find(names.begin(), names.end(), lower) == names.end()) {
    throw Error(ErrorCode::kInvalidArgument,
                concat(flag, ": ", printable(name, 40),
                       " is not a cache type. Choose f32, f16, bf16, q8_0, q4_0, q4_1, ", "q5_0, q5_1 or iq4_nl."));
  }
  return find_type(lower)->type;
}

std::vector<TokenId> parse_token_ids(const std::string& list) {
  std::vector<TokenId> tokens;
  for (size_t at = 0; at <= list.size();) {
    size_t comma = list.find(',', at);
    if (comma == std::string::npos) comma = list.size();
    const char* first = list.data() + list.find_first_not_of(' ', at);
    TokenId token = 0;
    const auto [end, error] = std::from_chars(first, list.data() + comma, token);
    if (error != std::errc() || end != list.data() + comma) {
      throw Error(ErrorCode::kInvalidArgument,
                  concat("--tokens: found ", printable(list.substr(at, comma - at), 40),
                         " instead of a token id. Write ids with commas between them, such as 1,2,3."));
    }
    tokens.push_back(token);
    at = comma + 1;
  }
  return tokens;
}

int parse_layers(const char* flag, const std::string& text, int all, bool allows_auto) {
  if (text == "all") return all;
  if (allows_auto && (text == "auto" || text == "-1")) return kAutoLayers;
  int n = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, n);
  if (error == std::errc() && at == end && n >= 0) return n;
  throw Error(ErrorCode::kInvalidArgument,
              concat(flag, ": ", printable(text, 40), " is not valid. Give a whole number from 0",
                     allows_auto ? ", auto" : "", " or all."));
}

std::shared_ptr<const GgufFile> ModelFlags::open() const {
  std::shared_ptr<const GgufFile> file = GgufFile::open(find_model_file(model, {}, engine_options()), open_options);
  if (lock) lock_in_memory(*file);
  return file;
}

void ModelFlags::report_ignored(const std::function<void(const std::string& line)>& report) const {
  if (!verbose) return;
  for (const std::string& line : ignored) report(line);
}

EngineOptions ModelFlags::engine_options() const {
  EngineOptions options = engine;
  if (batch > 0) options.step_tokens = std::min(options.step_tokens, batch);
  options.note = print_note;
  options.loading = loading_line();
  options.placement.n_gpu_layers =
      gpu_layers.empty() ? kAutoLayers : parse_layers("--n-gpu-layers", gpu_layers, kAllLayers, true);
  if (options.devices == std::vector<std::string>{"none"}) {
    options.devices = {"cpu"};
    options.placement.n_gpu_layers = 0;
  }
  // Without layers on a GPU, avoid opening its driver.
  if (options.devices.empty() && options.placement.n_gpu_layers == 0 && options.placement.tensor_rules.empty()) {
    options.devices = {"cpu"};
  }
  if (const size_t n = allowed_processors().size(); n > 0 && static_cast<size_t>(options.n_threads) > n) {
    print_note(concat("-t ", options.n_threads, " is more than the ", n, n == 1 ? " processor" : " processors",
                      " this program may use; threads that wait for each other will make it slower."));
  }
  check_shares(options.placement.tensor_split, std::max<size_t>(engine.devices.size(), 1));
  return options;
}

void add_model_file_flag(CLI::App& app, std::string& model) {
  app.add_option("-m,--model", model, "Model file (GGUF; any part of a split one), or the name of a downloaded model")
      ->required()
      ->type_name("FILE");
}

namespace {

void add_offload_flags(CLI::App& app, ModelFlags& flags) {
  EngineOptions& engine = flags.engine;
  PlacementOptions& placement = engine.placement;
  app.add_option(flag_names("-dev,--device"), engine.devices,
                 "Devices for the layers that -ngl offloads, in order; infer devices lists them; none: the CPU "
                 "(default: the first GPU, else the CPU)")
      ->envname("INFER_DEVICE")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(not_empty())
      ->type_name("NAME,...");
  app.add_option(flag_names("-ngl,--n-gpu-layers,--gpu-layers"), flags.gpu_layers,
                 "Offload the last N layers to --device; the output counts as one layer, as does the "
                 "embedding; auto or -1: as many as fit; all (default: auto)")
      ->check(not_empty())
      ->type_name("N");
  app.add_option(flag_names("-ts,--tensor-split"), placement.tensor_split,
                 "Shares of the devices: 3,1 (default: by free memory)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(not_empty())
      ->type_name("X,...");
}

// Flags that place single matrices.
void add_matrix_flags(CLI::App& app, PlacementOptions& placement) {
  app.add_option_function<std::vector<std::string>>(
         "--tensor-device",
         [&placement](const std::vector<std::string>& rules) {
           for (const std::string& rule : rules) {
             placement.tensor_rules.push_back(parse_tensor_rule("--tensor-device", rule, NamePattern::Extent::kWhole));
           }
         },
         "Device for matrices whose full name matches: blk\\.[0-9]\\.ffn_.*=cpu (may be repeated; the first "
         "match wins)")
      ->take_all()
      ->allow_extra_args(false)
      ->check(not_empty())
      ->type_name("REGEX=DEVICE");
  app.add_option_function<std::vector<std::string>>(
         flag_names("-ot,--override-tensor"),
         [&placement](const std::vector<std::string>& rules) {
           for (const std::string& rule : rules) {
             placement.tensor_rules.push_back(parse_tensor_rule("-ot", rule, NamePattern::Extent::kPart));
             placement.tensor_rules.back().device = device_of_buffer(placement.tensor_rules.back().device);
           }
         },
         "Device for matrices with a matching part in their name: ffn_.*_exps=CPU,... (may be repeated; the first "
         "match wins, after those of --tensor-device)")
      ->delimiter(',')
      ->take_all()
      ->allow_extra_args(false)
      ->check(not_empty())
      ->type_name("PATTERN=DEVICE,...");
  app.add_flag_callback(
      flag_names("-cmoe,--cpu-moe"), [&placement] { placement.n_cpu_moe = INT_MAX; },
      "Keep the expert weights of all layers on the CPU");
  app.add_option_function<std::string>(
         flag_names("-ncmoe,--n-cpu-moe"),
         [&placement](const std::string& text) {
           placement.n_cpu_moe = parse_layers("--n-cpu-moe", text, INT_MAX, false);
         },
         "Keep the expert weights of the first N layers, or of all, on the CPU (default: 0)")
      ->check(not_empty())
      ->type_name("N");
}

// Flags that choose kernels.
void add_kernel_flags(CLI::App& app, EngineOptions& engine) {
  app.add_flag("--strict-offload", engine.strict_offload,
               "Fail if an operation has no kernel on its device or a device is short of memory; otherwise "
               "operations and layers move to the CPU, with a note");
  auto* deterministic = app.add_flag(
      "--deterministic", engine.deterministic,
      "Make a token's result on a GPU independent of the rest of the batch (always so on the CPU without --blas)");
  auto* blas =
      app.add_flag("--blas", engine.blas,
                   "On the CPU, use OpenBLAS for prompts with F32, F16 and BF16 weights where it is faster; the "
                   "last bits of a result then depend on the batch and on the number of threads");
  blas->excludes(deterministic);
  app.add_option("--blas-min-rows", engine.blas_min_rows,
                 "Use OpenBLAS for matmuls of at least N tokens (default: where it is faster)")
      ->check(whole_number(int64_t{1}, INT64_MAX))
      ->type_name("N")
      ->needs(blas);
}

void set_load_mode(ModelFlags& flags, const std::string& mode) {
  flags.open_options.use_mmap = mode != "none";
  flags.lock = mode.find("mlock") != std::string::npos;
}

}  // namespace

void add_model_flags(CLI::App& app, ModelFlags& flags, bool required) {
  EngineOptions& engine = flags.engine;
  add_model_file_flag(app, flags.model);
  app.get_option("--model")->required(required);
  app.add_flag_callback(
      "--no-mmap", [&flags] { flags.open_options.use_mmap = false; },
      "Read the model file into memory, in huge pages if available, instead of mapping "
      "it: starts more slowly and takes the file's size in memory, but generates faster");
  app.add_flag("--mlock", flags.lock, "Lock the model file in memory, so that the system does not swap it out");
  app.add_option_function<std::string>(
         flag_names("-lm,--load-mode"), [&flags](const std::string& mode) { set_load_mode(flags, mode); },
         "How to read the model file: auto or mmap, none (as --no-mmap), mlock, mmap+mlock (default: auto)")
      ->check(one_of({"auto", "mmap", "none", "mlock", "mmap+mlock"}))
      ->type_name("WORD");
  add_metadata_flags(app, flags.open_options);
  app.add_option_function<int64_t>(
         "-c,--ctx-size", [&engine](int64_t n) { engine.context = n > 0 ? n : kTrainedContext; },
         "Context in tokens; 0: as long as the model was trained for (default: the same, but at most 4096)")
      ->check(whole_number(int64_t{0}, INT64_MAX))
      ->type_name("N");
  app.add_option("-t,--threads", engine.n_threads, "CPU threads (default: physical cores)")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option(flag_names("-tb,--threads-batch"), engine.n_threads_batch, "CPU threads for prompts (default: as -t)")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  add_processor_flags(app, engine.processors);
  add_offload_flags(app, flags);
  add_matrix_flags(app, engine.placement);
  add_kernel_flags(app, engine);
  app.add_option_function<std::string>(
         flag_names("-ctk,--cache-type-k"),
         [&engine](const std::string& name) { engine.key_type = cache_type("--cache-type-k", name); },
         "Type of cached keys: f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl (default: f16, on ref f32)")
      ->check(not_empty())
      ->check(suggests(cache_type_names()))
      ->type_name("TYPE");
  app.add_option_function<std::string>(
         flag_names("-ctv,--cache-type-v"),
         [&engine](const std::string& name) { engine.value_type = cache_type("--cache-type-v", name); },
         "Type of cached values (same types and default, independent of -ctk)")
      ->check(not_empty())
      ->check(suggests(cache_type_names()))
      ->type_name("TYPE");
}

void add_batch_flags(CLI::App& app, ModelFlags& flags) {
  app.add_option(flag_names("-ub,--ubatch-size"), flags.engine.step_tokens, "Tokens computed per step")
      ->check(not_empty())
      ->check(whole_number(1, 4096))
      ->capture_default_str()
      ->type_name("N");
  app.add_option(flag_names("-b,--batch-size"), flags.batch, "Upper limit on -ub (default: none)")
      ->check(whole_number(1, INT32_MAX))
      ->type_name("N");
}

void add_profile_flag(CLI::App& app, ModelFlags& flags) {
  app.add_flag("--profile", flags.engine.profile,
               "At the end, print the time per operation and shape, with fractions of "
               "this machine's limits");
}

void add_answer_flags(CLI::App& app, AnswerFlags& flags) {
  app.add_option("-n,--predict,--n-predict", flags.n_predict,
                 "Maximum number of tokens to generate; -1: no limit (default: -1)")
      ->check(whole_number(-1, INT32_MAX))
      ->check(not_empty())
      ->type_name("N");
  app.add_flag("--ignore-eos", flags.ignore_eos, "Continue after an end-of-generation token");
  app.add_option("-r,--stop,--reverse-prompt", flags.stop, "Text that ends the answer (may be repeated)")
      ->take_all()
      ->check(not_empty())
      ->type_name("TEXT");
  add_reasoning_flags(app, flags.reasoning);
  app.add_option("--reasoning-display", flags.reasoning_display,
                 "Reasoning in the output: show, hide, or auto: shown only on a terminal (default: auto)")
      ->check(one_of({"auto", "show", "hide"}))
      ->type_name("WORD");
  app.add_option("--context-overflow", flags.context_overflow,
                 "If a chat fills the context: stop, or shift-turns: forget the oldest turns (default: stop)")
      ->check(one_of({"stop", "shift-turns"}))
      ->type_name("WORD");
  app.add_option("--keep", flags.keep,
                 "With shift-turns: never forget the turns that begin in the first N tokens; -1: the first turn "
                 "(default: 0)")
      ->check(whole_number(-1, INT32_MAX))
      ->type_name("N");
  app.add_flag("--show-stats,--stats", flags.show_stats,
               "Print tokens and speed after every answer of a chat, and at the end the rate of weight reads next to "
               "the memory bandwidth, measured then (about a second, 256 MiB)");
}

namespace {

// "top_k;temperature".
std::vector<SamplerStage> parse_samplers(const std::string& text) {
  std::vector<SamplerStage> chain;
  for (const std::string& name : CLI::detail::split(text, ';')) {
    if (name.empty()) continue;
    const std::optional<SamplerStage> stage = stage_by_name(name);
    if (!stage) {
      throw Error(ErrorCode::kInvalidArgument,
                  concat("--samplers: ", printable(name, 40), " is not a sampler. Choose ", stage_names(", "), "."));
    }
    chain.push_back(*stage);
  }
  return chain;
}

// "kt".
std::vector<SamplerStage> parse_sampler_letters(const std::string& text) {
  std::vector<SamplerStage> chain;
  for (const char letter : text) {
    const std::optional<SamplerStage> stage = stage_by_letter(letter);
    if (!stage) {
      throw Error(ErrorCode::kInvalidArgument, concat("--sampler-seq: ", printable(std::string(1, letter), 40),
                                                      " is not a sampler. Choose letters of ", stage_letters(), "."));
    }
    chain.push_back(*stage);
  }
  return chain;
}

// TOKEN+BIAS or TOKEN-BIAS.
std::pair<TokenId, float> parse_logit_bias(const std::string& entry) {
  const size_t sign = entry.find_first_of("+-", 1);
  TokenId token = 0;
  float bias = 0;
  const char* middle = entry.data() + (sign == std::string::npos ? 0 : sign);
  const char* end = entry.data() + entry.size();
  const auto a = std::from_chars(entry.data(), middle, token);
  const auto b = std::from_chars(middle + (middle < end && *middle == '+'), end, bias);
  if (sign == std::string::npos || a.ec != std::errc() || a.ptr != middle || b.ec != std::errc() || b.ptr != end) {
    throw CLI::ValidationError(
        "--logit-bias", printable(entry, 40) + " is not valid. Write TOKEN+BIAS or TOKEN-BIAS, such as 15043-2.5.");
  }
  return {token, bias};
}

void add_chain_flags(CLI::App& app, SamplingParams& s) {
  app.add_option_function<std::string>(
         "--samplers", [&s](const std::string& text) { s.chain = parse_samplers(text); },
         concat("Samplers in the order in which they apply; those left out are off (default: ", stage_names(";"), ")"))
      ->group("Sampling")
      ->type_name("NAME;...");
  app.add_option_function<std::string>(
         "--sampler-seq,--sampling-seq", [&s](const std::string& text) { s.chain = parse_sampler_letters(text); },
         concat("The same with a letter for each (default: ", stage_letters(), ")"))
      ->group("Sampling")
      ->type_name("LETTERS");
}

}  // namespace

void add_sampling_flags(CLI::App& app, SamplingParams& s) {
  const auto option = [&](const char* name, auto& value, const char* text) {
    CLI::Option* added =
        app.add_option(name, value, text)->capture_default_str()->check(not_empty())->group("Sampling");
    if constexpr (std::is_integral_v<std::remove_reference_t<decltype(value)>>) {
      return added->check(whole_number(INT32_MIN, INT32_MAX));
    } else {
      return added->check(any_number());
    }
  };
  app.add_option_function<std::string>(
         "-s,--seed", [&s](const std::string& text) { s.seed = parse_seed(text); },
         "Seed; the same seed gives the same text; -1: random (default: -1)")
      ->group("Sampling")
      ->type_name("N");
  option("--temp,--temperature", s.temperature, "Temperature; 0: always the most probable token");
  option("--top-k", s.top_k, "Keep the K most probable tokens; 0: off");
  option("--top-p", s.top_p, "Keep the most probable tokens with a total probability of P; 1: off");
  option("--min-p", s.min_p, "Drop tokens below P times the best one's probability; 0: off");
  option("--typical,--typical-p", s.typical_p, "Locally typical sampling; 1: off");
  option("--top-n-sigma,--top-nsigma", s.top_n_sigma,
         "Keep logits within N standard deviations of the best; 0 or less: off");
  option("--xtc-probability", s.xtc_probability, "Probability of excluding top choices; 0: off");
  option("--xtc-threshold", s.xtc_threshold, "Probability a top choice must have to be excluded");
  option("--dynatemp-range", s.dynatemp_range,
         "Temperature from T - N to T + N, the higher the less certain the model is; 0: off");
  option("--dynatemp-exp", s.dynatemp_exponent, "Exponent that maps the uncertainty into that range");
  option("--repeat-last-n", s.repeat_last_n, "Window of the penalties, in tokens; 0: none, -1: all");
  option("--repeat-penalty", s.repeat_penalty, "Divides (multiplies, if negative) logits of repeated tokens; 1: off");
  option("--presence-penalty", s.presence_penalty, "Subtracted once from logits of tokens that occurred; 0: off");
  option("--frequency-penalty", s.frequency_penalty, "Subtracted from logits once per occurrence; 0: off");
  option("--dry-multiplier", s.dry_multiplier, "DRY: strength of the penalty on repeated sequences; 0: off");
  option("--dry-base", s.dry_base, "DRY: base of the penalty's growth");
  option("--dry-allowed-length", s.dry_allowed_length, "DRY: longest repetition without a penalty");
  option("--dry-penalty-last-n", s.dry_penalty_last_n, "DRY: window in tokens; 0: off, -1: all");
  app.add_option("--dry-sequence-breaker", s.dry_sequence_breakers,
                 "DRY: text that ends a repetition (may be repeated)")
      ->take_all()
      ->group("Sampling")
      ->type_name("TEXT");
  option("--mirostat", s.mirostat, "0: off, 2: Mirostat 2.0");
  option("--mirostat-ent", s.mirostat_tau, "Mirostat: target surprise in bits (tau)");
  option("--mirostat-lr", s.mirostat_eta, "Mirostat: learning rate (eta)");
  app.add_option_function<std::vector<std::string>>(
         flag_names("-l,--logit-bias"),
         [&s](const std::vector<std::string>& entries) {
           for (const std::string& entry : entries) s.logit_bias.push_back(parse_logit_bias(entry));
         },
         "Added to a token's logit: TOKEN+BIAS or TOKEN-BIAS (may be repeated)")
      ->group("Sampling")
      ->type_name("TEXT")
      ->take_all();
  add_chain_flags(app, s);
}

}  // namespace infer
