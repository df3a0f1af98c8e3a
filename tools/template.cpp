#include "tools/template.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/message.h"
#include "src/model/vocabulary_loader.h"
#include "src/text/chat_template.h"
#include "src/text/tokenizer.h"
#include "tools/chat_template_flag.h"
#include "tools/input.h"
#include "tools/model_by_name.h"
#include "tools/parse_answers.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

struct TemplateOptions {
  std::string model;          // -m: its own template and its BOS and EOS texts
  std::string template_file;  // --template-file
  std::string chat_template;  // --chat-template: a name or a file
  std::string input;          // --input: CONVERSATION.json, - for standard input
  std::string context;        // --context: VARS.json
  std::string parse;          // --parse: CONVERSATION.json whose answers are read from standard input
  bool jsonl = false;         // --jsonl: how they are given
  std::string variables;      // --jinja-vars: a JSON object
  std::string now;            // --now: 2026-01-15T10:30:00; "": the local time
  bool list = false;          // --list: the names of the built-in templates
};

[[noreturn]] void wrong_usage(const std::string& text) { throw Error(ErrorCode::kInvalidArgument, text); }

// The template engine rejects deeper JSON anyway, but the parser sees it first.
constexpr int kMaxJsonDepth = 256;

ordered_json parse_object(const std::string& text, const std::string& where) {
  int deepest = 0;
  const auto watch = [&](int depth, ordered_json::parse_event_t, const ordered_json&) {
    deepest = std::max(deepest, depth);
    if (deepest > kMaxJsonDepth)
      wrong_usage(expected_found("template", where, concat("at most ", kMaxJsonDepth, " levels of JSON"), "more"));
    return true;
  };
  ordered_json value;
  try {
    value = ordered_json::parse(text, watch);
  } catch (const ordered_json::parse_error& error) {
    wrong_usage(expected_found("template", where, "JSON", concat("an error at byte ", error.byte)));
  }
  if (!value.is_object()) wrong_usage(expected_found("template", where, "a JSON object", value.type_name()));
  return value;
}

ordered_json read_object(const std::string& path) {
  return parse_object(path == "-" ? read_stdin() : read_text_file(path), path == "-" ? "standard input" : path);
}

std::tm parse_time(const std::string& text) {
  std::tm time = {};
  char rest = 0;
  const int n = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%c", &time.tm_year, &time.tm_mon, &time.tm_mday,
                            &time.tm_hour, &time.tm_min, &time.tm_sec, &rest);
  const std::tm given = time;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  time.tm_isdst = 0;
  std::tm normal = time;
  // timegm fills in the weekday and day of the year, and normalizes dates that do not exist.
  if (n != 6 || timegm(&normal) == -1 || normal.tm_mday != given.tm_mday || normal.tm_mon != given.tm_mon - 1 ||
      normal.tm_hour != given.tm_hour || normal.tm_min != given.tm_min || normal.tm_sec != given.tm_sec) {
    wrong_usage(concat("--now: ", text, " is not a time. Write it like 2026-01-15T10:30:00."));
  }
  return normal;
}

// What a model file contributes to a prompt.
struct ModelTexts {
  std::optional<std::string> chat_template;
  std::string bos, eos;
};

ModelTexts read_model(const std::string& path) {
  GgufOpenOptions open;
  open.map_data = false;
  const auto file = open_model(path, open);
  ModelTexts texts;
  texts.chat_template = file->get_string("tokenizer.chat_template");
  const Tokenizer tokenizer(load_vocabulary(*file));
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const auto text_of = [&](TokenId id) { return id == kNoToken ? "" : std::string(tokenizer.piece(id, true)); };
  texts.bos = text_of(vocabulary.bos);
  texts.eos = text_of(vocabulary.eos);
  return texts;
}

ChatTemplate chosen_template(const TemplateOptions& options, const std::optional<ModelTexts>& model) {
  if (!options.template_file.empty()) return ChatTemplate::parse(read_text_file(options.template_file));
  if (!options.chat_template.empty()) return template_by_name_or_file(options.chat_template);
  if (!model) wrong_usage("No template. Give --model, --template-file or --chat-template.");
  if (!model->chat_template) {
    throw Error(ErrorCode::kInvalidFile,
                concat(options.model, " has no chat template. Name one with --chat-template."));
  }
  return ChatTemplate::parse(*model->chat_template);
}

// The members of a conversation; all others are variables.
Conversation to_conversation(ordered_json input, const std::string& given_by, const std::optional<ModelTexts>& model) {
  Conversation conversation;
  conversation.variables = ordered_json::object();
  if (model) conversation.bos_token = model->bos, conversation.eos_token = model->eos;
  if (!input.contains("messages"))
    wrong_usage(concat(given_by, ": expected an object with \"messages\", found one without"));
  const auto flag = [&](const std::string& name, const ordered_json& value, bool& flag_value) {
    if (!value.is_boolean())
      wrong_usage(concat(given_by, ": ", name, ": expected true or false, found ", value.type_name()));
    flag_value = value.get<bool>();
  };
  const auto text = [&](const std::string& name, const ordered_json& value, std::string& text_value) {
    if (!value.is_string()) wrong_usage(concat(given_by, ": ", name, ": expected a string, found ", value.type_name()));
    text_value = value.get<std::string>();
  };
  for (auto& [name, value] : input.items()) {
    if (name == "messages") conversation.messages = value;
    else if (name == "tools") conversation.tools = value;
    else if (name == "documents") conversation.documents = value;
    else if (name == "add_generation_prompt") flag(name, value, conversation.add_generation_prompt);
    else if (name == "continue_final_message") flag(name, value, conversation.continue_final_message);
    else if (name == "bos_token") text(name, value, conversation.bos_token);
    else if (name == "eos_token") text(name, value, conversation.eos_token);
    else conversation.variables[name] = value;
  }
  return conversation;
}

void write_prompt(const std::string& prompt) { std::fwrite(prompt.data(), 1, prompt.size(), stdout); }

void check_usage(const TemplateOptions& options) {
  const int inputs = !options.input.empty() + !options.context.empty() + !options.parse.empty();
  if (inputs != 1) wrong_usage("Give one of --input, --context and --parse.");
  if (options.jsonl != !options.parse.empty()) {
    wrong_usage(options.jsonl ? "--jsonl needs --parse CONVERSATION.json." : "--parse needs --jsonl for the answers.");
  }
  if (options.parse == "-") wrong_usage("--parse needs a file: standard input is for the answers.");
}

int run_template(const TemplateOptions& options) {
  if (options.list) {
    for (const std::string_view name : ChatTemplate::builtin_names()) std::cout << name << '\n';
    return 0;
  }
  check_usage(options);
  std::optional<std::tm> now;
  if (!options.now.empty()) now = parse_time(options.now);
  ordered_json more = ordered_json::object();
  if (!options.variables.empty()) more = parse_object(options.variables, "--jinja-vars");
  ordered_json input = read_object(!options.input.empty()     ? options.input
                                   : !options.context.empty() ? options.context
                                                              : options.parse);

  std::optional<ModelTexts> model;
  if (!options.model.empty()) model = read_model(options.model);
  ChatTemplate chat_template = chosen_template(options, model);
  if (now) chat_template = chat_template.with_clock([time = *now] { return time; });

  if (!options.context.empty()) {
    for (auto& [name, value] : more.items()) input[name] = value;
    write_prompt(chat_template.render_variables(input));
    return 0;
  }
  Conversation conversation = to_conversation(std::move(input), options.parse.empty() ? "--input" : "--parse", model);
  for (auto& [name, value] : more.items()) conversation.variables[name] = value;
  if (options.parse.empty()) write_prompt(chat_template.render(conversation));
  else parse_answers(chat_template, conversation, read_stdin(), std::cout);
  return 0;
}

}  // namespace

std::function<int()> define_template(CLI::App& app) {
  const auto o = std::make_shared<TemplateOptions>();
  auto* model = app.add_option("-m,--model", o->model, "Model file with the chat template")->type_name("FILE");
  auto* file = app.add_option("--template-file", o->template_file, "File with a chat template (Jinja)");
  file->type_name("FILE");
  app.add_option("--chat-template", o->chat_template, "Built-in chat template by name, or a file with one")
      ->check(suggests_templates())
      ->type_name("NAME|FILE")
      ->excludes(file);
  file->excludes(model);
  auto* input = app.add_option("--input", o->input,
                               "JSON file {\"messages\", \"tools\", \"add_generation_prompt\", "
                               "\"continue_final_message\", \"bos_token\", \"eos_token\", ...}, - for standard "
                               "input; other members become variables");
  input->type_name("FILE");
  app.add_option("--context", o->context, "JSON file with all variables, passed unchanged")
      ->type_name("FILE")
      ->excludes(input);
  app.add_option("--parse", o->parse,
                 "JSON file as for --input: read answers to this conversation from standard input and print their "
                 "reasoning, content and tool calls")
      ->type_name("FILE");
  app.add_flag(
      "--jsonl", o->jsonl,
      "With --parse: one {\"text\", \"finish\": \"stop\"|\"length\", \"chunk\": N} per line in, one "
      "{\"content\", \"reasoning_content\", \"tool_calls\"} per line out; with chunk, which feeds N bytes at a "
      "time, one {\"deltas\"}");
  app.add_option("--now", o->now, "Time for strftime_now: 2026-01-15T10:30:00 (default: the local time)")
      ->type_name("TIME");
  app.add_option("--chat-template-kwargs,--jinja-vars", o->variables,
                 "JSON object with more variables: {\"enable_thinking\": false}")
      ->type_name("JSON");
  app.add_flag("--list", o->list, "List the built-in chat templates");
  return [o] { return run_template(*o); };
}

}  // namespace infer
