#include "tools/model_by_name.h"

#include <unistd.h>

#include <cstdio>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/arguments.h"
#include "tools/fitting_variant.h"
#include "tools/terminal.h"

namespace infer {
namespace {

struct ChosenVariant {
  Variant variant;
  std::string reason;  // "" if the name left no choice
};

ChosenVariant choose_variant(Hub& hub, const ModelName& name, const Listing& listing, const EngineOptions& engine) {
  const std::vector<Variant>& matching = listing.matching;
  if (matching.size() == 1) return {matching.front(), ""};
  const bool named = !name.tag.empty() || !name.file.empty();
  std::string files;
  for (const Variant& v : matching) files += concat(files.empty() ? "" : ", ", printable(v.files.front().path, 100));
  const bool same_label = std::all_of(matching.begin(), matching.end(),
                                      [&](const Variant& v) { return v.label == matching.front().label; });
  if (named || same_label) {
    throw Error(ErrorCode::kInvalidArgument, concat(name.text(), " means several files: ", files, ". Name one: ",
                                                    name.base(), "/", matching.front().files.front().path));
  }
  const FittingVariant fitting = choose_fitting_variant(hub, matching, engine);
  return {fitting.variant, fitting.reason};
}

// A model in the cache that the listing shows to be up to date.
const CachedModel* find_current(const std::vector<CachedModel>& cached, const Variant& variant) {
  for (const CachedModel& model : cached) {
    if (Hub::is_current(model, variant)) return &model;
  }
  return nullptr;
}

CachedModel pull_choice(Hub& hub, const ModelName& name, const Listing& listing, const ChosenVariant& choice) {
  if (!choice.reason.empty()) write_note(choice.reason);
  ModelName any = name;
  if (name.source == HubSource::kHuggingFace) any.tag = any.file = "";
  if (const std::vector<CachedModel> cached = hub.find(any);
      const CachedModel* model = find_current(cached, choice.variant)) {
    write_note(concat(model->name, " is up to date."));
    return *model;
  }
  return hub.pull(name, choice.variant, listing);
}

std::string used(Hub& hub, const CachedModel& model) {
  hub.cache().touch(model);
  return model.path().string();
}

// Reads a line without taking more from standard input than the line.
bool answer_is_yes() {
  std::string line;
  for (char c = 0; read(STDIN_FILENO, &c, 1) == 1 && c != '\n' && line.size() < 100;) line += c;
  return line.empty() || line == "y" || line == "Y" || line == "yes";
}

bool may_ask() { return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0; }

std::string ask_and_pull(Hub& hub, const ModelName& name, const EngineOptions& engine) {
  const std::string command = concat("infer pull ", name.text());
  if (hub.options().offline || !may_ask()) {
    throw Error(ErrorCode::kIo, concat(name.text(), " is not on this machine, and there is no file of that name. ",
                                       hub.options().offline ? "Offline mode is on; without it, this downloads it: "
                                                             : "Download it with: ",
                                       command));
  }
  const Listing listing = hub.list(name);
  const ChosenVariant choice = choose_variant(hub, name, listing, engine);
  std::fprintf(stderr, "%s is not on this machine. Download %s (%s)? [Y/n] ", name.text().c_str(),
               printable(choice.variant.files.front().path, 100).c_str(), bytes_text(choice.variant.size()).c_str());
  if (!answer_is_yes()) throw Error(ErrorCode::kIo, concat("Not downloaded. To do it later: ", command));
  return used(hub, pull_choice(hub, name, listing, choice));
}

std::string find_or_pull(Hub& hub, const ModelName& name, const EngineOptions& engine, bool asks) {
  // Without asking the server: what is here is used until infer pull updates it.
  if (const std::vector<CachedModel> cached = hub.find(name); !cached.empty()) return used(hub, cached.front());
  return asks ? ask_and_pull(hub, name, engine) : used(hub, pull_model(hub, name, engine));
}

}  // namespace

CachedModel pull_model(Hub& hub, const ModelName& name, const EngineOptions& engine) {
  if (hub.options().offline) {
    if (const std::vector<CachedModel> cached = hub.find(name); !cached.empty()) return cached.front();
  }
  const Listing listing = hub.list(name);
  return pull_choice(hub, name, listing, choose_variant(hub, name, listing, engine));
}

void add_named_model_flags(CLI::App& app, NamedModelFlags& flags) {
  app.get_option("--model")->required(false);
  auto* repo =
      app.add_option(flag_names("-hf,-hfr,--hf-repo,-mu,--model-url"), flags.repo,
                     "Model by name, downloaded if needed: ORG/REPO[:QUANT] on Hugging Face, or a URL; see infer pull")
          ->check(not_empty())
          ->excludes(app.get_option("--model"))
          ->type_name("NAME");
  app.add_option(flag_names("-hff,--hf-file"), flags.file, "The file of --hf-repo")
      ->check(not_empty())
      ->needs(repo)
      ->type_name("FILE");
  add_token_flags(app, flags.hub);
}

std::string find_model_file(const std::string& model, const NamedModelFlags& flags, const EngineOptions& engine) {
  std::optional<ModelName> name;
  std::error_code error;
  if (!flags.repo.empty()) {
    name = require_model_name(flags.repo);
    if (!flags.file.empty()) {
      if (name->source != HubSource::kHuggingFace || !is_safe_relative_path(flags.file) || !name->tag.empty()) {
        throw Error(ErrorCode::kInvalidArgument, "--hf-file names a GGUF file of --hf-repo ORG/REPO, without a tag.");
      }
      name->file = flags.file;
    }
  } else if (model.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "Name a model: --model FILE, or -hf ORG/REPO to download one.");
  } else if (!std::filesystem::exists(model, error)) {
    name = parse_model_name(model);
  }
  if (!name) return model;
  std::string path;
  const bool asks = flags.repo.empty();
  with_hub(flags.hub, [&](Hub& hub) { path = find_or_pull(hub, *name, engine, asks); });
  return path;
}

std::shared_ptr<const GgufFile> open_model(const std::string& model, const GgufOpenOptions& options) {
  return GgufFile::open(find_model_file(model, {}, {}), options);
}

}  // namespace infer
