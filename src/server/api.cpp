#include "src/server/api.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace infer {
namespace {

// Bytes of bodies being processed at once: parsing and tokenizing take a multiple of a body's size.
constexpr size_t kInputBytes = 16 << 20;

int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count() / 1000.0;
}

}  // namespace

Api::Api(const ApiOptions& options, Metrics& metrics, ServerLog& log)
    : options_(options),
      metrics_(metrics),
      log_(log),
      admission_(options.admission),
      input_(kInputBytes),
      instance_(random_seed()) {}

void Api::set_model(std::unique_ptr<ServedModel> model) {
  model->created = unix_time();
  model_ = std::move(model);
  ready_ = true;
}

Json Api::body_of(ApiCall& call) {
  const std::string& body = call.request.body;
  call.input = ByteBudget::Share(input_);
  const GenerationRun::Watch watching = watch(call);
  while (!call.input.grow(body.size(), kLongestDelay)) watching.check();
  JsonLimits limits{.depth = options_.limits.max_depth};
  limits.object_members = std::max(limits.object_members, options_.limits.max_logit_biases + 1);
  limits.members = std::max(limits.members, 2 * limits.object_members);
  return parse_json_object(body, limits);
}

void Api::release_input(ApiCall& call) {
  std::string().swap(call.request.body);
  call.request.body_share.release();
  call.input.release();
}

RequestContext Api::request_context() const {
  const Tokenizer& tokenizer = model_->engine->tokenizer();
  return {options_.limits,
          options_.sampling,
          model_->engine->model().n_vocab(),
          options_.schema_lenient,
          [&tokenizer](std::string_view text) { return tokenizer.encode(text, false, false); },
          options_.template_variables};
}

GenerationRun::Watch Api::watch(const ApiCall& call) const {
  return {call.request.client_gone, [this] { return stopping_.load(); }, call.arrived + options_.request_timeout};
}

void Api::finish(ApiCall& call, int status) {
  metrics_.responses.add(std::to_string(status));
  if (status == kClientGone || status == 504) ++metrics_.cancelled;
  call.log["status"] = status;
  call.log["ms"] = milliseconds_since(call.arrived);
  const LogLevel level = status == 500 ? LogLevel::kError : call.endpoint.quiet ? LogLevel::kDebug : LogLevel::kInfo;
  log_.write(level, "request", call.log);
}

std::string Api::new_id(const char* prefix) {
  char digits[40];
  std::snprintf(digits, sizeof(digits), "%08llx%08llx", static_cast<unsigned long long>(instance_ & 0xFFFFFFFF),
                static_cast<unsigned long long>(++last_id_));
  return prefix + std::string(digits);
}

}  // namespace infer
