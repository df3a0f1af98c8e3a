#include "tools/chat/chat.h"

#include <cstdio>
#include <filesystem>
#include <optional>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/chat/answer_printer.h"
#include "tools/chat/line_editor.h"
#include "tools/chat/message_reader.h"
#include "tools/chat/slash_commands.h"
#include "tools/interrupt.h"
#include "tools/status_line.h"
#include "tools/terminal.h"

namespace infer {
namespace {

constexpr const char* kPrompt = "> ";
constexpr const char* kMorePrompt = ". ";

class Chat {
 public:
  Chat(Engine& engine, ChatTemplate chat_template, const ChatOptions& options)
      : options_(options),
        session_(engine, std::move(chat_template), options.settings),
        shell_{session_, options.chat_template, {}, {}, Shell::Next::kPrompt, 0, {}} {
    session_.log().system = options.system;
  }

  // The only answer of a non-interactive chat.
  int answer_once() {
    session_.log().add("user", options_.prompt);
    return answer() == FinishReason::kCancelled ? kInterruptedCode : 0;
  }

  int run() {
    // Also between an answer and the prompt, where a press that comes late would otherwise end the program.
    const InterruptGuard guard(InterruptGuard::Second::kIgnored);
    introduce();
    LineEditor::Options editing{default_history_file(), {}};
    for (const SlashCommand& command : slash_commands()) editing.completions.emplace_back(command.name);
    LineEditor editor(editing);
    editor_ = &editor;
    if (!options_.prompt.empty()) {
      write_note(kPrompt + options_.prompt, Style::kPrompt);
      guarded([&] { send(options_.prompt); });
    }
    while (shell_.next != Shell::Next::kLeave) {
      std::optional<std::string> message = read_message(editor);
      if (!message) break;
      if (message->empty()) continue;
      guarded([&] { handle(*message); });
    }
    if (kept_ && !options_.quiet) write_note("The chat is kept; /load continues it in the next one.");
    return 0;
  }

 private:
  void introduce() const {
    if (options_.quiet) return;
    const Model& model = shell_.session.engine().model();
    write_note(concat(printable(model.name().empty() ? model.architecture() : model.name()), ", context of ",
                      grouped(static_cast<uint64_t>(shell_.session.engine().context())),
                      " tokens. /help lists the commands, Ctrl-D leaves."));
  }

  // Reads a whole message or command; nullopt to leave.
  std::optional<std::string> read_message(LineEditor& editor) {
    MessageReader reader;
    for (;;) {
      const LineEditor::Input input =
          editor.read(reader.unfinished() ? kMorePrompt : kPrompt, std::exchange(shell_.prefill, ""));
      if (input.event == LineEditor::Event::kEnd) {
        std::fputs("\n", stderr);
        return std::nullopt;
      }
      if (input.event == LineEditor::Event::kInterrupted) {
        const bool nothing = input.empty && !reader.unfinished();
        if (nothing && leaves_on_interrupt_) {
          std::fputs("\n", stderr);
          return std::nullopt;
        }
        std::fputs("^C\n", stderr);
        if (nothing) write_note("Ctrl-C again leaves, as /exit does.");
        leaves_on_interrupt_ = nothing;
        reader.reset();
        continue;
      }
      leaves_on_interrupt_ = false;
      // A paste or a history entry may contain several lines.
      if (std::optional<std::string> message =
              reader.unfinished() || input.text.find('\n') == std::string::npos ? reader.add(input.text) : input.text) {
        editor.remember(typed_form(*message));
        return message;
      }
    }
  }

  void handle(const std::string& message) {
    if (message[0] != '/' || message.starts_with("//")) {
      send(message[0] == '/' ? message.substr(1) : message);
      return;
    }
    shell_.next = Shell::Next::kPrompt;
    run_slash_command(shell_, message);
    if (shell_.next != Shell::Next::kAnswer) return;
    shell_.next = Shell::Next::kPrompt;
    answer();
  }

  void send(const std::string& message) {
    ChatLog& log = session_.log();
    log.add("user", shell_.attached + message);
    shell_.attempt = 0;
    try {
      if (answer() == FinishReason::kCancelled && log.messages.back().content.empty() &&
          log.messages.back().reasoning.empty()) {
        log.undo();
        write_note("(no answer; the message was removed)");
        return;
      }
    } catch (...) {
      log.undo();
      if (!shell_.attached.empty()) {
        shell_.attached.clear();
        write_note("The text of /read was dropped; the chat is as before.");
      }
      throw;
    }
    shell_.attached.clear();
  }

  // Answers, and continues with the results of the tools that the model calls.
  FinishReason answer() {
    for (;;) {
      const FinishReason finished = answer_message();
      const nlohmann::ordered_json more = session_.log().messages.back().more;
      if (options_.interactive) keep_chat();
      if (finished == FinishReason::kCancelled || !more.contains("tool_calls")) return finished;
      const nlohmann::ordered_json& calls = more["tool_calls"];
      if (!options_.interactive) {
        for (const auto& call : calls) print_call(call["function"]);
        return finished;
      }
      for (const auto& call : calls) {
        if (!ask_for_result(call)) return finished;
      }
    }
  }

  // Writes the chat where the next run's /load finds it. Failing to must not prevent chatting.
  void keep_chat() {
    const std::string file = kept_chat_file();
    if (file.empty()) return;
    try {
      std::filesystem::create_directories(std::filesystem::path(file).parent_path());
      session_.log().save(file, true);
      kept_ = true;
    } catch (const std::exception&) {
      kept_ = false;
    }
  }

  // A line of JSON, for the program that reads the answer.
  static void print_call(const nlohmann::ordered_json& function) {
    write_text(function.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }

  // Shows a call, and adds what the user types as its result; false to abandon it.
  bool ask_for_result(const nlohmann::ordered_json& call) {
    const std::string name = call["function"]["name"], arguments = call["function"]["arguments"];
    write_note(concat("The model calls ", printable(name), "(", printable(arguments, 2000), "). Type the result:"));
    const LineEditor::Input input = editor_->read(concat(printable(name), "> "), "");
    if (input.event != LineEditor::Event::kLine) {
      std::fputs("\n", stderr);
      write_note("(no result; the chat goes on with your next message)");
      return false;
    }
    ChatMessage result{.role = "tool", .content = input.text, .reasoning = {}};
    result.more = {{"tool_call_id", call["id"]}, {"name", name}};
    session_.log().messages.push_back(std::move(result));
    return true;
  }

  FinishReason answer_message() {
    const AnswerFlags& flags = session_.settings().answer;
    const bool show = flags.reasoning_display == "show" || (flags.reasoning_display == "auto" && stdout_is_terminal());
    AnswerPrinter printer(show);
    PromptLine progress(!options_.quiet);
    Turn turn;
    {
      // Pressing Ctrl-C repeatedly must not end a conversation.
      const InterruptGuard guard(options_.interactive ? InterruptGuard::Second::kIgnored
                                                      : InterruptGuard::Second::kEnds);
      try {
        turn = session_.answer({[&](bool reasoning, std::string_view text) { printer.add(reasoning, text); },
                                [&](const std::string& line) {
                                  progress.clear();
                                  write_note(line);
                                },
                                [&] { return guard.interrupted(); }, [&](const Progress& p) { progress.update(p); }},
                               shell_.attempt);
        progress.clear();
      } catch (const ConversationTooLong& error) {
        throw Error(error.code(), concat(error.what(), " ", advice_on_length()));
      }
    }
    printer.end();
    const ChatMessage& message = session_.log().messages.back();
    if (options_.interactive && message.content.empty() && !message.more.contains("tool_calls")) {
      write_note("(no answer)");
    }
    if (turn.finished == FinishReason::kCancelled && options_.interactive) write_note("(stopped)");
    if (turn.finished == FinishReason::kContextFull) {
      const bool can_shift = options_.interactive && !flags.shifts_turns();
      write_note(concat("The context of ", grouped(static_cast<uint64_t>(session_.engine().context())),
                        " tokens is full; the answer ends here. Start with a larger -c",
                        can_shift ? ", or continue with /set context-overflow shift-turns." : "."));
    }
    if (flags.show_stats) {
      write_note(full_summary(turn));
    } else if (options_.interactive && !options_.quiet) {
      write_note(short_summary(turn));
    }
    return turn.finished;
  }

  // Advice for a conversation that is too long.
  std::string advice_on_length() const {
    if (!options_.interactive) return "Shorten the prompt, or raise the limit with -c.";
    const bool has_history = session_.log().messages.size() > 1;
    if (!has_history || session_.settings().answer.shifts_turns()) {
      return "Shorten the message, or start again with a larger -c.";
    }
    return "Use /undo, /reset or /set context-overflow shift-turns, or start again with a larger -c.";
  }

  template <typename Body>
  void guarded(const Body& body) {
    try {
      body();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kIo && std::ferror(stdout)) throw;
      write_note(printable_message(error.what(), 2000), Style::kBold);
    } catch (const std::bad_alloc&) {
      write_note("Not enough memory. The message was not answered.", Style::kBold);
    }
  }

  const ChatOptions& options_;
  ChatSession session_;
  Shell shell_;
  LineEditor* editor_ = nullptr;      // of run()
  bool leaves_on_interrupt_ = false;  // the next Ctrl-C on an empty line leaves
  bool kept_ = false;                 // the chat is in kept_chat_file()
};

}  // namespace

int run_chat(Engine& engine, ChatTemplate chat_template, const ChatOptions& options) {
  Chat chat(engine, std::move(chat_template), options);
  return options.interactive ? chat.run() : chat.answer_once();
}

}  // namespace infer
