#include "tools/logprobs.h"

#include <iostream>
#include <memory>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/text/logprobs.h"
#include "src/text/ordered_json.h"
#include "tools/arguments.h"
#include "tools/flags.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

struct LogprobsOptions {
  ModelFlags model;
  std::string tokens;  // "1,2,3": evaluated exactly as given
  std::string prompt;
  bool has_prompt = false;
  int top = 20;
  bool json = false;

  LogprobsOptions() { model.engine.step_tokens = 128; }
};

int run_logprobs(const LogprobsOptions& options) {
  if (options.has_prompt == !options.tokens.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "Give either --tokens or -p.");
  }
  std::shared_ptr<Model> model = load_model(options.model.open());
  const Tokenizer tokenizer(model->vocabulary());
  Request request;
  request.id = 1;
  request.prompt = options.has_prompt ? tokenizer.encode(options.prompt, true, true) : parse_token_ids(options.tokens);
  if (request.prompt.empty())
    throw Error(ErrorCode::kInvalidArgument, "The text has no tokens. Give at least one with -p or --tokens.");
  request.max_new_tokens = 0;
  request.logits_from = 0;
  const std::vector<TokenId> tokens = request.prompt;

  EngineOptions engine_options = options.model.engine_options();
  if (engine_options.context <= 0) engine_options.context = static_cast<int64_t>(tokens.size());
  engine_options.all_logits = true;
  Engine engine(std::move(model), engine_options);
  std::vector<std::vector<TokenLogprob>> positions(tokens.size());
  engine.on_logits([&](RequestId, int64_t position, std::span<const float> logits) {
    positions[position] = top_logprobs(logits, static_cast<size_t>(options.top));
  });
  if (!engine.submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[logprobs] the queue is full");
  while (!engine.idle()) engine.step();

  if (options.json) {
    ordered_json list = ordered_json::array();
    for (const auto& position : positions) {
      ordered_json entries = ordered_json::array();
      for (const TokenLogprob& entry : position) entries.push_back({entry.token, entry.logprob});
      list.push_back(std::move(entries));
    }
    std::cout << ordered_json{{"tokens", tokens}, {"positions", std::move(list)}}.dump() << '\n';
  } else {
    for (size_t i = 0; i < positions.size(); ++i) {
      std::cout << i << '\t' << printable(tokenizer.piece(tokens[i], true), 100);
      for (const TokenLogprob& entry : positions[i]) {
        std::cout << '\t' << printable(tokenizer.piece(entry.token, true), 100) << ' ' << entry.logprob;
      }
      std::cout << '\n';
    }
  }
  if (!std::cout.flush()) throw Error(ErrorCode::kIo, "Cannot write to standard output.");
  return 0;
}

}  // namespace

std::function<int()> define_logprobs(CLI::App& app) {
  const auto o = std::make_shared<LogprobsOptions>();
  add_model_flags(app, o->model);
  app.add_option("--tokens", o->tokens, "Token ids to evaluate, unchanged: 1,2,3")->type_name("IDS");
  app.add_option_function<std::string>(
         "-p,--prompt", [o](const std::string& text) { o->prompt = text, o->has_prompt = true; }, "Text to evaluate")
      ->type_name("TEXT");
  app.add_option("--top", o->top, "Tokens per position (default: 20)")->check(whole_number(1, 1 << 24))->type_name("N");
  app.add_option("--ubatch-size", o->model.engine.step_tokens,
                 "Tokens computed per step (default: 128); does not change the result")
      ->check(whole_number(1, 4096))
      ->type_name("N");
  app.add_flag("--json", o->json, "Print {\"tokens\": [...], \"positions\": [[[token, logprob], ...], ...]}");
  return [o] { return run_logprobs(*o); };
}

}  // namespace infer
