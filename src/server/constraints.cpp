#include "src/server/constraints.h"

#include <algorithm>
#include <utility>

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {
namespace {

using Kind = ContentConstraint::Kind;
using Mode = CallConstraint::Mode;

constexpr size_t kMaxChoices = 100'000, kMaxTriggers = 256, kMaxTools = 1024;

// Collects the constraint of a request; a second one is an error.
class ConstraintReader {
 public:
  explicit ConstraintReader(bool lenient) { constraint_.lenient = lenient; }

  ContentConstraint take() { return std::move(constraint_); }
  bool has_schema() const { return constraint_.kind == Kind::kJsonSchema; }
  bool has_grammar() const { return constraint_.kind == Kind::kGrammar; }
  void set_compact() { constraint_.compact = true; }
  ContentConstraint& set_lazy() {
    constraint_.lazy = true;
    return constraint_;
  }

  void add(const std::string& member, Kind kind, std::string text) {
    if (constraint_.kind != Kind::kNone)
      throw invalid_parameter(member, concat("use it without ", constraint_.source, "; an answer has one constraint"));
    constraint_.source = member;
    constraint_.kind = kind;
    constraint_.text = std::move(text);
  }
  void add_schema(const std::string& member, const Json& schema) {
    if (!schema.is_object() && !schema.is_boolean())
      throw unexpected_value(member, "a JSON schema", describe_json(schema));
    add(member, Kind::kJsonSchema, schema.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  // A schema, or its JSON text as vLLM takes it.
  void add_schema_or_text(const std::string& member, const Json& schema) {
    if (schema.is_string()) add(member, Kind::kJsonSchema, schema.get<std::string>());
    else add_schema(member, schema);
  }
  void add_choices(const std::string& member, const Json& choices) {
    std::vector<std::string> texts;
    for (const Json& choice : choices) {
      if (!choice.is_string() || choice.get_ref<const std::string&>().empty())
        throw unexpected_value(member, "texts that are not empty", describe_json(choice));
      texts.push_back(choice);
    }
    add(member, Kind::kChoice, "");
    constraint_.choices = std::move(texts);
  }

 private:
  ContentConstraint constraint_;
};

const Json& object_schema() {
  static const Json schema = {{"type", "object"}};
  return schema;
}

// {"type": "json_schema", "json_schema": {"name", "schema", "strict"}} and its relatives.
void read_response_format(const JsonFields& fields, ConstraintReader& reader) {
  const Json* format = fields.object("response_format");
  if (!format) return;
  const JsonFields members(*format, fields.name_of("response_format."));
  const std::string type = members.text("type").value_or("");
  if (type == "text") return;
  if (type == "json_object") {
    const Json* schema = members.find("schema");
    reader.add_schema(members.name_of(schema ? "schema" : "type"), schema ? *schema : object_schema());
  } else if (type == "json_schema") {
    const Json* wrapper = members.object("json_schema");
    if (!wrapper && !members.find("schema")) members.refuse("json_schema", "an object with a schema");
    const JsonFields inner(wrapper ? *wrapper : *format,
                           wrapper ? members.name_of("json_schema.") : members.name_of(""));
    const Json* schema = inner.find("schema");
    if (!schema) inner.refuse("schema", "a JSON schema");
    inner.text("name");
    inner.boolean("strict", true);
    reader.add_schema(inner.name_of("schema"), *schema);
  } else if (type == "regex") {
    reader.add(members.name_of("pattern"), Kind::kRegex, members.text("pattern").value_or(""));
  } else if (type == "grammar") {
    reader.add(members.name_of("grammar"), Kind::kGrammar, members.text("grammar").value_or(""));
  } else {
    members.refuse("type", "\"text\", \"json_object\", \"json_schema\", \"regex\" or \"grammar\"");
  }
}

void read_structured_outputs(const JsonFields& fields, ConstraintReader& reader) {
  const Json* object = fields.object("structured_outputs");
  if (!object) return;
  const JsonFields members(*object, "structured_outputs.");
  if (const Json* schema = members.find("json")) reader.add_schema_or_text(members.name_of("json"), *schema);
  if (const auto pattern = members.text("regex")) reader.add(members.name_of("regex"), Kind::kRegex, *pattern);
  if (const Json* choices = members.array("choice", kMaxChoices))
    reader.add_choices(members.name_of("choice"), *choices);
  if (const auto text = members.text("grammar")) reader.add(members.name_of("grammar"), Kind::kGrammar, *text);
  if (members.boolean("json_object", false)) reader.add_schema(members.name_of("json_object"), object_schema());
  for (const char* name : {"structural_tag", "whitespace_pattern"}) {
    if (members.find(name)) {
      throw invalid_parameter(members.name_of(name), "This server does not support this constraint. Leave it out.",
                              "unsupported_parameter");
    }
  }
  if (members.boolean("disable_any_whitespace", false)) reader.set_compact();
}

void read_trigger(const JsonFields& members, const RequestContext& context, ContentConstraint& constraint) {
  constexpr const char* kTypes[] = {"token", "word", "pattern", "pattern_full"};
  const Json* type = members.find("type");
  int64_t number = 0;
  while (number < 4 && !(type && (*type == number || *type == kTypes[number]))) ++number;
  if (number == 4) members.refuse("type", "\"token\" (0), \"word\" (1), \"pattern\" (2) or \"pattern_full\" (3)");
  if (number == 0) {
    const auto token = members.integer("token", 0, context.n_vocab - 1);
    if (!token) members.refuse("token", "a token id");
    constraint.trigger_tokens.push_back(static_cast<TokenId>(*token));
    return;
  }
  const std::string value = members.text("value").value_or("");
  if (value.empty()) members.refuse("value", number == 1 ? "a word" : "a regular expression");
  if (number == 1) {
    constraint.triggers.push_back(value);
    return;
  }
  try {
    const grammar::PatternTrigger trigger = grammar::read_pattern_trigger(value, number == 3, "[grammar] trigger");
    grammar::Rules unused;  // finds errors while their place is known
    grammar::trigger_texts(unused, {&trigger, 1}, {}, "[grammar] trigger");
    constraint.trigger_patterns.push_back(trigger);
  } catch (const Error& error) {
    throw invalid_parameter(members.name_of("value"), error.what());
  }
}

// llama-server's grammar_lazy: the words, tokens or patterns that start the grammar.
void read_triggers(const JsonFields& fields, const RequestContext& context, ConstraintReader& reader) {
  const Json* triggers = fields.array("grammar_triggers", kMaxTriggers);
  if (!fields.boolean("grammar_lazy", false)) return;
  if (!reader.has_grammar()) throw invalid_parameter("grammar_lazy", "use it only together with grammar");
  if (!triggers || triggers->empty()) fields.refuse("grammar_triggers", "at least one trigger for grammar_lazy");
  ContentConstraint& constraint = reader.set_lazy();
  for (size_t i = 0; i < triggers->size(); ++i) {
    const std::string path = concat("grammar_triggers[", i, "]");
    const Json& trigger = (*triggers)[i];
    if (!trigger.is_object()) throw unexpected_value(path, "an object", describe_json(trigger));
    const JsonFields members(trigger, path + ".");
    read_trigger(members, context, constraint);
  }
}

const std::string* name_of_tool(const Json& tool) {
  const auto function = tool.find("function");
  const Json& of = function != tool.end() && function->is_object() ? *function : tool;
  const auto name = of.find("name");
  return name == of.end() ? nullptr : name->get_ptr<const Json::string_t*>();
}

Json read_tool_list(const JsonFields& fields) {
  const Json* tools = fields.array("tools", kMaxTools);
  if (!tools) return nullptr;
  for (size_t i = 0; i < tools->size(); ++i) {
    const Json& tool = (*tools)[i];
    if (!tool.is_object()) fields.refuse("tools", "an array of objects");
    const std::string path = concat("tools[", i, "].");
    const JsonFields members(tool, path);
    const std::string type = members.text("type").value_or("function");
    if (type != "function") members.refuse("type", "\"function\"; this server calls no tools of its own");
    const std::string* name = name_of_tool(tool);
    if (!name || name->empty()) members.refuse("function", "an object with the name of the tool");
  }
  return *tools;
}

// The tools with these names, in the order of the tools.
Json only(const Json& tools, const std::vector<std::string>& names) {
  Json chosen = Json::array();
  for (const std::string& name : names) {
    const auto is_it = [&](const Json& tool) { return *name_of_tool(tool) == name; };
    if (std::none_of(tools.begin(), tools.end(), is_it))
      throw unexpected_value("tool_choice", "the name of one of the tools", describe_json(Json(name)));
  }
  for (const Json& tool : tools) {
    if (std::find(names.begin(), names.end(), *name_of_tool(tool)) != names.end()) chosen.push_back(tool);
  }
  return chosen;
}

// {"type": "function", "function": {"name"}}, or the function itself.
std::string chosen_name(const JsonFields& choice) {
  const Json* function = choice.object("function");
  const JsonFields of(function ? *function : choice.object(),
                      function ? choice.name_of("function.") : choice.name_of(""));
  const auto name = of.text("name");
  if (!name) of.refuse("name", "the name of a tool");
  return *name;
}

constexpr const char* kModes = "\"auto\", \"none\", \"required\", or an object that names a tool";

void read_choice_object(const JsonFields& fields, const Json& value, ToolRequest& request) {
  const JsonFields choice(value, "tool_choice.");
  const std::string type = choice.text("type").value_or("function");
  std::vector<std::string> names;
  request.calls.mode = Mode::kRequired;
  if (type == "function") {
    names.push_back(chosen_name(choice));
    request.calls.several = false;
  } else if (type == "allowed_tools") {
    const Json* inner = choice.object("allowed_tools");
    const JsonFields allowed(inner ? *inner : value, inner ? "tool_choice.allowed_tools." : "tool_choice.");
    const std::string mode = allowed.text("mode").value_or("auto");
    if (mode != "auto" && mode != "required") allowed.refuse("mode", "\"auto\" or \"required\"");
    if (mode == "auto") request.calls.mode = Mode::kAllowed;
    const Json* tools = allowed.array("tools", kMaxTools);
    if (!tools || tools->empty()) allowed.refuse("tools", "an array of at least one tool");
    for (size_t i = 0; i < tools->size(); ++i) {
      const std::string path = concat(allowed.name_of("tools"), "[", i, "]");
      if (!(*tools)[i].is_object()) throw unexpected_value(path, "an object", describe_json((*tools)[i]));
      names.push_back(chosen_name(JsonFields((*tools)[i], path + ".")));
    }
  } else {
    fields.refuse("tool_choice", kModes);
  }
  request.calls.tools = only(request.tools, names);
}

}  // namespace

ContentConstraint read_content_constraint(const JsonFields& fields, const RequestContext& context) {
  ConstraintReader reader(context.schema_lenient);
  read_response_format(fields, reader);
  read_structured_outputs(fields, reader);
  const auto add_text = [&](const char* name, Kind kind) {
    if (const auto text = fields.text(name); text && !text->empty()) reader.add(name, kind, *text);
  };
  add_text("grammar", Kind::kGrammar);
  add_text("guided_grammar", Kind::kGrammar);
  add_text("guided_regex", Kind::kRegex);
  if (const Json* schema = fields.find("json_schema")) reader.add_schema("json_schema", *schema);
  if (const Json* schema = fields.find("guided_json")) reader.add_schema_or_text("guided_json", *schema);
  if (const Json* choices = fields.array("guided_choice", kMaxChoices); choices && !choices->empty())
    reader.add_choices("guided_choice", *choices);
  read_triggers(fields, context, reader);
  return reader.take();
}

ToolRequest read_tools(const JsonFields& fields, const RequestContext&) {
  ToolRequest request;
  const Json tools = read_tool_list(fields);
  const bool parallel = fields.boolean("parallel_tool_calls", true);
  const Json* choice = fields.find("tool_choice");
  const bool named = choice && choice->is_object();
  if (choice && !named && *choice != "auto" && *choice != "none" && *choice != "required")
    fields.refuse("tool_choice", kModes);
  if (tools.is_null() || tools.empty()) {
    if (named || (choice && *choice == "required"))
      throw invalid_parameter("tool_choice", "use it only together with tools");
    return request;
  }
  if (choice && *choice == "none") return request;
  request.tools = tools;
  request.calls.mode = choice && *choice == "required" ? Mode::kRequired : Mode::kAllowed;
  request.calls.several = parallel;
  request.calls.tools = tools;
  if (named) read_choice_object(fields, *choice, request);
  return request;
}

}  // namespace infer
