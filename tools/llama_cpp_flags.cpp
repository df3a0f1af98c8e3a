#include "tools/llama_cpp_flags.h"

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/arguments.h"
#include "tools/option_names.h"

namespace infer {
namespace {

constexpr FlagValue kNone = FlagValue::kNone, kSwitch = FlagValue::kSwitch, kOne = FlagValue::kOne;

constexpr const char* kDownloads =
    "Name the model with -hf, which downloads from Hugging Face, from Ollama's registry or a URL.";
constexpr const char* kImages = "Images, audio and video are not implemented; infer reads text.";
constexpr const char* kAdapters = "Adapters are not implemented. Merge the adapter into the model and convert that.";
constexpr const char* kVectors = "Control vectors are not implemented.";
constexpr const char* kPage = "The server has no web page; it serves the OpenAI API.";
constexpr const char* kAgent =
    "The server runs no tools. Clients pass tools in a request and run the calls themselves.";
constexpr const char* kRouter = "A server serves one model. Start one for each, on its own --port.";
constexpr const char* kNgrams = "Use --spec lookup, which finds the best length by itself.";
constexpr const char* kDraftThreads =
    "The draft model runs on the threads and processors of the model: -t, -tb, -C, -Cr.";
constexpr const char* kBatchProcessors = "Prompts run on the same processors as answers: -C, -Cr.";
constexpr const char* kStops =
    "An answer ends when the context is full, unless --context-overflow shift-turns is given.";
constexpr const char* kPriority = "Start infer with nice or chrt instead.";
constexpr const char* kThreadsWait = "Threads spin for a short time and then sleep.";
constexpr const char* kPromptCache =
    "Prompts are cached in memory only. infer serve keeps the prefixes of recent requests for the next ones.";

constexpr LlamaCppFlag kFlags[] = {
    // What happens anyway.
    {"-fa,--flash-attn", kSwitch, "*", "Attention never stores a matrix of scores; no other kind is implemented.", ""},
    {"--jinja", kNone, "*", "Chat templates are always Jinja.", ""},
    {"-co,--color", kSwitch, "*", "Colours are used on a terminal; NO_COLOR turns them off.", ""},
    {"-cnv,--conversation", kNone, "*", "Models with a chat template always chat; --raw turns that off.", ""},
    {"-i,--interactive,-if,--interactive-first", kNone, "*", "On a terminal, a chat always goes on.", ""},
    {"-mli,--multiline-input", kNone, "*", "A line that ends with a backslash continues; pasted lines stay together.",
     ""},
    {"--no-warmup,--warmup", kNone, "*", "There is no warm-up run.", ""},
    {"--mmap", kNone, "*", "The file is always mapped, unless --no-mmap is given.", ""},
    {"-cb,--cont-batching", kNone, "*", "Requests are always batched continuously.", ""},
    {"-kvu,--kv-unified", kNone, "*", "All sequences always share one KV cache.", ""},
    {"-kvo,--kv-offload", kNone, "*", "A layer's KV cache is always on the layer's device.", ""},
    {"--metrics", kNone, "*", "/metrics is always there, unless --no-metrics is given.", ""},
    {"--embeddings,--embedding", kNone, "*", "/v1/embeddings is always there.", ""},
    {"--no-webui,--no-ui,--no-ui-mcp-proxy,--no-webui-mcp-proxy", kNone, "*", kPage, ""},
    {"--no-agent,-no-ag", kNone, "*", kAgent, ""},
    {"--no-context-shift", kNone, "*", kStops, ""},
    {"--no-display-prompt", kNone, "*", "The prompt is never printed with the answer.", ""},
    {"--simple-io", kNone, "*", "Line editing is used only on a terminal.", ""},
    {"--no-perf,--perf", kNone, "*", "Timings are always measured; -q leaves them out.", ""},
    {"--show-timings", kNone, "*", "Timings are always shown; -q leaves them out.", ""},
    {"--log-disable", kNone, "*", "run writes no log; --log-level error reduces that of serve.", ""},
    {"--log-prefix,--no-log-prefix,--log-timestamps,--no-log-timestamps", kNone, "*",
     "The log of serve always has times and levels.", ""},
    {"--log-colors", kSwitch, "*", "The log has no colours.", ""},
    {"-lv,--verbosity,--log-verbosity", kOne, "*", "Use -v, or the --log-level of serve.", ""},
    {"--no-log-jsonl", kNone, "*", "--log-format text is the default.", ""},
    {"--no-mmproj,--no-mmproj-auto,--no-mmproj-offload", kNone, "*", kImages, ""},
    {"--no-escape", kNone, "*", "Prompts are taken as they are.", ""},
    {"--cache-prompt", kNone, "*", "Prefixes of prompts are always cached; a request's cache_prompt turns it off.", ""},
    {"--no-cache-idle-slots,--cache-idle-slots", kNone, "*",
     "Finished requests' prefixes stay until their memory is needed.", ""},
    {"--prefill-assistant", kNone, "*", "An assistant message at the end is always continued.", ""},
    {"--no-host", kNone, "*", "Weights on the CPU are used where they are mapped.", ""},
    {"--repack", kNone, "*", "Weights are rearranged where a kernel needs it.", ""},
    {"--op-offload", kNone, "*", "An operation runs on the device of its layer.", ""},
    {"-dt,--defrag-thold", kOne, "*", "The KV cache is paged and does not fragment.", ""},
    {"--swa-full", kNone, "*", "The KV cache is paged; layers with a window take blocks as they need them.", ""},
    {"-ctxcp,--ctx-checkpoints,--swa-checkpoints,-cms,--checkpoint-min-step", kOne, "*",
     "Checkpoints are kept as long as the KV cache has room.", ""},
    {"-cram,--cache-ram", kOne, "*", "Cached prefixes live in the KV cache; --kv-tokens sets its size.", ""},
    {"--cache-reuse", kOne, " 0 ", "Only equal prefixes are reused, so that an answer does not depend on the cache.",
     "Only equal prefixes are reused, so that an answer does not depend on the cache."},
    {"-sps,--slot-prompt-similarity", kOne, "*", "Any cached prefix is found; there are no slots.", ""},
    {"--threads-http", kOne, "*", "Connections get threads as needed, up to --max-connections.", ""},
    {"--poll,--poll-batch,--poll-draft,--poll-batch-draft,--spec-draft-poll,--spec-draft-poll-batch", kOne, "*",
     kThreadsWait, ""},
    {"--cpu-strict,--cpu-strict-batch,--cpu-strict-draft,--cpu-strict-batch-draft,--spec-draft-cpu-strict,"
     "--spec-draft-cpu-strict-batch",
     kOne, "*", "With -C or -Cr, each thread is pinned to one processor.", ""},
    {"--prio,--prio-batch,--prio-draft,--prio-batch-draft,--spec-draft-prio,--spec-draft-prio-batch", kOne, " 0 ",
     "The priority is the process's.", kPriority},
    {"-sm,--split-mode", kOne, " layer ", "Several devices always split the model by layers.",
     "Several devices split the model by layers; --device NAME chooses one for all layers."},
    {"-mg,--main-gpu", kOne, " 0 ", "The first device of --device comes first.",
     "Name the devices in order: --device NAME,... (infer devices lists them)."},
    {"-fit,--fit", kSwitch, " on true 1 enabled ", "-ngl auto and the context of serve always fit the memory.",
     "Give -ngl and -c to decide yourself."},
    {"-fitc,--fit-ctx", kOne, "*", "A context given with -c is never made smaller.", ""},
    {"-lzm,--lazy-mode", kOne, " auto on ", "The mapped file is read as needed.", "Use --no-mmap or --mlock."},
    {"--reasoning-format", kOne, " auto deepseek ", "The API returns reasoning in reasoning_content.",
     "The API returns reasoning in reasoning_content, never in the content."},
    {"--no-spec-draft-backend-sampling", kNone, "*", "Drafts are sampled on the CPU.", ""},
    {"--spec-draft-sampling", kOne, " greedy ", "Drafts are the draft model's choice with the request's sampling.",
     "Drafts follow the request's sampling."},
    {"--no-models-autoload", kNone, "*", kRouter, ""},
    {"--tags", kOne, "*", "Tags are for information only.", ""},
    {"--no-cors-credentials,--cors-credentials", kNone, "*",
     "API keys are sent in a header, which needs no credentials.", ""},
    {"--sse-ping-interval", kOne, " -1 ", "Streams carry no pings.",
     "Streams carry no pings. Raise the read timeout of the proxy in between."},

    // Flags of one command that the other refuses.
    {"--keep", kOne, " 0 ", "No part of a context is dropped.",
     "No part of a context is dropped; answers end with it."},
    {"-np,--parallel", kOne, " 1 -1 ", "A chat computes one answer at a time.",
     "A chat computes one answer at a time. infer serve has -np."},
    {"-r,--reverse-prompt", kOne, "", "", "Put \"stop\" into the requests."},
    {"--ignore-eos", kNone, "", "", "Put \"ignore_eos\": true into the requests."},
    {"--grammar,--grammar-file,-j,--json-schema,-jf,--json-schema-file", kOne, "", "",
     "Put \"grammar\" or \"response_format\" into the requests."},

    // What cannot be done.
    {"-nocb,--no-cont-batching", kNone, "", "",
     "Requests are always batched continuously; -np 1 computes one at a time."},
    {"-no-kvu,--no-kv-unified", kNone, "", "", "All sequences share one paged KV cache; --kv-tokens sets its size."},
    {"--kv-unified-per-slot", kOne, "", "", "All sequences share one KV cache. Use -c and --kv-tokens."},
    {"-nkvo,--no-kv-offload", kNone, "", "",
     "A layer's KV cache is on the layer's device. Offload fewer layers with -ngl."},
    {"--no-jinja", kNone, "", "", "Chat templates are always Jinja; --chat-template chatml chooses a built-in one."},
    {"--context-shift", kNone, "", "",
     "Tokens are not dropped from the middle of a cached context. In a chat, use --context-overflow shift-turns."},
    {"--display-prompt,--verbose-prompt", kNone, "", "", "The prompt is not printed. infer template shows it."},
    {"--no-show-timings", kNone, "", "", "Leave the timings out with -q."},
    {"--log-file", kOne, "", "", "Redirect standard error: 2>FILE."},
    {"--log-prompts-dir", kOne, "", "", "Prompts are not logged."},
    {"--log-jsonl", kNone, "", "", "infer serve has --log-format json."},
    {"-e,--escape", kNone, "", "",
     "Prompts are taken as they are. Put the text in a file (-f), or write $'...' in the shell."},
    {"-bf,--binary-file", kOne, "", "", "Use -f, which takes any bytes."},
    {"-o,--output,--output-file", kOne, "", "", "Redirect standard output: >FILE."},
    {"-sp,--special", kNone, "", "", "Control tokens are not part of the text. infer tokenize and logprobs show them."},
    {"--server-base", kOne, "", "", "infer run loads the model itself. Use any OpenAI client for a server."},
    {"--in-prefix,--in-suffix", kOne, "", "",
     "The chat template determines the text around messages: --chat-template."},
    {"--in-prefix-bos", kNone, "", "", "The chat template determines the text around messages: --chat-template."},
    {"--spm-infill", kNone, "", "", "There is no infill endpoint. Write the infill tokens into a prompt for --raw."},
    {"-gan,--grp-attn-n,-gaw,--grp-attn-w", kOne, "", "", "Self-extend is not implemented. Use --rope-scaling yarn."},
    {"--prompt-cache,--slot-save-path", kOne, "", "", kPromptCache},
    {"--prompt-cache-all,--prompt-cache-ro", kNone, "", "", kPromptCache},
    {"--no-cache-prompt", kNone, "", "", "Put \"cache_prompt\": false into the requests."},
    {"-nr,--no-repack", kNone, "", "",
     "Weights are rearranged only where a kernel needs it; INFER_CPU chooses the kernels."},
    {"--no-op-offload", kNone, "", "", "An operation runs on the device of its layer. Offload fewer layers with -ngl."},
    {"-dio,--direct-io,-ndio,--no-direct-io", kNone, "", "", "Use --no-mmap to read the file instead of mapping it."},
    {"--rpc", kOne, "", "", "A model runs on one machine."},
    {"-fitt,--fit-target", kOne, "", "", "-ngl auto leaves a fixed reserve. Give a smaller -ngl."},
    {"--check-tensors", kNone, "", "", "infer inspect --verify reads all data and looks for NaN and infinity."},
    {"-ncffn,--n-cpu-ffn", kOne, "", "", "Use -ot 'blk\\.[0-9]\\.ffn_=CPU', or a smaller -ngl."},
    {"--moe-cache-mib", kOne, "", "",
     "Experts on the CPU are computed there. Keep fewer of them there with --n-cpu-moe."},
    {"--lora,--lora-scaled", kOne, "", "", kAdapters},
    {"--lora-init-without-apply", kNone, "", "", kAdapters},
    {"--control-vector,--control-vector-scaled,--control-vector-layer-range", kOne, "", "", kVectors},
    {"-dr,--docker-repo", kOne, "", "", kDownloads},
    {"-hfd,-hfrd,--hf-repo-draft,--spec-draft-hf", kOne, "", "",
     "Download the draft model with infer pull, and name its file with -md."},
    {"--gpt-oss-20b-default,--gpt-oss-120b-default,--vision-gemma-4b-default,--vision-gemma-12b-default,"
     "--embd-gemma-default,--fim-qwen-1.5b-default,--fim-qwen-3b-default,--fim-qwen-7b-default,--fim-qwen-7b-spec,"
     "--fim-qwen-14b-spec,--fim-qwen-30b-default",
     kNone, "", "", kDownloads},
    {"-cl,--cache-list", kNone, "", "", "infer models lists the downloaded models."},
    {"--completion-bash", kNone, "", "", "infer completion bash prints the script."},
    {"--license", kNone, "", "", "The file LICENSE comes with the program."},
    {"--adaptive-target,--adaptive-decay", kOne, "", "",
     "adaptive-p is not implemented. Use --mirostat 2 or --top-n-sigma."},
    {"-bs,--backend-sampling", kNone, "", "",
     "Sampling runs on the CPU, from the best logits that the device selects."},
    {"--spec-draft-backend-sampling", kNone, "", "", "Drafts are sampled on the CPU."},
    {"-mm,--mmproj,-mmu,--mmproj-url,-mmdev,--mmproj-device,--image,--audio,--video,--image-min-tokens,"
     "--image-max-tokens,--mtmd-batch-max-tokens,--video-fps,--video-timestamp-interval,--video-ffmpeg-dir,--media-"
     "path,"
     "-mv,--model-vocoder",
     kOne, "", "", kImages},
    {"--mmproj-auto,--mmproj-offload,--tts-use-guide-tokens", kNone, "", "", kImages},
    {"--skip-chat-parsing,--no-skip-chat-parsing", kNone, "", "",
     "Use --raw, or /v1/completions, for text without parts."},
    {"--reasoning-effort", kOne, "", "", "Use --chat-template-kwargs '{\"reasoning_effort\": \"high\"}'."},
    {"--reasoning-budget-message", kOne, "", "", "The reasoning ends with its closing tag alone."},
    {"--reasoning-preserve,--no-reasoning-preserve", kNone, "", "",
     "The chat template decides which reasoning it shows."},
    {"--no-prefill-assistant", kNone, "", "", "Put \"continue_final_message\": false into the requests."},
    {"-Cb,--cpu-mask-batch,-Crb,--cpu-range-batch", kOne, "", "", kBatchProcessors},
    {"-td,--threads-draft,-tbd,--threads-batch-draft,--spec-draft-threads,--spec-draft-threads-batch", kOne, "", "",
     kDraftThreads},
    {"-Cd,--cpu-mask-draft,-Crd,--cpu-range-draft,-Cbd,--cpu-mask-batch-draft,-Crbd,--cpu-range-batch-draft,"
     "--spec-draft-cpu-mask,--spec-draft-cpu-range,--spec-draft-cpu-mask-batch",
     kOne, "", "", kDraftThreads},
    {"-cd,--ctx-size-draft", kOne, "", "", "The draft model has the model's context."},
    {"-devd,--device-draft,--spec-draft-device", kOne, "", "",
     "The draft model's layers go to the first device of --device, as many as -ngld says."},
    {"-otd,--override-tensor-draft,--spec-draft-override-tensor,-ncmoed,--n-cpu-moe-draft,--spec-draft-n-cpu-moe,"
     "--spec-draft-ncmoe",
     kOne, "", "", "Weights of the draft model are placed by layers: -ngld."},
    {"-cmoed,--cpu-moe-draft,--spec-draft-cpu-moe", kNone, "", "",
     "Weights of the draft model are placed by layers: -ngld."},
    {"--draft-p-split,--spec-draft-p-split", kOne, "", "", "Drafts do not branch."},
    {"--spec-type", kOne, "", "", "Use --spec off, lookup or mtp, or a draft model with -md."},
    {"--spec-default", kNone, "", "", "Use --spec lookup."},
    {"--spec-replace", kOne, "", "", "The draft model must have the model's vocabulary."},
    {"--spec-synth-len,--spec-synth-rates", kOne, "", "", "Acceptance is measured, not simulated: infer bench."},
    {"--spec-ngram-mod-n-min,--spec-ngram-mod-n-max,--spec-ngram-mod-n-match,--spec-ngram-simple-size-n,"
     "--spec-ngram-simple-size-m,--spec-ngram-simple-min-hits,--spec-ngram-map-k-size-n,--spec-ngram-map-k-size-m,"
     "--spec-ngram-map-k-min-hits,--spec-ngram-map-k4v-size-n,--spec-ngram-map-k4v-size-m,"
     "--spec-ngram-map-k4v-min-hits,--spec-ngram-size-n,--spec-ngram-size-m,--spec-ngram-min-hits",
     kOne, "", "", kNgrams},
    {"-lcs,--lookup-cache-static,-lcd,--lookup-cache-dynamic", kOne, "", "",
     "--spec lookup finds drafts in the prompt, the answer and other requests; it keeps no file."},
    {"--rerank,--reranking", kNone, "", "", "There is no endpoint for it. infer embed scores texts against a query."},
    {"--embd-normalize", kOne, "", "", "infer embed has it; /v1/embeddings returns vectors of length 1."},
    {"--reuse-port", kNone, "", "", "Each server needs its own --port."},
    {"--path", kOne, "", "", "The server serves no files. Put a web server in front of it."},
    {"--api-prefix", kOne, "", "", "Put a proxy in front of the server that removes the prefix."},
    {"--cors-methods,--cors-headers", kOne, "", "",
     "What the API needs is allowed; --cors-origin says to which pages."},
    {"--webui-config,--ui-config,--webui-config-file,--ui-config-file", kOne, "", "", kPage},
    {"--webui,--ui,--ui-mcp-proxy,--webui-mcp-proxy", kNone, "", "", kPage},
    {"--tools,--tools-runtime,--mcp-servers-config,--mcp-servers-json", kOne, "", "", kAgent},
    {"-ag,--agent", kNone, "", "", kAgent},
    {"--props", kNone, "", "", "Settings are flags; they do not change while the server runs."},
    {"--slots,--no-slots", kNone, "", "", "There are no slots; /metrics and /stats describe the load."},
    {"--models-dir,--models-preset,--models-max", kOne, "", "", kRouter},
    {"--models-autoload", kNone, "", "", kRouter},
    {"--sleep-idle-seconds", kOne, "", "", "The model stays loaded. Stop the server to free its memory."},
};

void accept_value(const LlamaCppFlag& flag, const std::string& name, const std::string& value,
                  std::vector<std::string>& ignored) {
  const std::string_view accepted = flag.accepted;
  if (accepted == "*" || accepted.find(concat(" ", value, " ")) != std::string_view::npos) {
    ignored.push_back(concat(name, " has nothing to do: ", flag.why));
    return;
  }
  const bool some = !accepted.empty();  // of its values are accepted
  throw Error(ErrorCode::kInvalidArgument,
              concat(name, some ? concat(" ", printable(value, 60)) : "", " is not supported. ", flag.instead));
}

void add_flag(CLI::App& app, const LlamaCppFlag& flag, const std::string& name, std::vector<std::string>& ignored) {
  CLI::Option* option = nullptr;
  if (flag.value == FlagValue::kNone) {
    option =
        app.add_flag_callback(stored_name(name), [&flag, name, &ignored] { accept_value(flag, name, "", ignored); });
  } else {
    const auto accept = [&flag, name, &ignored](const std::string& value) { accept_value(flag, name, value, ignored); };
    option = app.add_option_function<std::string>(stored_name(name), accept);
    if (flag.value == FlagValue::kSwitch) option->expected(0, 1);
  }
  option->group("");
}

}  // namespace

std::span<const LlamaCppFlag> llama_cpp_flags() { return kFlags; }

void add_llama_cpp_flags(CLI::App& app, std::vector<std::string>& ignored) {
  for (const LlamaCppFlag& flag : kFlags) {
    for (const std::string& name : CLI::detail::split(flag.names, ',')) {
      if (!app.get_option_no_throw(stored_name(name))) add_flag(app, flag, name, ignored);
    }
  }
}

}  // namespace infer
