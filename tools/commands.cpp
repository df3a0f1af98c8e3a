#include "tools/commands.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "tools/bench/bench.h"
#include "tools/bench_serve/bench_serve.h"
#include "tools/devices.h"
#include "tools/embed/embed.h"
#include "tools/grammar/grammar.h"
#include "tools/help.h"
#include "tools/imatrix/imatrix.h"
#include "tools/inspect.h"
#include "tools/logprobs.h"
#include "tools/manual/manual.h"
#include "tools/models.h"
#include "tools/perplexity/perplexity.h"
#include "tools/plan/plan.h"
#include "tools/pull.h"
#include "tools/quantize/quantize.h"
#include "tools/run.h"
#include "tools/serve/serve.h"
#include "tools/template.h"
#include "tools/tokenize.h"

namespace infer {

namespace {

const std::vector<Command> kAll = {
    {"run",
     "Chat, or continue a prompt (the default command)",
     define_run,
     {"infer run model.gguf", "infer run model.gguf -p \"Why is the sky blue?\" -n 200 --temp 0"},
     "chat"},
    {"serve",
     "Run an OpenAI-compatible server",
     define_serve,
     {"infer serve model.gguf", "infer serve model.gguf --port 9000 -np 16 --api-key-file keys.txt"},
     "serve"},
    {"pull",
     "Download a model by name",
     define_pull,
     {"infer pull ggml-org/gemma-3-1b-it-GGUF:Q4_K_M", "infer pull ollama.com/library/qwen3:0.6b"},
     "models"},
    {"models",
     "List the downloaded models",
     define_models,
     {"infer models", "infer models --json"},
     "models",
     {"list", "ls"}},
    {"rm",
     "Remove a downloaded model",
     define_rm,
     {"infer rm ggml-org/gemma-3-1b-it-GGUF:Q4_K_M", "infer rm ollama.com/library/qwen3:0.6b"},
     "models"},
    {"tokenize",
     "Print the token ids of a text",
     define_tokenize,
     {"infer tokenize -m model.gguf \"Once upon a time\"", "infer tokenize -m model.gguf --json --file text.txt"}},
    {"logprobs",
     "Print the most probable next tokens after every token of a text",
     define_logprobs,
     {"infer logprobs model.gguf -p \"Once upon a time\"",
      "infer logprobs model.gguf --tokens 1,9038,2501 --top 5 --json"}},
    {"embed",
     "Turn texts into vectors, or score them against a query",
     define_embed,
     {"infer embed -m model.gguf \"a text\" \"another text\"",
      "infer embed -m model.gguf -f lines.txt --format npy -o vectors.npy"},
     "embed"},
    {"template",
     "Render a conversation with a chat template",
     define_template,
     {"infer template model.gguf", "infer template --list"},
     "tool-calls"},
    {"grammar",
     "Check a grammar or a JSON schema, and texts against it",
     define_grammar,
     {"infer grammar --check --grammar-file answer.gbnf text.txt",
      "infer grammar --check --json-schema-file schema.json answer.json"},
     "grammars"},
    {"imatrix",
     "Measure which columns of the weights matter, for quantize --imatrix",
     define_imatrix,
     {"infer imatrix model.gguf -f text.txt -o model.imatrix",
      "infer imatrix model.gguf -f text.txt -o model.imatrix --chunks 100"},
     "quantize"},
    {"perplexity",
     "Measure how well a model predicts a text, or how far it is from another",
     define_perplexity,
     {"infer perplexity model.gguf -f wiki.test.raw",
      "infer perplexity model.gguf -f wiki.test.raw --save-logits base.logits"},
     "quantize"},
    {"bench",
     "Measure speed, as a fraction of this machine's limits",
     define_bench,
     {"infer bench model.gguf", "infer bench model.gguf -p 512,2048 -n 128 -b 1,8 --json"},
     "performance"},
    {"bench-serve",
     "Measure a server under concurrent load",
     define_bench_serve,
     {"infer bench-serve --url http://127.0.0.1:8080",
      "infer bench-serve --url http://127.0.0.1:8080 --concurrency 1,8 --mix decode --json"},
     "bench-serve"},
    {"plan",
     "Show the memory a model would need on this machine",
     define_plan,
     {"infer plan model.gguf", "infer plan model.gguf -c 32768 -ngl 20 --parallel 4"},
     "offload"},
    {"quantize",
     "Convert a model to fewer bits per weight",
     define_quantize,
     {"infer quantize model-f16.gguf model-q4_k_m.gguf Q4_K_M",
      "infer quantize model-f16.gguf model-q4_k_m.gguf Q4_K_M --imatrix model.imatrix --report"},
     "quantize"},
    {"inspect",
     "Show the contents of a model file",
     define_inspect,
     {"infer inspect model.gguf", "infer inspect model.gguf --tensors --verify"},
     {},
     {"show"}},
    {"devices",
     "List the devices that can run models",
     define_devices,
     {"infer devices", "infer devices --ops --json"},
     "offload"},
    {"completion",
     "Print a script that completes infer's command lines in a shell",
     define_completion,
     {"infer completion bash > ~/.local/share/bash-completion/completions/infer",
      "infer completion fish > ~/.config/fish/completions/infer.fish"}},
    {"manual", "Print a manual page", define_manual, {"infer manual serve | man -l -", "infer manual --folder man1"}},
};

struct MissingCommand {
  std::string_view names;  // with blanks around each
  std::string_view instead;
};

constexpr MissingCommand kMissing[] = {
    {" ps ", "Nothing runs in the background. GET /stats of a running infer serve describes its load."},
    {" stop ", "Nothing runs in the background. Ctrl-C or SIGTERM ends infer serve."},
    {" create ",
     "Modelfiles are not read. Give their settings as flags: --system-prompt, --temp, -c, --chat-template-file."},
    {" cp ",
     "Models keep the names that they have on the hub. infer models --json lists their files, which cp copies."},
    {" push ", "infer uploads nothing."},
    {" signin login signout logout ", "There are no accounts. Set HF_TOKEN for private models on Hugging Face."},
    {" launch ", "Start infer serve, and tell the program to use an OpenAI API at http://127.0.0.1:8080/v1."},
};

}  // namespace

const std::vector<Command>& commands() { return kAll; }

const Command* find_command(std::string_view name) {
  for (const Command& command : commands()) {
    const auto& aliases = command.aliases;
    if (command.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) return &command;
  }
  return nullptr;
}

std::string_view instead_of_command(std::string_view name) {
  for (const MissingCommand& missing : kMissing) {
    if (missing.names.find(concat(" ", name, " ")) != std::string_view::npos) return missing.instead;
  }
  return "";
}

std::function<int()> define_command(const Command& command, CLI::App& app) {
  app.name(concat("infer ", command.name));
  app.description(std::string(command.summary));
  app.allow_windows_style_options(false);
  app.set_help_flag("-h,--help,--usage", "Print this help and exit");
  app.set_version_flag("--version", concat("infer ", INFER_VERSION), "Print the version and exit");
  app.footer(help_examples(command.examples));
  // If a flag is repeated, the last one counts; flags that take lists override this.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return command.define(app);
}

}  // namespace infer
