#include "tools/models.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/text/ordered_json.h"
#include "tools/hub_flags.h"

namespace infer {
namespace {

std::string time_text(const std::optional<std::chrono::system_clock::time_point>& time, const char* format) {
  if (!time) return "";
  const std::time_t seconds = std::chrono::system_clock::to_time_t(*time);
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[40];
  return std::string(text, std::strftime(text, sizeof(text), format, &parts));
}

nlohmann::ordered_json model_json(const CachedModel& model) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const CachedFile& file : model.files) {
    files.push_back({{"path", file.path.string()}, {"size", file.size}, {"sha256", nullptr}});
    if (!file.sha256.empty()) files.back()["sha256"] = file.sha256;
  }
  nlohmann::ordered_json json = {{"name", model.name},
                                 {"path", model.path().string()},
                                 {"files", files},
                                 {"size", model.size()},
                                 {"quantization", model.quantization},
                                 {"last_used", nullptr},
                                 {"cache", model.is_own ? "infer" : "huggingface"}};
  if (model.last_used) json["last_used"] = time_text(model.last_used, "%Y-%m-%dT%H:%M:%SZ");
  return json;
}

void print_json(const Hub& hub, const std::vector<CachedModel>& models, const std::vector<PartialFile>& partial) {
  nlohmann::ordered_json json = {{"folder", hub.cache().root().string()},
                                 {"models", nlohmann::ordered_json::array()},
                                 {"unfinished", nlohmann::ordered_json::array()}};
  for (const CachedModel& model : models) json["models"].push_back(model_json(model));
  for (const PartialFile& file : partial) {
    json["unfinished"].push_back({{"name", file.name},
                                  {"path", file.target.string()},
                                  {"done", file.done},
                                  {"size", file.size},
                                  {"active", file.active}});
  }
  std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

void print_row(size_t width, const std::string& name, const std::string& size, const std::string& quantization,
               const std::string& rest) {
  std::printf("%-*s  %10s  %-12s  %s\n", static_cast<int>(width), name.c_str(), size.c_str(), quantization.c_str(),
              rest.c_str());
}

void print_table(const Hub& hub, const std::vector<CachedModel>& models, const std::vector<PartialFile>& partial) {
  if (models.empty() && partial.empty()) {
    std::printf("No models in %s. Download one with: infer pull ORG/REPO\n", hub.cache().root().c_str());
    return;
  }
  const auto shown = [](const PartialFile& file) {
    return printable(file.name.empty() ? file.target.string() : file.name, 400);
  };
  size_t width = 4;
  for (const CachedModel& model : models) width = std::max(width, printable(model.name, 400).size());
  for (const PartialFile& file : partial) width = std::max(width, shown(file).size());
  print_row(width, "NAME", "SIZE", "QUANTIZATION", "LAST USED");
  for (const CachedModel& model : models) {
    const std::string used = model.is_own ? time_text(model.last_used, "%Y-%m-%d %H:%M") : "in Hugging Face's cache";
    print_row(width, printable(model.name, 400), bytes_text(model.size()), printable(model.quantization, 40), used);
  }
  for (const PartialFile& file : partial) {
    print_row(width, shown(file), bytes_text(file.size), "",
              concat(file.active ? "downloading, " : "unfinished, ", bytes_text(file.done), " are here"));
  }
}

// Other parts of the same model's unfinished download, too.
int remove_partial(Hub& hub, const ModelName& name) {
  int removed = 0;
  for (const PartialFile& file : hub.cache().partial_files()) {
    if (file.name.empty()) continue;
    const std::optional<ModelName> own = parse_model_name(file.name);
    const bool all = name.tag.empty() && name.file.empty();
    if (!own || lower_case(all ? own->base() : own->text()) != lower_case(all ? name.base() : name.text())) continue;
    if (file.active) {
      throw Error(ErrorCode::kIo, concat(printable(file.name), " is being downloaded. Stop that process first."));
    }
    hub.cache().remove(file);
    std::fprintf(stderr, "Removed the unfinished %s.\n", printable_path(file.target).c_str());
    ++removed;
  }
  return removed;
}

int run_rm(Hub& hub, const ModelName& name) {
  const std::vector<CachedModel> found = hub.find(name);
  std::vector<CachedModel> own;
  std::copy_if(found.begin(), found.end(), std::back_inserter(own), [](const CachedModel& m) { return m.is_own; });
  if (own.size() > 1) {
    std::string names;
    for (const CachedModel& model : own) names += (names.empty() ? "" : ", ") + printable(model.name, 200);
    throw Error(ErrorCode::kInvalidArgument, concat("There are several: ", names, ". Name one."));
  }
  if (own.size() == 1) {
    hub.cache().remove(own.front());
    std::fprintf(stderr, "Removed %s (%s).\n", printable(own.front().name, 400).c_str(),
                 bytes_text(own.front().size()).c_str());
    return 0;
  }
  if (remove_partial(hub, name) > 0) return 0;
  if (!found.empty()) {
    throw Error(ErrorCode::kIo, concat(printable(found.front().name, 400),
                                       " is in Hugging Face's cache, which infer only reads. Remove it there: ",
                                       printable(found.front().path().string(), 4096)));
  }
  throw Error(ErrorCode::kIo, concat(printable(name.text(), 400), " is not in the cache. infer models lists what is."));
}

}  // namespace

std::function<int()> define_models(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print one JSON document");
  return [json] {
    const Hub hub(hub_options_of({}), {});
    const std::vector<CachedModel> models = hub.models();
    const std::vector<PartialFile> partial = hub.cache().partial_files();
    *json ? print_json(hub, models, partial) : print_table(hub, models, partial);
    return 0;
  };
}

std::function<int()> define_rm(CLI::App& app) {
  const auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "A name that infer models lists")->required();
  return [name] {
    Hub hub(hub_options_of({}), {});
    return run_rm(hub, require_model_name(*name));
  };
}

}  // namespace infer
