#include "src/text/builtin_templates.h"

namespace infer {
namespace {

constexpr std::string_view kHead = R"jinja({%- macro text(content) -%}
  {%- if content is string -%}
    {{- content -}}
  {%- elif content -%}
    {%- for part in content if part.type == 'text' -%}{{- part.text -}}{%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
)jinja";

// Every message is <begin>role<middle>text<end>, and the prompt ends with the head of an assistant's message.
constexpr BuiltinTemplate kTemplates[] = {
    {"chatml", R"jinja({%- for message in messages -%}
  {{- '<|im_start|>' ~ message.role ~ '\n' ~ text(message.content) ~ '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%})jinja"},

    {"llama2", R"jinja({{- bos_token -}}
{%- set ns = namespace(open=false) -%}
{%- for message in messages -%}
  {%- if message.role == 'assistant' -%}
    {{- ' ' ~ text(message.content) ~ ' ' ~ eos_token -}}
    {%- set ns.open = false -%}
  {%- else -%}
    {%- if not ns.open -%}{{- '[INST] ' -}}{%- endif -%}
    {%- set ns.open = true -%}
    {{- text(message.content) ~ ('\n' if message.role == 'system' else ' [/INST]') -}}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"llama2-sys", R"jinja({{- bos_token -}}
{%- set ns = namespace(open=false) -%}
{%- for message in messages -%}
  {%- if message.role == 'assistant' -%}
    {{- ' ' ~ text(message.content) ~ ' ' ~ eos_token -}}
    {%- set ns.open = false -%}
  {%- else -%}
    {%- if not ns.open -%}{{- '[INST] ' -}}{%- endif -%}
    {%- set ns.open = true -%}
    {%- if message.role == 'system' -%}
      {{- '<<SYS>>\n' ~ text(message.content) ~ '\n<</SYS>>\n\n' -}}
    {%- else -%}
      {{- text(message.content) ~ ' [/INST]' -}}
    {%- endif -%}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"llama2-sys-bos", R"jinja({%- set ns = namespace(open=false) -%}
{%- for message in messages -%}
  {%- if message.role == 'assistant' -%}
    {{- ' ' ~ text(message.content) ~ ' ' ~ eos_token -}}
    {%- set ns.open = false -%}
  {%- else -%}
    {%- if not ns.open -%}{{- bos_token ~ '[INST] ' -}}{%- endif -%}
    {%- set ns.open = true -%}
    {%- if message.role == 'system' -%}
      {{- '<<SYS>>\n' ~ text(message.content) ~ '\n<</SYS>>\n\n' -}}
    {%- else -%}
      {{- text(message.content) ~ ' [/INST]' -}}
    {%- endif -%}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"llama2-sys-strip", R"jinja({%- set ns = namespace(open=false) -%}
{%- for message in messages -%}
  {%- if message.role == 'assistant' -%}
    {{- ' ' ~ text(message.content) | trim ~ ' ' ~ eos_token -}}
    {%- set ns.open = false -%}
  {%- else -%}
    {%- if not ns.open -%}{{- bos_token ~ '[INST] ' -}}{%- endif -%}
    {%- set ns.open = true -%}
    {%- if message.role == 'system' -%}
      {{- '<<SYS>>\n' ~ text(message.content) | trim ~ '\n<</SYS>>\n\n' -}}
    {%- else -%}
      {{- text(message.content) | trim ~ ' [/INST]' -}}
    {%- endif -%}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"llama3", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {{- '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\n\n' ~ text(message.content) | trim ~ '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}{%- endif -%})jinja"},

    {"llama4", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {{- '<|header_start|>' ~ message.role ~ '<|header_end|>\n\n' ~ text(message.content) | trim ~ '<|eot|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|header_start|>assistant<|header_end|>\n\n' -}}{%- endif -%})jinja"},

    // Mistral's system prompt is prepended to the next user message; from v7 on it has its own markers.
    {"mistral-v1", R"jinja({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- set ns.system = text(message.content) ~ '\n\n' -%}
  {%- elif message.role == 'assistant' -%}
    {{- ' ' ~ text(message.content) ~ eos_token -}}
  {%- else -%}
    {{- ' [INST] ' ~ ns.system ~ text(message.content) ~ ' [/INST]' -}}
    {%- set ns.system = '' -%}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"mistral-v3", R"jinja({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- set ns.system = text(message.content) ~ '\n\n' -%}
  {%- elif message.role == 'assistant' -%}
    {{- ' ' ~ text(message.content) ~ eos_token -}}
  {%- else -%}
    {{- '[INST] ' ~ ns.system ~ text(message.content) ~ '[/INST]' -}}
    {%- set ns.system = '' -%}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"mistral-v3-tekken", R"jinja({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- set ns.system = text(message.content) ~ '\n\n' -%}
  {%- elif message.role == 'assistant' -%}
    {{- text(message.content) ~ eos_token -}}
  {%- else -%}
    {{- '[INST]' ~ ns.system ~ text(message.content) ~ '[/INST]' -}}
    {%- set ns.system = '' -%}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"mistral-v7", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- '[SYSTEM_PROMPT] ' ~ text(message.content) ~ '[/SYSTEM_PROMPT]' -}}
  {%- elif message.role == 'assistant' -%}
    {{- ' ' ~ text(message.content) ~ eos_token -}}
  {%- else -%}
    {{- '[INST] ' ~ text(message.content) ~ '[/INST]' -}}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"mistral-v7-tekken", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- '[SYSTEM_PROMPT]' ~ text(message.content) ~ '[/SYSTEM_PROMPT]' -}}
  {%- elif message.role == 'assistant' -%}
    {{- text(message.content) ~ eos_token -}}
  {%- else -%}
    {{- '[INST]' ~ text(message.content) ~ '[/INST]' -}}
  {%- endif -%}
{%- endfor -%})jinja"},

    // Gemma has no system role: the system text is prepended to the first user message.
    {"gemma", R"jinja({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- set ns.system = text(message.content) | trim ~ '\n\n' -%}
  {%- else -%}
    {%- set role = 'model' if message.role == 'assistant' else 'user' -%}
    {%- set system = ns.system if role == 'user' else '' -%}
    {{- '<start_of_turn>' ~ role ~ '\n' ~ system ~ text(message.content) | trim ~ '<end_of_turn>\n' -}}
    {%- if role == 'user' -%}{%- set ns.system = '' -%}{%- endif -%}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%})jinja"},

    {"phi3", R"jinja({%- for message in messages -%}
  {{- '<|' ~ message.role ~ '|>\n' ~ text(message.content) ~ '<|end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\n' -}}{%- endif -%})jinja"},

    {"phi4", R"jinja({%- for message in messages -%}
  {{- '<|im_start|>' ~ message.role ~ '<|im_sep|>' ~ text(message.content) ~ '<|im_end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant<|im_sep|>' -}}{%- endif -%})jinja"},

    {"falcon3", R"jinja({%- for message in messages -%}
  {{- '<|' ~ message.role ~ '|>\n' ~ text(message.content) -}}
  {{- (eos_token if message.role == 'assistant') ~ '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\n' -}}{%- endif -%})jinja"},

    {"zephyr", R"jinja({%- for message in messages -%}
  {{- '<|' ~ message.role ~ '|>\n' ~ text(message.content) ~ eos_token ~ '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\n' -}}{%- endif -%})jinja"},

    {"monarch", R"jinja({%- for message in messages -%}
  {{- bos_token ~ message.role ~ '\n' ~ text(message.content) ~ eos_token ~ '\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- bos_token ~ 'assistant\n' -}}{%- endif -%})jinja"},

    {"orion", R"jinja({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {%- set ns.system = text(message.content) ~ '\n\n' -%}
  {%- elif message.role == 'assistant' -%}
    {{- text(message.content) ~ eos_token -}}
  {%- else -%}
    {{- 'Human: ' ~ ns.system ~ text(message.content) ~ '\n\nAssistant: ' ~ eos_token -}}
    {%- set ns.system = '' -%}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"openchat", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role != 'system' -%}{{- 'GPT4 Correct ' ~ message.role | title ~ ': ' -}}{%- endif -%}
  {{- text(message.content) ~ '<|end_of_turn|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'GPT4 Correct Assistant:' -}}{%- endif -%})jinja"},

    {"vicuna", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- text(message.content) ~ '\n\n' -}}
  {%- elif message.role == 'assistant' -%}
    {{- 'ASSISTANT: ' ~ text(message.content) ~ eos_token ~ '\n' -}}
  {%- else -%}
    {{- 'USER: ' ~ text(message.content) ~ '\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%})jinja"},

    {"vicuna-orca", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'assistant' -%}
    {{- 'ASSISTANT: ' ~ text(message.content) ~ eos_token ~ '\n' -}}
  {%- else -%}
    {{- message.role | upper ~ ': ' ~ text(message.content) ~ '\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%})jinja"},

    {"alpaca", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- text(message.content) ~ '\n\n' -}}
  {%- elif message.role == 'assistant' -%}
    {{- '### Response:\n' ~ text(message.content) ~ eos_token ~ '\n\n' -}}
  {%- else -%}
    {{- '### Instruction:\n' ~ text(message.content) ~ '\n\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '### Response:\n' -}}{%- endif -%})jinja"},

    {"deepseek", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- text(message.content) -}}
  {%- elif message.role == 'assistant' -%}
    {{- '### Response:\n' ~ text(message.content) ~ '\n<|EOT|>\n' -}}
  {%- else -%}
    {{- '### Instruction:\n' ~ text(message.content) ~ '\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '### Response:\n' -}}{%- endif -%})jinja"},

    {"deepseek2", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- text(message.content) ~ '\n\n' -}}
  {%- elif message.role == 'assistant' -%}
    {{- 'Assistant: ' ~ text(message.content) ~ eos_token -}}
  {%- else -%}
    {{- 'User: ' ~ text(message.content) ~ '\n\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%})jinja"},

    {"deepseek3", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- text(message.content) -}}
  {%- elif message.role == 'assistant' -%}
    {{- '<｜Assistant｜>' ~ text(message.content) ~ '<｜end▁of▁sentence｜>' -}}
  {%- else -%}
    {{- '<｜User｜>' ~ text(message.content) -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<｜Assistant｜>' -}}{%- endif -%})jinja"},

    {"command-r", R"jinja({{- bos_token -}}
{%- set names = {'system': 'SYSTEM', 'user': 'USER', 'assistant': 'CHATBOT'} -%}
{%- for message in messages -%}
  {{- '<|START_OF_TURN_TOKEN|><|' ~ names.get(message.role, 'USER') ~ '_TOKEN|>' -}}
  {{- text(message.content) | trim ~ '<|END_OF_TURN_TOKEN|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' -}}{%- endif -%})jinja"},

    {"chatglm3", R"jinja({{- '[gMASK]sop' -}}
{%- for message in messages -%}
  {{- '<|' ~ message.role ~ '|>\n ' ~ text(message.content) -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%})jinja"},

    {"chatglm4", R"jinja({{- '[gMASK]<sop>' -}}
{%- for message in messages -%}
  {{- '<|' ~ message.role ~ '|>\n' ~ text(message.content) -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\n' -}}{%- endif -%})jinja"},

    {"glmedge", R"jinja({%- for message in messages -%}
  {{- '<|' ~ message.role ~ '|>\n' ~ text(message.content) -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%})jinja"},

    {"minicpm", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'user' -%}
    {{- '<用户>' ~ text(message.content) | trim ~ '<AI>' -}}
  {%- else -%}
    {{- text(message.content) | trim -}}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"exaone3", R"jinja({%- for message in messages -%}
  {{- '[|' ~ message.role ~ '|]' ~ text(message.content) | trim -}}
  {{- '\n' if message.role == 'user' else '[|endofturn|]\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '[|assistant|]' -}}{%- endif -%})jinja"},

    {"exaone4", R"jinja({%- for message in messages -%}
  {{- '[|' ~ message.role ~ '|]\n' ~ text(message.content) | trim ~ '[|endofturn|]\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '[|assistant|]\n' -}}{%- endif -%})jinja"},

    {"rwkv-world", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {{- message.role | capitalize ~ ': ' ~ text(message.content) | trim ~ '\n\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%})jinja"},

    {"granite", R"jinja({%- for message in messages -%}
  {{- '<|start_of_role|>' ~ message.role ~ '<|end_of_role|>' ~ text(message.content) ~ '<|end_of_text|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_of_role|>assistant<|end_of_role|>' -}}{%- endif -%})jinja"},

    {"gigachat", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- text(message.content) ~ '<|message_sep|>' -}}
  {%- elif message.role == 'assistant' -%}
    {{- 'assistant<|role_sep|>' ~ text(message.content) ~ '<|message_sep|>' -}}
  {%- else -%}
    {{- 'user<|role_sep|>' ~ text(message.content) ~ '<|message_sep|>' -}}
    {{- 'available functions<|role_sep|>[]<|message_sep|>' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'assistant<|role_sep|>' -}}{%- endif -%})jinja"},

    {"megrez", R"jinja({%- for message in messages -%}
  {{- '<|role_start|>' ~ message.role ~ '<|role_end|>' ~ text(message.content) ~ '<|turn_end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|role_start|>assistant<|role_end|>' -}}{%- endif -%})jinja"},

    {"yandex", R"jinja({{- bos_token -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- text(message.content) ~ '\n\n' -}}
  {%- else -%}
    {{- ' Ассистент: ' if message.role == 'assistant' else ' Пользователь: ' -}}
    {{- text(message.content) ~ '\n\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- ' Ассистент:[SEP]' -}}{%- endif -%})jinja"},

    {"bailing", R"jinja({%- set names = {'system': 'SYSTEM', 'user': 'HUMAN', 'assistant': 'ASSISTANT'} -%}
{%- for message in messages -%}
  {{- '<role>' ~ names.get(message.role, 'HUMAN') ~ '</role>' ~ text(message.content) -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<role>ASSISTANT</role>' -}}{%- endif -%})jinja"},

    {"bailing-think", R"jinja({%- set names = {'system': 'SYSTEM', 'user': 'HUMAN', 'assistant': 'ASSISTANT'} -%}
{%- for message in messages -%}
  {{- '<role>' ~ names.get(message.role, 'HUMAN') ~ '</role>' ~ text(message.content) -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<role>ASSISTANT</role><think>' -}}{%- endif -%})jinja"},

    {"bailing2", R"jinja({%- set names = {'system': 'SYSTEM', 'user': 'HUMAN', 'assistant': 'ASSISTANT'} -%}
{%- for message in messages -%}
  {{- '<role>' ~ names.get(message.role, 'HUMAN') ~ '</role>' ~ text(message.content) ~ '<|role_end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<role>ASSISTANT</role>' -}}{%- endif -%})jinja"},

    {"smolvlm", R"jinja({{- '<|im_start|>' -}}
{%- for message in messages -%}
  {{- message.role | capitalize ~ ': ' ~ text(message.content) ~ '<end_of_utterance>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%})jinja"},

    {"dots1", R"jinja({%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- '<|system|>' ~ text(message.content) ~ '<|endofsystem|>' -}}
  {%- elif message.role == 'assistant' -%}
    {{- '<|response|>' ~ text(message.content) ~ '<|endofresponse|>' -}}
  {%- else -%}
    {{- '<|userprompt|>' ~ text(message.content) ~ '<|endofuserprompt|>' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|response|>' -}}{%- endif -%})jinja"},

    {"hunyuan-moe", R"jinja({%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- '<|startoftext|>' ~ text(message.content) ~ '<|extra_4|>' -}}
  {%- elif message.role == 'assistant' -%}
    {{- text(message.content) ~ '<|eos|>' -}}
  {%- else -%}
    {%- if loop.first or messages[loop.index0 - 1].role == 'assistant' -%}{{- '<|startoftext|>' -}}{%- endif -%}
    {{- text(message.content) ~ '<|extra_0|>' -}}
  {%- endif -%}
{%- endfor -%})jinja"},

    {"hunyuan-dense", R"jinja({{- '<｜hy_begin▁of▁sentence｜>' -}}
{%- for message in messages -%}
  {%- if message.role == 'system' -%}
    {{- text(message.content) ~ '<｜hy_place▁holder▁no▁3｜>' -}}
  {%- elif message.role == 'assistant' -%}
    {{- '<｜hy_Assistant｜>' ~ text(message.content) ~ '<｜hy_place▁holder▁no▁2｜>' -}}
  {%- else -%}
    {{- '<｜hy_User｜>' ~ text(message.content) -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<｜hy_Assistant｜>' -}}{%- endif -%})jinja"},

    {"gpt-oss", R"jinja({%- for message in messages -%}
  {%- if message.role == 'assistant' -%}
    {{- '<|start|>assistant<|channel|>final<|message|>' ~ text(message.content) -}}
    {{- '<|return|>' if loop.last and not add_generation_prompt else '<|end|>' -}}
  {%- else -%}
    {{- '<|start|>' ~ message.role ~ '<|message|>' ~ text(message.content) ~ '<|end|>' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start|>assistant' -}}{%- endif -%})jinja"},

    {"kimi-k2", R"jinja({%- set names = {'user': 'user', 'assistant': 'assistant'} -%}
{%- for message in messages -%}
  {{- '<|im_' ~ names.get(message.role, 'system') ~ '|>' ~ message.role ~ '<|im_middle|>' -}}
  {{- text(message.content) ~ '<|im_end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_assistant|>assistant<|im_middle|>' -}}{%- endif -%})jinja"},

    {"seed_oss", R"jinja({%- for message in messages -%}
  {{- '<seed:bos>' ~ message.role ~ '\n' ~ text(message.content) | trim ~ '<seed:eos>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<seed:bos>assistant\n' -}}{%- endif -%})jinja"},

    {"grok-2", R"jinja({%- set names = {'system': 'System', 'user': 'Human', 'assistant': 'Assistant'} -%}
{%- for message in messages -%}
  {{- names.get(message.role, 'Human') ~ ': ' ~ text(message.content) | trim ~ '<|separator|>\n\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%})jinja"},
};

}  // namespace

std::span<const BuiltinTemplate> builtin_templates() { return kTemplates; }
std::string_view builtin_template_head() { return kHead; }

}  // namespace infer
