// A loaded model: hyper-parameters, weights, vocabulary, and the graph of its forward pass. `load_model` refuses a file
// whose architecture, hyper-parameters or tensors it does not implement in full; a model that loads is run rightly.
//
// A Model keeps its GgufFile alive and owns the Weight objects that graphs point to, so it outlives every graph and
// plan built from it. Where layers lie is set once, after loading, by whoever places them (Weight::device); after that
// all members are const and any number of threads may call them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ggml-like/gguf.h"
#include "ggml-like/graph.h"
#include "src/model/cache_groups.h"
#include "src/model/config.h"
#include "src/model/model_weight.h"
#include "src/text/vocabulary.h"

namespace infer {

class Architecture;
class WeightSet;

// Both are marked as outputs of the graph.
struct ModelOutputs {
  ValueId logits = kNoValue;  // [O, n_vocab], named "logits"
  ValueId hidden = kNoValue;  // [O, n_embd], the final hidden state after its norm, named "result_norm"
};

class Model {
 public:
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const GgufFile& file() const { return *file_; }
  const std::string& architecture() const { return config_.architecture; }  // "llama"
  const std::string& name() const { return config_.name; }                  // general.name, may be empty
  const ModelConfig& config() const { return config_; }
  int context_length() const { return config_.context_length; }  // tokens the model was trained for
  int n_layer() const { return config_.n_layer; }
  int n_embd() const { return config_.n_embd; }
  int n_vocab() const { return config_.n_vocab; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::optional<std::string>& chat_template() const { return chat_template_; }
  int64_t parameter_count() const;
  uint64_t weight_bytes() const;  // of all tensors as they lie in the file, tied ones once

  // The groups of layers that are cached alike; `bytes` and `n_blocks` are left to the engine.
  const std::vector<CacheGroup>& cache_groups() const { return cache_groups_; }
  // Types in which keys and values are stored from now on (F16 until then). Throws Error(kInvalidArgument) when the
  // heads are no multiple of the type's block. Call before build() and cache_desc().
  void set_cache_types(DataType key, DataType value);
  CacheDesc cache_desc(int layer) const;  // REQUIRES 0 <= layer < n_layer()

  // The weights of kInputLayer (embedding, rope frequency factors), of a block, or of kOutputLayer (final norm, head);
  // empty for other numbers. A head tied to the embedding is a Weight of its own with the same host data, so that the
  // two can lie on different devices.
  std::span<ModelWeight* const> weights_of_layer(int layer) const;

  // Adds the whole forward pass to an empty graph, for the graph's buckets. Values with names, N = layer:
  //   embedding, blk.N.attn_norm, blk.N.attn_heads, blk.N.attn_out, blk.N.ffn_norm, blk.N.ffn_out, blk.N.out,
  //   result_norm, logits
  // In the last layer everything after attention is computed for the output rows only.
  ModelOutputs build(Graph& graph) const;

 private:
  friend std::unique_ptr<Model> load_model(std::shared_ptr<const GgufFile> file,
                                           std::unique_ptr<Architecture> architecture);
  Model(std::shared_ptr<const GgufFile> file, std::unique_ptr<Architecture> architecture);

  std::shared_ptr<const GgufFile> file_;
  ModelConfig config_;
  Vocabulary vocabulary_;
  std::optional<std::string> chat_template_;
  std::unique_ptr<Architecture> architecture_;
  std::unique_ptr<WeightSet> weights_;
  std::vector<CacheGroup> cache_groups_;
  DataType key_type_ = DataType::kF16, value_type_ = DataType::kF16;
};

// Throws Error(kUnsupported) for an unknown architecture, hyper-parameter, tensor or type, Error(kInvalidFile) for
// values out of range and tensors that are missing or have another shape.
std::unique_ptr<Model> load_model(std::shared_ptr<const GgufFile> file);
// The same with an architecture that need not be in the list, whatever the file's general.architecture says.
std::unique_ptr<Model> load_model(std::shared_ptr<const GgufFile> file, std::unique_ptr<Architecture> architecture);

}  // namespace infer
