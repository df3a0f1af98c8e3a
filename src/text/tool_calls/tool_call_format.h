// How a chat template writes tool calls: the texts before, between and after names and arguments. Immutable; any number
// of threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/text/chat_template.h"
#include "src/text/tool_calls/call_object.h"
#include "src/text/tool_calls/call_pattern.h"

namespace infer {

// Arguments as untyped text between tags.
struct ArgumentTags {
  std::string begin_word;           // the text before the key: <parameter=
  CallPattern string_value, value;  // between key and value, for strings and for other values; often the same
  bool typed = false;               // they differ
  std::string end;                  // </parameter>
  bool line_break = false;          // the value is on lines of its own
  bool cdata = false;               // the value may be enclosed in <![CDATA[ ]]>
};

// The template's own texts, including white space, for writing calls. kNamePlace and kIdPlace stand for a name and an
// id.
struct CallSpelling {
  std::string series_begin, call_begin, after_name;  // before the first call, before each call, before its arguments
  std::string call_end, separator, series_end;       // after its arguments, between two calls, after the last call
  bool several = false;                              // the template writes several calls in an answer
  // For kTagged.
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
    kHarmony,  // messages with a recipient, see harmony_parser.h
  };
  Kind kind = Kind::kNone;
  std::string family;             // "" for a format without a common name
  CallPattern first;              // the beginning of an answer's first call
  CallPattern next;               // the beginning of further calls; empty and without a tag: only `first` begins calls
  bool known_names_only = false;  // the format has no markers, so text with an unknown name is not a call
  std::string primed;             // beginning of the first call with which a prompt may end

  CallSpelling spelling;
  CallKeys keys;      // for kObject
  ArgumentTags tags;  // for kTagged
  std::string quote;  // for kBare: the marker around strings
  // Texts that may follow the arguments, in this order; the first one ends a tagged call.
  std::vector<std::string> ends;
  std::vector<std::string> stops;               // texts that end broken JSON arguments
  std::vector<std::string> ignored;             // markers around content that belong to no part of the message
  std::string reasoning_open, reasoning_close;  // the template's own tags; "": none, or a supported pair
  bool short_ids = false;                       // the template accepts only ids of nine letters and digits

  bool writes_calls() const { return kind != Kind::kNone; }
};

// All fixed texts that an answer in this format may contain.
std::vector<std::string> texts_of(const ToolCallFormat& format);

// Finds the format by rendering small conversations; kNone if the template shows no calls, or in no known form. Never
// throws.
ToolCallFormat find_tool_call_format(const ChatTemplate& chat_template);

}  // namespace infer
