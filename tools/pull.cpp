#include "tools/pull.h"

#include <cstdio>
#include <memory>

#include "ggml-like/error.h"
#include "tools/arguments.h"
#include "tools/flags.h"
#include "tools/model_by_name.h"

namespace infer {
namespace {

struct PullOptions {
  std::string name;
  HubFlags hub;
  ModelFlags model;  // what the memory plan assumes
};

int run_pull(const PullOptions& options) {
  const ModelName name = require_model_name(options.name);
  with_hub(options.hub, [&](Hub& hub) {
    const CachedModel model = pull_model(hub, name, options.model.engine_options());
    std::printf("%s\n", model.path().c_str());
  });
  return 0;
}

}  // namespace

std::function<int()> define_pull(CLI::App& app) {
  const auto o = std::make_shared<PullOptions>();
  app.add_option(
         "NAME", o->name,
         "ORG/REPO[:QUANT] or hf.co/ORG/REPO[:QUANT] (Hugging Face), ollama.com/library/NAME[:TAG], or the URL "
         "of a GGUF file. Without QUANT: one that fits this machine. Models are kept in $INFER_MODELS, or else in "
         "infer/ in the cache folder; the file's path is printed")
      ->required()
      ->check(not_empty());
  add_token_flags(app, o->hub);
  add_download_flags(app, o->hub);
  return [o] { return run_pull(*o); };
}

}  // namespace infer
