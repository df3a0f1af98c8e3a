#include "src/text/tool_calls/call_families.h"

#include "src/text/tool_calls/call_pattern.h"

namespace infer {
namespace {

using Kind = ToolCallFormat::Kind;

struct Family {
  Kind kind;
  std::string_view begin;  // what a call begins with, after white space
  std::string_view other;  // text that it also contains; "": none
  std::string_view name;
};

constexpr Family kFamilies[] = {
    {Kind::kObject, "<tool_call>", "", "Hermes / Qwen JSON"},
    {Kind::kObject, "<|START_ACTION|>", "", "Command R7B"},
    {Kind::kObject, "<|message_sep|>", "function call", "GigaChat"},
    {Kind::kObject, "[TOOL_CALLS]", "", "Mistral"},
    {Kind::kObject, "<TOOLCALL>", "", "Nemotron JSON"},
    {Kind::kObject, "functools[", "", "FireFunction"},
    {Kind::kObject, "<tool_calls>", "", "Apriel"},
    {Kind::kObject, "<|tool_call|>", "", "Phi-4 mini / Granite 3"},
    {Kind::kObject, "{", "\"parameters\"", "Llama 3.x JSON"},
    {Kind::kJson, "[TOOL_CALLS]", "[ARGS]", "Mistral"},
    {Kind::kJson, "<|tool_calls_section_begin|>", "", "Kimi K2"},
    {Kind::kJson, "<｜tool▁calls▁begin｜>", "", "DeepSeek V3/R1"},
    {Kind::kJson, "<function=", "", "Functionary v3.1 / Llama 3.1 XML"},
    {Kind::kJson, "<|tools_prefix|>", "", "Apertus"},
    {Kind::kTagged, "<seed:tool_call>", "", "Seed-OSS"},
    {Kind::kTagged, "<tool_call>", "<arg_key>", "GLM 4.5"},
    {Kind::kTagged, "<tool_call>", "<function=", "Qwen3-Coder XML"},
    {Kind::kTagged, "<minimax:tool_call>", "", "MiniMax M2 XML"},
    {Kind::kTagged, "<function name=", "<param name=", "MiniCPM XML"},
    {Kind::kTagged, "<｜DSML｜", "", "DeepSeek V3.2/V4 (DSML)"},
    {Kind::kBare, "<|tool_call>call:", "", "Gemma 4"},
    {Kind::kPython, "<|tool_call_start|>", "", "LFM2 Python"},
    {Kind::kHarmony, "", "", "gpt-oss harmony"},
};

}  // namespace

std::string call_family(Kind kind, std::string_view call) {
  call = trimmed_start(call);
  for (const Family& family : kFamilies) {
    const bool other = call.find(family.other) != std::string_view::npos;
    if (kind == family.kind && call.starts_with(family.begin) && other) return std::string(family.name);
  }
  return "";
}

}  // namespace infer
