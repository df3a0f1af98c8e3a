#include "tools/chat/slash_commands.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/arguments.h"
#include "tools/chat/message_reader.h"
#include "tools/constraint_flags.h"
#include "tools/input.h"
#include "tools/terminal.h"

namespace infer {
namespace {

void say(const std::string& line) { write_note(line, Style::kPlain); }

[[noreturn]] void wrong_command(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

std::string without_blanks(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::string path_of(const std::string& command, const std::string& argument) {
  if (argument.empty()) wrong_command(concat(command, " needs the name of a file: ", command, " FILE."));
  const char* home = std::getenv("HOME");
  return argument.starts_with("~/") && home ? home + argument.substr(1) : argument;
}

std::string plural(size_t n, const std::string& word) { return concat(n, " ", word, n == 1 ? "" : "s"); }

void help(Shell&, const std::string&) {
  for (const SlashCommand& command : slash_commands()) {
    char line[160];
    const std::string usage = concat(command.name, command.arguments.empty() ? "" : " ", command.arguments);
    std::snprintf(line, sizeof(line), "  %-20s %s", usage.c_str(), std::string(command.summary).c_str());
    say(line);
  }
  say("For a message of several lines, put \"\"\" before and after it, or end each line but the last with a "
      "backslash.");
  say("Ctrl-C stops an answer; at an empty prompt, press it twice to leave. To start a message with a slash, type "
      "two.");
}

void leave(Shell& shell, const std::string&) { shell.next = Shell::Next::kLeave; }

void reset(Shell& shell, const std::string&) {
  shell.session.reset();
  shell.attached.clear();
  shell.attempt = 0;
  say("The chat was reset.");
}

void clear(Shell& shell, const std::string& argument) {
  reset(shell, argument);
  clear_screen();
}

void regenerate(Shell& shell, const std::string&) {
  if (!shell.session.log().take_back_answer()) wrong_command("/regen: there is no message to answer yet.");
  ++shell.attempt;
  shell.next = Shell::Next::kAnswer;
}

void undo(Shell& shell, const std::string&) {
  if (shell.session.log().messages.empty()) wrong_command("/undo: there is no message yet.");
  const std::string message = shell.session.log().undo();
  say("Removed: " + printable(message, 60));
}

// Edits the text in the user's own editor; REQUIRES: $VISUAL or $EDITOR is set.
std::string edit_with_program(const std::string& text) {
  std::string path = (std::filesystem::temp_directory_path() / "infer-message-XXXXXX").string();
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) throw Error(ErrorCode::kIo, "/edit: cannot create a temporary file. Check TMPDIR.");
  close(descriptor);
  std::ofstream(path) << text;
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "${VISUAL:-$EDITOR} \"$0\"", path.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::string edited;
  if (status == 0) edited = read_text_file(path);
  std::remove(path.c_str());
  if (status != 0) throw Error(ErrorCode::kIo, "/edit: the editor failed; nothing was changed.");
  while (edited.ends_with('\n')) edited.pop_back();
  return edited;
}

void edit(Shell& shell, const std::string&) {
  ChatLog changed = shell.session.log();
  const std::string message = changed.undo();
  if (message.empty()) wrong_command("/edit: there is no message to change yet.");
  const auto is_set = [](const char* name) { return std::getenv(name) && *std::getenv(name); };
  if (is_set("VISUAL") || is_set("EDITOR")) {
    const std::string edited = edit_with_program(message);
    if (edited.empty()) wrong_command("/edit: the message is empty; nothing was changed.");
    changed.add("user", edited);
    shell.next = Shell::Next::kAnswer;
  } else {
    // A leading slash is typed as two.
    shell.prefill = typed_form(message.starts_with('/') ? "/" + message : message);
  }
  shell.session.log() = changed;
  shell.attempt = 0;
}

// Throws unless a chat may be written to `path`: it does not exist, is this chat, or is a chat to replace.
void check_replaceable(const std::string& path, bool replaces) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) return;
  if (std::filesystem::is_directory(status)) {
    wrong_command(concat("/save: ", printable(path), " is a folder. Give the name of a file."));
  }
  if (!ChatLog::is_saved_chat(path)) {
    wrong_command(
        concat("/save: ", printable(path), " is not a saved chat and was not replaced. Choose another name."));
  }
  if (!replaces) {
    wrong_command(concat("/save: ", printable(path), " contains another chat. To replace it, use /save --force FILE."));
  }
}

void save(Shell& shell, const std::string& argument) {
  constexpr std::string_view kForce = "--force ";
  const bool force = argument.starts_with(kForce);
  const std::string path = path_of("/save", force ? without_blanks(argument.substr(kForce.size())) : argument);
  check_replaceable(path, force || path == shell.file);
  shell.session.log().save(path);
  shell.file = path;
  say(concat(plural(shell.session.log().messages.size(), "message"), " saved to ", printable(path)));
}

void load(Shell& shell, const std::string& argument) {
  const std::string kept = kept_chat_file();
  if (argument.empty() && (kept.empty() || !std::filesystem::exists(kept))) {
    wrong_command("/load: no earlier chat was kept. Name a file: /load FILE.");
  }
  const std::string path = argument.empty() ? kept : path_of("/load", argument);
  shell.session.log() = ChatLog::load(path);
  shell.file = argument.empty() ? "" : path;
  shell.attempt = 0;
  say(concat(plural(shell.session.log().messages.size(), "message"), " loaded from ", printable(path)));
}

void system_prompt(Shell& shell, const std::string& argument) {
  std::string& system = shell.session.log().system;
  if (argument.empty()) {
    say(system.empty() ? "There is no system prompt." : system);
    return;
  }
  system = argument == "\"\"" ? "" : argument;
  say(system.empty() ? "The system prompt was removed." : "The system prompt is set and applies to the whole chat.");
}

void set(Shell& shell, const std::string& argument) {
  ChatSettings settings = shell.session.settings();
  AnswerFlags& flags = settings.answer;
  SamplingParams& sampling = settings.sampling;
  CLI::App app;
  app.set_help_flag();
  add_answer_flags(app, flags);
  add_sampling_flags(app, sampling);
  if (argument.empty()) {
    for (const CLI::Option* option : app.get_options()) {
      const std::string value = option->get_default_str();
      if (!value.empty()) say(concat("  ", option->get_lnames().front(), " ", value));
    }
    say(concat("  seed ", sampling.seed ? std::to_string(*sampling.seed) : "-1"));
    say(concat("  n-predict ", flags.n_predict));
    say(concat("  reasoning ", flags.reasoning.wanted));
    say(concat("  reasoning-budget ", flags.reasoning.budget));
    say(concat("  reasoning-display ", flags.reasoning_display));
    say(concat("  context-overflow ", flags.context_overflow));
    say(concat("  keep ", flags.keep));
    say(concat("  show-stats ", flags.show_stats ? "on" : "off"));
    return;
  }
  const size_t space = argument.find_first_of(" \t=");
  const std::string name = argument.substr(0, space);
  if (space == std::string::npos)
    wrong_command(concat("/set: ", printable(name), " needs a value: /set ", printable(name), " VALUE."));
  const std::string value = without_blanks(argument.substr(space + 1));
  const std::string flag = "--" + name;
  if (!app.get_option_no_throw(flag))
    wrong_command(concat("/set: there is no parameter ", printable(name), ". Type /set to list them."));
  try {
    parse_arguments(app, {flag + "=" + value});
  } catch (const CLI::ParseError& error) {
    wrong_command(std::string("/set: ") + error.what());
  }
  sampling.validate();
  shell.session.settings() = settings;
  say(concat(name, " is ", value, "."));
}

void show(Shell& shell, const std::string& argument) {
  const auto wants = [&](std::string_view what) { return argument.empty() || argument == what; };
  const bool known = argument == "model" || argument == "template" || argument == "sampling" || argument == "context";
  if (!argument.empty() && !known)
    wrong_command(concat("/show: cannot show ", printable(argument), ". Choose model, template, sampling or context."));
  ChatSession& session = shell.session;
  const Model& model = session.engine().model();
  if (wants("model")) {
    char size[64];
    const double millions = static_cast<double>(model.parameter_count()) / 1e6;
    std::snprintf(size, sizeof(size), "%.2f %s parameters", millions < 1000 ? millions : millions / 1000,
                  millions < 1000 ? "million" : "billion");
    say(concat("model: ", printable(model.name().empty() ? "(no name)" : model.name()), ", ", model.architecture(),
               ", ", size, ", ", megabytes(model.weight_bytes())));
  }
  if (wants("template")) {
    say("template: " + (shell.chat_template.empty() ? "the model's own" : shell.chat_template));
    if (argument == "template") say(session.chat_template().source());
  }
  if (wants("sampling")) {
    const SamplingParams& s = session.settings().sampling;
    say(concat("sampling: temp ", s.temperature, ", top-k ", s.top_k, ", top-p ", s.top_p, ", min-p ", s.min_p,
               ", seed ", s.seed ? std::to_string(*s.seed) : "random", " (/set lists all)"));
  }
  if (wants("context")) {
    const int64_t context = session.engine().context();
    std::string used = "no messages yet";
    if (!session.log().messages.empty())
      used = concat(session.tokens().size(), " tokens, including the next answer's header");
    say(concat("context: ", used, ", of ", context, "; when full: ", session.settings().answer.context_overflow));
  }
}

void stats(Shell& shell, const std::string&) {
  ChatSession& session = shell.session;
  const std::vector<Turn>& turns = session.turns();
  Turn all;
  for (const Turn& turn : turns) {
    all.prompt_tokens += turn.prompt_tokens;
    all.cached_tokens += turn.cached_tokens;
    all.computed_tokens += turn.computed_tokens;
    all.generated_tokens += turn.generated_tokens;
    all.decode_tokens += turn.decode_tokens;
    all.prompt_seconds += turn.prompt_seconds;
    all.decode_seconds += turn.decode_seconds;
  }
  if (!turns.empty()) say("last answer: " + full_summary(turns.back()));
  say(concat(plural(turns.size(), "answer"), ": ", full_summary(all)));
  for (const DeviceUse& use : session.engine().runner().memory_use()) {
    say(concat(use.device, ": ", plural(static_cast<size_t>(use.n_layers), "layer"), ", weights ",
               megabytes(use.weights), ", cache ", megabytes(use.cache), ", activations ", megabytes(use.activations)));
  }
  const KvCache& cache = session.engine().scheduler().cache();
  for (size_t g = 0; g < cache.groups().size(); ++g) {
    const BlockPool::Stats pool = cache.pool(g).stats();
    uint64_t block = 0;  // bytes
    for (const int32_t layer : cache.groups()[g].layers) {
      for (const LayerCache& part : session.engine().runner().placed().caches(layer)) {
        if (part.desc.group == static_cast<int>(g)) block += part.block_bytes;
      }
    }
    const std::string kind = cache.groups().size() == 1 ? "" : concat(" ", cache_kind_name(cache.groups()[g].kind));
    say(concat("KV", kind, ": ", pool.used, " of ", plural(static_cast<size_t>(pool.total), "block"), " in use, ",
               pool.cached, " cached (", megabytes(block * static_cast<uint64_t>(pool.used + pool.cached)), " of ",
               megabytes(block * static_cast<uint64_t>(pool.total)), ")"));
  }
}

void read_file(Shell& shell, const std::string& argument) {
  const std::string path = path_of("/read", argument);
  const std::string text = read_text_file(path);
  if (text.find('\0') != std::string::npos)
    wrong_command(concat("/read: ", printable(path), " is binary. Give a text file."));
  const std::string attached = concat(shell.attached, std::filesystem::path(path).filename().string(), ":\n\n", text,
                                      text.ends_with('\n') ? "\n" : "\n\n");
  try {
    shell.session.check_room_for(attached);
  } catch (const ConversationTooLong& error) {
    wrong_command(concat("/read: ", printable(path), " is too long. ", error.what(), " It was not added."));
  }
  shell.attached = attached;
  say(concat(text.size(), " bytes of ", printable(path), " will precede your next message."));
}

void hold_to_schema(Shell& shell, const std::string& argument) {
  ContentConstraint& content = shell.session.settings().content;
  if (argument.empty() || argument == "off") {
    content = {};
    say("answers are free");
    return;
  }
  content = schema_constraint(argument, "/json");
  say("answers are JSON that is valid for the schema; /json off ends that");
}

}  // namespace

const std::vector<SlashCommand>& slash_commands() {
  static const std::vector<SlashCommand> all = {
      {"/help", "", "Show this list", help},
      {"/exit", "", "Leave (Ctrl-D too)", leave},
      {"/clear", "", "Forget the chat, but keep the system prompt, and clear the screen", clear},
      {"/reset", "", "Forget the chat, but keep the system prompt", reset},
      {"/regen", "", "Answer the last message again", regenerate},
      {"/undo", "", "Remove the last message and its answer", undo},
      {"/edit", "", "Edit the last message ($VISUAL, $EDITOR or in the line) and ask again", edit},
      {"/save", "FILE", "Save the chat to a file (JSON); --force FILE replaces another chat", save},
      {"/load", "[FILE]", "Continue a chat from a file; without FILE: the one of the last run", load},
      {"/system", "TEXT", "Set the system prompt; without TEXT: show it, \"\": remove it", system_prompt},
      {"/set", "PARAM VALUE", "Change a parameter, named like its flag; without one: list them", set},
      {"/json", "SCHEMA", "Hold answers to a JSON schema ({}: any JSON); off: free answers again", hold_to_schema},
      {"/show", "[WHAT]", "Show the model, template, sampling or context", show},
      {"/stats", "", "Show tokens, speed, memory, cache hits, placement", stats},
      {"/read", "FILE", "Prepend a text file to the next message", read_file},
  };
  return all;
}

void run_slash_command(Shell& shell, const std::string& line) {
  const size_t end = line.find_first_of(" \t\n");
  std::string name = line.substr(0, end);
  const std::string argument = end == std::string::npos ? "" : without_blanks(line.substr(end + 1));
  if (name == "/quit" || name == "/bye") name = "/exit";
  if (name == "/?") name = "/help";
  const auto& all = slash_commands();
  const auto command = std::find_if(all.begin(), all.end(), [&](const SlashCommand& c) { return c.name == name; });
  if (command == all.end()) {
    wrong_command(concat("Unknown command ", printable(name, 60),
                         ". /help lists the commands. To start a message with a slash, type two."));
  }
  if (command->arguments.empty() && !argument.empty()) wrong_command(name + " takes no argument.");
  command->run(shell, argument);
}

}  // namespace infer
