#include "tools/run.h"

#include <cstdio>
#include <memory>
#include <optional>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/engine/roofline.h"
#include "src/text/answer_grammar_cache.h"
#include "src/text/answer_text.h"
#include "src/text/chat_template.h"
#include "src/text/ordered_json.h"
#include "src/text/prompt_tokens.h"
#include "tools/answer_timings.h"
#include "tools/arguments.h"
#include "tools/chat/chat.h"
#include "tools/chat_template_flag.h"
#include "tools/constraint_flags.h"
#include "tools/devices.h"
#include "tools/flags.h"
#include "tools/input.h"
#include "tools/interrupt.h"
#include "tools/llama_cpp_flags.h"
#include "tools/model_by_name.h"
#include "tools/profile_table.h"
#include "tools/speculation_flags.h"
#include "tools/status_line.h"
#include "tools/terminal.h"

namespace infer {
namespace {

struct RunOptions {
  ModelFlags model;
  NamedModelFlags named_model;
  ChatOptions chat;
  SpeculationFlags speculation;
  ConstraintFlags constraint;
  std::string prompt_file;   // -f
  std::string system_file;   // --system-prompt-file
  bool raw = false;          // plain completion, even if the model has a chat template
  bool single_turn = false;  // one answer, even on a terminal
};

constexpr const char* kNoPrompt = "No prompt. Use -p TEXT, -f FILE, or pipe text in.";

std::string full_prompt(const RunOptions& options) {
  std::string prompt = options.chat.prompt;
  const auto append = [&](const std::string& text) {
    if (text.empty()) return;
    prompt += (prompt.empty() ? "" : "\n\n") + text;
  };
  if (!options.prompt_file.empty()) append(read_text_file(options.prompt_file));
  append(read_piped_stdin());
  return prompt;
}

// One line on standard error: what the run cost.
void print_timings(Engine& engine, const RunOptions& options) {
  const EngineStats& s = engine.stats();
  AnswerTimings timings;
  timings.prompt_tokens = timings.computed_tokens = s.prompt_tokens;
  timings.generated_tokens = s.generated_tokens;
  timings.decode_tokens = s.decode_tokens;
  timings.prompt_seconds = s.prompt_seconds;
  timings.decode_seconds = s.decode_seconds;
  std::string line = short_summary(timings);
  if (options.chat.settings.answer.show_stats && s.decode_seconds > 0) {
    // No fraction: weights that stay in the caches are read faster than memory bandwidth. Each step reads them once.
    const double rate = static_cast<double>(s.decode_steps) / s.decode_seconds *
                        static_cast<double>(bytes_per_token(engine.runner().placed()));
    char text[96];
    std::snprintf(text, sizeof(text), " · weights read at %.2f GB/s (memory bandwidth %.1f GB/s)", rate / 1e9,
                  read_bandwidth(engine.runner().placed()) / 1e9);
    line += text;
  }
  if (const std::string drafts = speculation_summary(engine); !drafts.empty()) line += " · " + drafts;
  if (options.model.verbose) {
    char text[32];
    std::snprintf(text, sizeof(text), " · logits %016llx", static_cast<unsigned long long>(engine.last_logits_hash()));
    line += text;
  }
  write_note(line, Style::kPlain);
}

void note_long_context(const Engine& engine) {
  const int64_t trained = engine.model().context_length();
  if (trained > 0 && engine.context() > trained) {
    std::fprintf(
        stderr, "note: The context has %s tokens; the model was trained with %s. Long answers may get worse.\n",
        grouped(static_cast<uint64_t>(engine.context())).c_str(), grouped(static_cast<uint64_t>(trained)).c_str());
  }
}

// Null: the completion is unconstrained.
std::shared_ptr<const TokenMask> completion_mask(const ContentConstraint& content, const Engine& engine) {
  const AnswerConstraint constraint{content, {}, {}};
  if (constraint.free()) return nullptr;
  AnswerGrammarCache grammars(engine.tokenizer(), static_cast<size_t>(engine.model().n_vocab()), nullptr);
  const AnswerGrammarCache::Entry entry = grammars.get(constraint, false);
  print_warnings(entry.warnings);
  return AnswerGrammarCache::mask(entry);
}

int run_completion(const RunOptions& options, Engine& engine) {
  const ChatSettings& settings = options.chat.settings;
  const Tokenizer& tokenizer = engine.tokenizer();
  Request request;
  request.id = 1;
  request.prompt = encode_plain_prompt(tokenizer, options.chat.prompt);
  if (request.prompt.empty()) {
    throw Error(ErrorCode::kInvalidArgument, kNoPrompt);
  }
  const int64_t needed = static_cast<int64_t>(request.prompt.size()) + (settings.answer.n_predict != 0 ? 1 : 0);
  if (needed > engine.context()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        concat("The prompt needs ", grouped(static_cast<uint64_t>(needed)), " tokens; the context holds ",
               grouped(static_cast<uint64_t>(engine.context())), ". Shorten the prompt, or raise the limit with -c."));
  }
  request.sampling = settings.sampling;
  request.max_new_tokens = settings.answer.n_predict;
  request.ignore_eog = settings.answer.ignore_eos;
  request.mask = completion_mask(settings.content, engine);
  if (!engine.submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[run] the queue is full");

  const InterruptGuard guard;
  AnswerText text(tokenizer, {settings.answer.stop, {}, nullptr});
  FinishReason finished = FinishReason::kNone;
  bool at_line_start = true;
  const auto write = [&](const AnswerDelta& delta) {
    if (!delta.content.empty()) at_line_start = delta.content.ends_with('\n');
    write_text(delta.content);
  };
  PromptLine progress(!options.chat.quiet);
  while (!engine.idle()) {
    if (guard.interrupted() || text.stopped()) {
      engine.cancel(1);
      break;
    }
    for (const Progress& p : engine.step()) {
      progress.update(p);
      AnswerDelta delta;
      text.add(p.tokens, p.finished == FinishReason::kEndOfGeneration, delta);
      write(delta);
      finished = p.finished;
    }
  }
  progress.clear();
  AnswerDelta rest;
  text.finish(rest);
  write(rest);
  // With --raw, a pipe gets exactly the completion's bytes.
  if (!at_line_start && (stdout_is_terminal() || !options.raw)) write_text("\n");
  if (!options.chat.quiet && finished == FinishReason::kContextFull) {
    std::fprintf(stderr, "The context of %s tokens is full; the text ends here. Raise it with -c.\n",
                 grouped(static_cast<uint64_t>(engine.context())).c_str());
  }
  return guard.interrupted() ? kInterruptedCode : 0;
}

// The template that --chat-template names, else the model's own; nullopt if there is none.
std::optional<ChatTemplate> find_template(const RunOptions& options, const Model& model) {
  if (!options.chat.chat_template.empty()) return template_by_name_or_file(options.chat.chat_template);
  if (!model.chat_template()) return std::nullopt;
  return ChatTemplate::parse(*model.chat_template());
}

bool is_interactive(const RunOptions& options) {
  // An answer written to a file or a pipe is the only one, unless there is no prompt yet.
  return stdin_is_terminal() && (stdout_is_terminal() || options.chat.prompt.empty()) && !options.single_turn;
}

int run(RunOptions& options) {
  ChatOptions& chat = options.chat;
  chat.settings.sampling.validate();
  options.model.report_ignored([](const std::string& line) { std::fprintf(stderr, "note: %s\n", line.c_str()); });
  chat.prompt = full_prompt(options);
  chat.settings.content = options.constraint.content();
  chat.settings.tools = options.constraint.tools();
  const bool constrained =
      chat.settings.content.kind != ContentConstraint::Kind::kNone || !chat.settings.tools.is_null();
  if (constrained && chat.settings.answer.ignore_eos) {
    throw Error(ErrorCode::kInvalidArgument,
                "--ignore-eos cannot be combined with a grammar, a schema or tools, which determine where an answer "
                "ends. Leave one out.");
  }
  if (!options.system_file.empty()) chat.system = read_text_file(options.system_file);
  options.model.model = find_model_file(options.model.model, options.named_model, options.model.engine_options());
  std::shared_ptr<Model> model = load_model(options.model.open());
  std::optional<ChatTemplate> chat_template;
  if (!options.raw) chat_template = find_template(options, *model);
  const bool wants_chat =
      !chat.system.empty() || !chat.settings.template_variables.is_null() || !chat.settings.tools.is_null();
  if (!options.raw && !chat_template && wants_chat) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "The model has no chat template, so it cannot use --system-prompt, --chat-template-kwargs and --tools. Name a "
        "template with --chat-template, or leave them out.");
  }
  if (chat.prompt.empty() && chat_template && !stdin_is_terminal()) {
    throw Error(ErrorCode::kInvalidArgument, kNoPrompt);
  }
  EngineOptions engine_options = options.model.engine_options();
  engine_options.speculation = options.speculation.options();
  Engine engine(std::move(model), engine_options);
  if (!chat.quiet) note_long_context(engine);
  chat.interactive = chat_template && is_interactive(options);
  if (chat_template && !chat.interactive && chat.prompt.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "No prompt for --single-turn. Use -p TEXT or -f FILE.");
  }
  const int code = chat_template ? run_chat(engine, std::move(*chat_template), chat) : run_completion(options, engine);
  // A conversation shows a line for every answer.
  if (!chat.quiet && (!chat.interactive || chat.settings.answer.show_stats)) print_timings(engine, options);
  print_profile(engine);
  return code;
}

}  // namespace

std::function<int()> define_run(CLI::App& app) {
  const auto o = std::make_shared<RunOptions>();
  add_model_flags(app, o->model);
  add_batch_flags(app, o->model);
  add_named_model_flags(app, o->named_model);
  add_profile_flag(app, o->model);
  app.add_option("-p,--prompt", o->chat.prompt, "First message, or text to continue; piped input is appended")
      ->type_name("TEXT");
  app.add_option("-f,--file", o->prompt_file, "File with the prompt, appended to -p")->type_name("FILE");
  auto* raw = app.add_flag(flag_names("--raw,-no-cnv,--no-conversation"), o->raw,
                           "Plain completion, even if the model has a chat template");
  auto* system = app.add_option(flag_names("-sys,--system-prompt"), o->chat.system, "System prompt of the chat")
                     ->type_name("TEXT")
                     ->excludes(raw);
  app.add_option(flag_names("-sysf,--system-prompt-file"), o->system_file, "File with the system prompt")
      ->type_name("FILE")
      ->excludes(raw)
      ->excludes(system);
  for (CLI::Option* option : add_chat_template_flags(app, o->chat.chat_template, o->chat.settings.template_variables)) {
    option->excludes(raw);
  }
  app.add_flag("--special-in-content", o->chat.settings.special_in_content,
               "Read control tokens such as <|im_end|> in messages as tokens (default: as text)")
      ->excludes(raw);
  app.add_flag(flag_names("-st,--single-turn"), o->single_turn, "Exit after one answer, even on a terminal");
  app.add_flag("-q,--quiet", o->chat.quiet, "Print no notes, no progress and no timings");
  add_answer_flags(app, o->chat.settings.answer);
  add_sampling_flags(app, o->chat.settings.sampling);
  add_speculation_flags(app, o->speculation);
  add_constraint_flags(app, o->constraint);
  add_tools_flag(app, o->constraint)->excludes(raw);
  app.add_flag(flag_names("-v,--verbose,--log-verbose"), o->model.verbose,
               "Name the flags that had nothing to do, and end with a hash of the last logits");
  add_list_devices_flag(app);
  app.add_flag_callback(
      "--context-shift", [o] { o->chat.settings.answer.context_overflow = "shift-turns"; },
      "The same as --context-overflow shift-turns");
  add_llama_cpp_flags(app, o->model.ignored);
  return [o] { return run(*o); };
}

}  // namespace infer
