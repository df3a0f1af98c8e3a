#include "tools/fitting_variant.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/gguf_parse.h"
#include "ggml-like/printable.h"
#include "src/engine/engine.h"
#include "tools/output_file.h"
#include "tools/plan/memory_plan.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFirstBytes = size_t{4} << 20, kMostBytes = size_t{256} << 20;

// A folder that is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "infer-pull-XXXXXX").string();
    if (!mkdtemp(name.data())) throw Error(ErrorCode::kIo, "Cannot create a folder for temporary files.");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The head of a GGUF file on the server: metadata and tensor table.
std::string read_head(Hub& hub, const RemoteFile& file) {
  for (size_t n = std::min<uint64_t>(kFirstBytes, file.size);; n = std::min<uint64_t>(2 * n, file.size)) {
    const std::string start = hub.read_start(file, n);
    const bool enough = start.size() >= 16 &&
                        parse_gguf_part(std::as_bytes(std::span(start)), file.size, printable(file.path)).has_value();
    if (enough || n >= file.size || n >= kMostBytes) return start;
  }
}

// The model without its weights: files of the real size with holes.
std::shared_ptr<Model> load_without_weights(Hub& hub, const Variant& variant, const fs::path& folder) {
  for (const RemoteFile& file : variant.files) {
    const fs::path path = folder / fs::path(file.path).filename();
    AtomicFile copy(path.string());
    copy.write(read_head(hub, file));
    copy.finish();
    std::error_code error;
    fs::resize_file(path, file.size, error);
    if (error) throw Error(ErrorCode::kIo, concat("Cannot write ", path.string(), ": ", error.message(), "."));
  }
  return load_model(GgufFile::open(folder / fs::path(variant.files.front().path).filename()));
}

std::string shown_name(const Variant& variant) {
  return variant.label.empty() ? printable(variant.files.front().path) : variant.label;
}

// "cpu: 5.20 GiB needed, 9.81 GiB free"
std::string fit_reason(const MemoryPlan& plan) {
  for (const PlanChoice& choice : plan.choices) {
    if (choice.what == "fits") return choice.reason;
  }
  return "";
}

}  // namespace

FittingVariant choose_fitting_variant(Hub& hub, const std::vector<Variant>& variants, const EngineOptions& options) {
  // After the preferred one, only smaller ones can fit where it does not.
  std::vector<Variant> order = {variants.front()};
  for (const Variant& variant : variants) {
    if (variant.size() < variants.front().size()) order.push_back(variant);
  }
  std::stable_sort(order.begin() + 1, order.end(),
                   [](const Variant& a, const Variant& b) { return a.size() > b.size(); });
  const TemporaryFolder folder;
  std::string why_not, last;
  for (const Variant& variant : order) {
    const fs::path own = folder.path() / std::to_string(&variant - order.data());
    fs::create_directory(own);
    const MemoryPlan plan = plan_memory_of({load_without_weights(hub, variant, own), options, ""});
    const std::string reason = fit_reason(plan);
    std::error_code ignored;
    fs::remove_all(own, ignored);
    if (plan.fits) {
      return {variant, concat("Chose ", shown_name(variant), " (", bytes_text(variant.size()), "): it fits (", reason,
                              ")", why_not, ".")};
    }
    if (why_not.empty()) why_not = concat("; ", shown_name(variant), " does not (", reason, ")");
    last = concat(shown_name(variant), " does not fit (", reason, ")");
  }
  throw Error(ErrorCode::kOutOfMemory,
              concat("No quantization fits this machine: ", last,
                     ". Name one to download it anyway: ORG/REPO:", shown_name(order.back()), "."));
}

}  // namespace infer
