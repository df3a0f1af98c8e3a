#include "src/text/builtin_templates.h"

namespace infer {
namespace {

constexpr BuiltinTemplate kTemplates[] = {
    {"chatml", R"({%- for message in messages -%}
<|im_start|>{{ message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})"},
};

}  // namespace

std::span<const BuiltinTemplate> builtin_templates() { return kTemplates; }

}  // namespace infer
