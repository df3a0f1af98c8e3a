// How a chat template writes tool calls: what stands before, between and after the names and arguments. Immutable; any
// number of threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/chat_template.h"
#include "src/text/tool_calls/call_object.h"
#include "src/text/tool_calls/call_pattern.h"

namespace infer {

// An argument as untyped text between tags.
struct ArgumentTags {
  std::string begin_word;           // what stands before the key: <parameter=
  CallPattern string_value, value;  // between key and value, for strings and for others; often the same
  bool typed = false;               // they differ
  std::string end;                  // </parameter>
  bool line_break = false;          // the value stands on lines of its own
  bool cdata = false;               // it may stand in <![CDATA[ ]]>
};

// The template's own texts, with their white space, for writing calls. kNamePlace and kIdPlace stand for a name and an
// id.
struct CallSpelling {
  std::string series_begin, call_begin, after_name;  // before the first call, each call's arguments
  std::string call_end, separator, series_end;       // after its arguments, before another call, after the last one
  bool several = false;                              // the template writes several calls in an answer
  // Of kTagged.
  std::string argument_begin, string_value, value, argument_end;
};

struct ToolCallFormat {
  enum class Kind {
    kNone,     // the template writes no calls
    kObject,   // {"name": "f", "arguments": {...}} between markers
    kJson,     // a name between markers, then the arguments as a JSON object
    kTagged,   // a name between markers, then each argument between tags
    kBare,     // a name between markers, then an object with keys without quotes
    kPython,   // a call in Python: f(city='Rome')
    kHarmony,  // messages to a recipient, see harmony_parser.h
  };
  Kind kind = Kind::kNone;
  std::string family;             // "" for a format that has no name
  CallPattern first;              // what begins the first call of an answer
  CallPattern next;               // what begins another one; empty without tag: only `first` does
  bool known_names_only = false;  // the format has no markers, so that an unknown name makes it no call
  std::string primed;             // the first call's text with which a prompt may end

  CallSpelling spelling;
  CallKeys keys;                     // of kObject
  ArgumentTags tags;                 // of kTagged
  std::string quote;                 // of kBare: what stands around strings
  std::vector<std::string> ends;     // what may follow the arguments, in this order; the first ends a tagged call
  std::vector<std::string> stops;    // what ends arguments that are broken JSON
  std::vector<std::string> ignored;  // markers around content, which belong to no part of the message
  std::string reasoning_open, reasoning_close;  // tags of the template's own; "": none, or a supported pair
  bool short_ids = false;                       // the template takes only ids of nine letters and digits

  bool writes_calls() const { return kind != Kind::kNone; }
};

// All texts that an answer in this format may have beside names, arguments and content.
std::vector<std::string> texts_of(const ToolCallFormat& format);

// Finds the format by rendering small conversations; kNone if the template shows no calls or in no form that is known.
// Never throws.
ToolCallFormat find_tool_call_format(const ChatTemplate& chat_template);

}  // namespace infer
