#include "tools/commands.h"

#include <iostream>
#include <memory>
#include <thread>

#include "tools/arguments.h"
#include "tools/bench/bench.h"
#include "tools/bench_serve/bench_serve.h"
#include "tools/devices.h"
#include "tools/flags.h"
#include "tools/imatrix/imatrix.h"
#include "tools/inspect.h"
#include "tools/logprobs.h"
#include "tools/perplexity/perplexity.h"
#include "tools/plan/plan.h"
#include "tools/quantize/file_type.h"
#include "tools/quantize/quantize.h"
#include "tools/run.h"
#include "tools/serve/serve.h"
#include "tools/template.h"
#include "tools/tokenize.h"

namespace infer {
namespace {

std::function<int()> define_run(CLI::App& app) {
  const auto o = std::make_shared<RunOptions>();
  add_model_flags(app, o->model);
  add_profile_flag(app, o->model);
  app.add_option("-p,--prompt", o->prompt, "First message, or text to continue; piped input is appended")
      ->type_name("TEXT");
  app.add_option("-f,--file", o->prompt_file, "File with the prompt, appended to -p")->type_name("FILE");
  auto* raw = app.add_flag("--raw", o->raw, "Plain completion, even if the model has a chat template");
  auto* system = app.add_option(flag_names("-sys,--system-prompt"), o->system, "System prompt of the chat")
                     ->type_name("TEXT")
                     ->excludes(raw);
  app.add_option(flag_names("-sysf,--system-prompt-file"), o->system_file, "File with the system prompt")
      ->type_name("FILE")
      ->excludes(raw)
      ->excludes(system);
  app.add_option("--chat-template", o->chat_template,
                 "Chat template instead of the model's: a Jinja file, or a name (infer template --list)")
      ->type_name("NAME|FILE")
      ->excludes(raw);
  app.add_option("--jinja-vars", o->template_variables, "Variables for the chat template: {\"enable_thinking\": false}")
      ->type_name("JSON")
      ->excludes(raw);
  app.add_flag("--special-in-content", o->special_in_content,
               "Read control tokens such as <|im_end|> in messages as tokens (default: as text)")
      ->excludes(raw);
  app.add_flag(flag_names("-st,--single-turn"), o->single_turn, "Exit after one answer, even on a terminal");
  app.add_flag("-q,--quiet", o->quiet, "Print no notes and no timings");
  add_answer_flags(app, o->answer);
  add_sampling_flags(app, o->sampling);
  add_speculation_flags(app, o->speculation);
  return [o] { return run(*o); };
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"run", "Chat, or continue a prompt (the default command)", define_run},
      {"serve", "Run an OpenAI-compatible server", define_serve},
      {"tokenize", "Print the token ids of a text", define_tokenize},
      {"logprobs", "Print the most probable next tokens after every token of a text", define_logprobs},
      {"template", "Render a conversation with a chat template", define_template},
      {"imatrix", "Measure which columns of the weights matter, for quantize --imatrix", define_imatrix},
      {"perplexity", "Measure how well a model predicts a text, or how far it is from another", define_perplexity},
      {"bench", "Measure speed, as a fraction of this machine's limits", define_bench},
      {"bench-serve", "Measure a server under concurrent load", define_bench_serve},
      {"plan", "Show the memory a model would need on this machine", define_plan},
      {"quantize", "Convert a model to fewer bits per weight", define_quantize},
      {"inspect", "Show the contents of a model file", define_inspect},
      {"devices", "List the devices that can run models", define_devices},
  };
  return all;
}

}  // namespace infer
