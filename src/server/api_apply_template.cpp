// POST /apply-template: renders a conversation into a prompt.
#include "src/server/api.h"
#include "src/server/json_object.h"
#include "src/server/responses.h"

namespace infer {
namespace {

void apply_template(Api& api, const CallPtr& call) {
  const RenderedText prompt = render_prompt(api.model(), parse_conversation(api.body_of(*call), api.request_context()));
  call->response.body = json_text(json_object("prompt", prompt.text));
}

}  // namespace

Endpoint apply_template_endpoint() { return {.method = "POST", .path = "/apply-template", .run = apply_template}; }

}  // namespace infer
