// Real files: the reference models and vocabularies, the fuzz corpus, and files that once broke the reader.
#include <doctest/doctest.h>

#include "ggml-like/gguf.h"
#include "tests/fuzz/walk_gguf.h"
#include "tests/support/skip.h"
#include "tests/unit/ggml-like/gguf_raw.h"

using namespace infer;
using namespace infer::test;

namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("gguf files: all reference files open, with every tensor and byte accounted for") {
  const auto shared = shared_dir("gguf files: all reference files");
  if (!shared) return;
  size_t n_files = 0;
  for (const char* name : {"models", "goldens/arch", "goldens/tokenizer/vocab"}) {
    for (const auto& entry : std::filesystem::directory_iterator(*shared / name)) {
      if (entry.path().extension() != ".gguf") continue;
      INFO(entry.path().string());
      ++n_files;
      std::shared_ptr<const GgufFile> file;
      REQUIRE_NOTHROW(file = GgufFile::open(entry.path()));
      CHECK(file->get_string("general.architecture").has_value());
      uint64_t counts[2];  // of tensors and metadata entries, by the file's header
      std::ifstream in(entry.path(), std::ios::binary);
      in.seekg(8).read(reinterpret_cast<char*>(counts), sizeof(counts));
      CHECK(file->tensors().size() == counts[0]);
      CHECK(file->metadata().size() == counts[1]);
      // Tensors are stored without gaps, so the last one ends where the file does, up to padding.
      uint64_t end = 0;
      for (const GgufTensor& tensor : file->tensors()) end = std::max(end, tensor.file_offset + tensor.n_bytes);
      if (end > 0) CHECK(file->total_file_bytes() - end < file->alignment());
    }
  }
  CHECK(n_files >= 100);
}

TEST_CASE("gguf files: a written copy of a trained model is the same model") {
  const auto original = GgufFile::open(std::filesystem::path(INFER_SOURCE_DIR) / "models/infer-demo-5m-q8_0.gguf");
  const TemporaryFolder folder;
  std::vector<GgufWriter::TensorInfo> tensors;
  for (const GgufTensor& tensor : original->tensors()) tensors.push_back({tensor.name, tensor.type, tensor.shape});
  GgufWriter writer(folder.path / "copy.gguf", original->metadata(), tensors, original->alignment());
  for (const GgufTensor& tensor : original->tensors()) writer.write({tensor.data, tensor.n_bytes});
  writer.finish();
  const auto copy = GgufFile::open(folder.path / "copy.gguf");
  CHECK(copy->metadata() == original->metadata());
  REQUIRE(copy->tensors().size() == original->tensors().size());
  for (const GgufTensor& tensor : copy->tensors()) {
    const GgufTensor* before = original->find_tensor(tensor.name);
    REQUIRE(before != nullptr);
    REQUIRE(before->n_bytes == tensor.n_bytes);
    CHECK(std::memcmp(before->data, tensor.data, tensor.n_bytes) == 0);
  }
}

TEST_CASE("gguf files: reading the fuzz corpus and the files of tests/regress does no harm") {
  size_t n_files = 0;
  for (const char* name : {"tests/fuzz/corpus/gguf", "tests/regress/gguf"}) {
    const std::filesystem::path folder = std::filesystem::path(INFER_SOURCE_DIR) / name;
    if (!std::filesystem::is_directory(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      INFO(entry.path().string());
      const std::string bytes = bytes_of(entry.path());
      allocation_count() = {};
      CHECK(walk_gguf(as_bytes(bytes)) > 0);
      CHECK(allocation_count().largest < 1 << 20);
      ++n_files;
    }
  }
  CHECK(n_files >= 4);
}
