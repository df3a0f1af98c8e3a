// A loaded model: hyper-parameters, weights, vocabulary, and the graph of its forward pass. `load_model` rejects a file
// whose architecture, hyper-parameters or tensors are not fully implemented; a model that loads is computed correctly.
//
// A Model keeps its GgufFile alive and owns the Weight objects that graphs point to, so it must outlive every graph and
// plan built from it. Immutable once loaded: any number of threads may use it.
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
struct Classifier;

// The types in which the cache stores keys and values.
struct CacheTypes {
  DataType key = DataType::kF16, value = DataType::kF16;
};

// Neither is marked as an output, since the caller may need only some of the logits.
struct ModelOutputs {
  ValueId logits = kNoValue;  // [O, n_vocab], named "logits"; kNoValue for an encoder
  ValueId hidden = kNoValue;  // [O, n_embd], the final hidden state after its norm, named "result_norm"
  ValueId state = kNoValue;   // [O, n_embd], the input of a prediction layer; kNoValue: `hidden`
};

class Model {
 public:
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const GgufFile& file() const { return *file_; }
  const std::shared_ptr<const GgufFile>& shared_file() const { return file_; }
  const std::string& architecture() const { return config_.architecture; }  // "llama"
  const std::string& name() const { return config_.name; }                  // general.name, may be empty
  const ModelConfig& config() const { return config_; }
  int context_length() const { return config_.context_length; }  // trained context, in tokens
  int max_context() const { return config_.max_context; }        // tokens; 0: no limit
  int n_layer() const { return config_.n_layer; }
  int n_embd() const { return config_.n_embd; }
  int n_vocab() const { return config_.n_vocab; }
  const Classifier* classifier() const { return classifier_.get(); }  // null if the model has none
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::optional<std::string>& chat_template() const { return chat_template_; }
  int64_t parameter_count() const;
  uint64_t weight_bytes() const;  // all tensors in the file's format; tied ones count once

  // Groups of layers with the same kind of cache; the engine sets `bytes` and `n_blocks`.
  const std::vector<CacheGroup>& cache_groups() const { return cache_groups_; }
  // Throws Error(kInvalidArgument) if a head is not a multiple of the type's block, or a type cannot be stored to.
  void check_cache_types(CacheTypes types) const;
  // The caches of a layer: keys and values (possibly those of an earlier layer), compressed entries, index keys, the
  // recurrent state, and the token ids kept with it. REQUIRE: 0 <= layer < n_layer(), checked types, and that the layer
  // has such a cache.
  CacheDesc cache_desc(int layer, CacheTypes types) const;
  CacheDesc compressed_desc(int layer, CacheTypes types) const;
  CacheDesc index_desc(int layer, CacheTypes types) const;
  CacheDesc state_desc(int layer) const;
  CacheDesc token_ids_desc(int layer) const;
  // All caches that a layer stores.
  std::vector<CacheDesc> caches(int layer, CacheTypes types) const;

  // The weights of kInputLayer (embedding, rope frequency factors), of a layer, or of kOutputLayer (final norm, head);
  // empty for other numbers. A head tied to the embedding is a separate Weight with the same host data, so that the two
  // can be on different devices.
  std::span<ModelWeight* const> weights_of_layer(int layer) const;
  std::vector<int> all_layers() const;  // kInputLayer, 0 .. n_layer() - 1, kOutputLayer

  // Adds the whole forward pass to an empty graph, for the graph's bucket. Named values, N = layer:
  //   embedding, blk.N.attn_norm, blk.N.attn_heads, blk.N.attn_out, blk.N.ffn_norm, blk.N.ffn_out, blk.N.out,
  //   result_norm, logits
  // In the last layer, everything after attention is computed for the output rows only. REQUIRES: checked types.
  ModelOutputs build(Graph& graph, CacheTypes cache) const;

 private:
  friend std::unique_ptr<Model> load_model(std::shared_ptr<const GgufFile> file, ModelPart part);
  friend std::unique_ptr<Model> load_model(std::shared_ptr<const GgufFile> file,
                                           std::unique_ptr<Architecture> architecture);
  Model(std::shared_ptr<const GgufFile> file, std::unique_ptr<Architecture> architecture, ModelPart part);

  std::shared_ptr<const GgufFile> file_;
  ModelConfig config_;
  Vocabulary vocabulary_;
  std::optional<std::string> chat_template_;
  std::unique_ptr<Architecture> architecture_;
  std::unique_ptr<WeightSet> weights_;
  std::unique_ptr<Classifier> classifier_;
  std::vector<CacheGroup> cache_groups_;

  // The layer's group of recurrent states, or of keys and values; -1: none. An index into cache_groups().
  int find_group(int layer, bool of_states) const;
  // The group of the layer's compressed entries or, if it has none, of its keys and values.
  int find_compressed_group(int layer) const;
};

// Throws Error(kUnsupported) for an unknown architecture, hyper-parameter, tensor or type, and Error(kInvalidFile) for
// values out of range and for tensors that are missing or have another shape.
std::unique_ptr<Model> load_model(std::shared_ptr<const GgufFile> file, ModelPart part = ModelPart::kTrunk);
// The same with a given architecture, which need not be in the list; the file's general.architecture is ignored.
std::unique_ptr<Model> load_model(std::shared_ptr<const GgufFile> file, std::unique_ptr<Architecture> architecture);

}  // namespace infer
