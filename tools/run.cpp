#include "tools/run.h"

#include <cstdio>
#include <optional>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/engine/roofline.h"
#include "src/text/answer_text.h"
#include "src/text/chat_template.h"
#include "src/text/ordered_json.h"
#include "src/text/prompt_tokens.h"
#include "tools/chat/chat.h"
#include "tools/chat_template_flag.h"
#include "tools/input.h"
#include "tools/interrupt.h"
#include "tools/profile_table.h"
#include "tools/terminal.h"

namespace infer {
namespace {

constexpr const char* kNoPrompt = "No prompt. Use -p TEXT, -f FILE, or pipe text in.";

std::string full_prompt(const RunOptions& options) {
  std::string prompt = options.prompt;
  const auto append = [&](const std::string& text) {
    if (text.empty()) return;
    prompt += (prompt.empty() ? "" : "\n\n") + text;
  };
  if (!options.prompt_file.empty()) append(read_text_file(options.prompt_file));
  append(read_piped_stdin());
  return prompt;
}

double rate(int64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; }

void note_long_context(const Engine& engine) {
  const int64_t trained = engine.model().context_length();
  if (trained > 0 && engine.context() > trained) {
    std::fprintf(
        stderr, "note: The context has %s tokens; the model was trained with %s. Long answers may get worse.\n",
        grouped(static_cast<uint64_t>(engine.context())).c_str(), grouped(static_cast<uint64_t>(trained)).c_str());
  }
}

int run_completion(const RunOptions& options, Engine& engine, const std::string& prompt) {
  const Tokenizer& tokenizer = engine.tokenizer();
  Request request;
  request.id = 1;
  request.prompt = encode_plain_prompt(tokenizer, prompt);
  if (request.prompt.empty()) {
    throw Error(ErrorCode::kInvalidArgument, kNoPrompt);
  }
  const int64_t needed = static_cast<int64_t>(request.prompt.size()) + (options.answer.n_predict != 0 ? 1 : 0);
  if (needed > engine.context()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        concat("The prompt needs ", grouped(static_cast<uint64_t>(needed)), " tokens; the context holds ",
               grouped(static_cast<uint64_t>(engine.context())), ". Shorten the prompt, or raise the limit with -c."));
  }
  request.sampling = options.sampling;
  request.max_new_tokens = options.answer.n_predict;
  request.ignore_eog = options.answer.ignore_eos;
  if (!engine.submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[run] the queue is full");

  const InterruptGuard guard;
  AnswerText text(tokenizer, {options.answer.stop, {}, std::nullopt});
  FinishReason finished = FinishReason::kNone;
  bool at_line_start = true;
  const auto write = [&](const AnswerDelta& delta) {
    if (!delta.content.empty()) at_line_start = delta.content.ends_with('\n');
    write_text(delta.content);
  };
  while (!engine.idle()) {
    if (guard.interrupted() || text.stopped()) {
      engine.cancel(1);
      break;
    }
    for (const Progress& p : engine.step()) {
      AnswerDelta delta;
      text.add(p.tokens, p.finished == FinishReason::kEndOfGeneration, delta);
      write(delta);
      finished = p.finished;
    }
  }
  AnswerDelta rest;
  text.finish(rest);
  write(rest);
  // With --raw, a pipe gets exactly the completion's bytes.
  if (!at_line_start && (stdout_is_terminal() || !options.raw)) write_text("\n");
  if (!options.quiet) {
    if (finished == FinishReason::kContextFull) {
      std::fprintf(stderr, "The context of %s tokens is full; the text ends here. Raise it with -c.\n",
                   grouped(static_cast<uint64_t>(engine.context())).c_str());
    }
    print_timings(engine, options.answer.show_stats);
  }
  return guard.interrupted() ? 130 : 0;
}

nlohmann::ordered_json parse_variables(const std::string& text) {
  if (text.empty()) return nullptr;
  nlohmann::ordered_json variables = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!variables.is_object()) {
    throw Error(ErrorCode::kInvalidArgument, "--jinja-vars: " + printable(text, 60) +
                                                 " is not a JSON object. Write it like {\"enable_thinking\": false}.");
  }
  return variables;
}

// The template that --chat-template names, else the model's own; nullopt if there is none.
std::optional<ChatTemplate> find_template(const RunOptions& options, const Model& model) {
  if (!options.chat_template.empty()) return template_by_name_or_file(options.chat_template);
  if (!model.chat_template()) return std::nullopt;
  return ChatTemplate::parse(*model.chat_template());
}

}  // namespace

int run(const RunOptions& options) {
  options.sampling.validate();
  nlohmann::ordered_json variables = parse_variables(options.template_variables);
  const std::string prompt = full_prompt(options);
  const std::string system = options.system_file.empty() ? options.system : read_text_file(options.system_file);
  std::shared_ptr<Model> model = load_model(GgufFile::open(options.model.model, options.model.open_options));
  std::optional<ChatTemplate> chat_template;
  if (!options.raw) chat_template = find_template(options, *model);
  const bool wants_chat = !system.empty() || !variables.is_null();
  if (!options.raw && !chat_template && wants_chat) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "The model has no chat template, so it cannot use --system-prompt and --jinja-vars. Name a template with "
        "--chat-template, or leave them out.");
  }
  if (prompt.empty() && chat_template && !stdin_is_terminal()) {
    throw Error(ErrorCode::kInvalidArgument, kNoPrompt);
  }
  EngineOptions engine_options = options.model.engine_options();
  engine_options.speculation = options.speculation.options();
  Engine engine(std::move(model), engine_options);
  if (!options.quiet) note_long_context(engine);
  if (!chat_template) return run_completion(options, engine, prompt);

  ChatOptions chat;
  chat.answer = options.answer;
  chat.sampling = options.sampling;
  chat.template_variables = std::move(variables);
  chat.special_in_content = options.special_in_content;
  chat.template_name = options.chat_template.empty() ? "the model's own" : options.chat_template;
  chat.system = system;
  chat.prompt = prompt;
  // An answer to a file or a pipe is the only one, unless there is nothing to answer yet.
  chat.interactive = stdin_is_terminal() && (stdout_is_terminal() || prompt.empty()) && !options.single_turn;
  if (!chat.interactive && prompt.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "No prompt for --single-turn. Use -p TEXT or -f FILE.");
  }
  chat.quiet = options.quiet;
  return run_chat(engine, std::move(*chat_template), chat);
}

void print_timings(Engine& engine, bool bandwidth) {
  const EngineStats& s = engine.stats();
  const double steps = rate(s.decode_steps, s.decode_seconds);  // each reads the weights once
  const double achieved = steps * static_cast<double>(bytes_per_token(engine.runner().placed()));
  const double limit = bandwidth && steps > 0 ? read_bandwidth(engine.runner().placed()) : 0;
  std::fprintf(stderr, "prompt %lld tokens, %.1f tokens/s | generated %lld tokens, %.1f tokens/s",
               static_cast<long long>(s.prompt_tokens), rate(s.prompt_tokens, s.prompt_seconds),
               static_cast<long long>(s.generated_tokens), rate(s.decode_tokens, s.decode_seconds));
  if (limit > 0) {
    // No fraction: weights that stay in the caches are read faster than memory bandwidth.
    std::fprintf(stderr, ", weights read at %.2f GB/s (memory bandwidth %.1f GB/s)", achieved / 1e9, limit / 1e9);
  }
  if (const std::string drafts = speculation_summary(engine); !drafts.empty()) {
    std::fprintf(stderr, " | %s", drafts.c_str());
  }
  std::fprintf(stderr, " | logits %016llx\n", static_cast<unsigned long long>(engine.last_logits_hash()));
  print_profile(engine);
}

}  // namespace infer
