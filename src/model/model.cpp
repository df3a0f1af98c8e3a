#include "src/model/model.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/model/arch/architecture.h"
#include "src/model/classifier.h"
#include "src/model/vocabulary_loader.h"
#include "src/model/weights.h"

namespace infer {
namespace {

constexpr std::string_view kPositionTable = "position_embd.weight";  // one row per position

// The number of rows in the embedding, which must equal the number of tokens.
int vocabulary_size(const GgufFile& file, const Vocabulary& vocabulary) {
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (!embedding) {
    throw Error(ErrorCode::kInvalidFile, expected_found("model", "tensor token_embd.weight", "the embedding", "none"));
  }
  const int64_t rows = embedding->shape.size() == 2 ? embedding->shape[0] : 0;
  if (rows < 1 || rows > kMaxVocabulary || static_cast<size_t>(rows) != vocabulary.tokens.size()) {
    throw Error(ErrorCode::kInvalidFile,
                expected_found("model", "tensor token_embd.weight",
                               concat("a row for each of the ", vocabulary.tokens.size(), " tokens"),
                               embedding->shape_string()));
  }
  return static_cast<int>(rows);
}

}  // namespace

Model::Model(std::shared_ptr<const GgufFile> file, std::unique_ptr<Architecture> architecture, ModelPart part)
    : file_(std::move(file)), architecture_(std::move(architecture)) {
  ConfigReader reader(*file_, part);
  if (!architecture_) architecture_ = create_architecture(reader.architecture());
  config_ = architecture_->read_config(reader);
  if (config_.part != part) {
    throw Error(ErrorCode::kUnsupported,
                "The model has no prediction layer. Choose another --spec, or a --draft-model.");
  }
  config_.pooling = read_pooling(reader, config_);
  reader.finish();
  config_.name = file_->get_string("general.name").value_or("");
  vocabulary_ = load_vocabulary(*file_);
  chat_template_ = file_->get_string("tokenizer.chat_template");
  config_.n_vocab = vocabulary_size(*file_, vocabulary_);
  if (file_->find_tensor(kPositionTable)) config_.max_context = config_.context_length;

  weights_ = std::make_unique<WeightSet>(file_, config_.first_layer);
  architecture_->declare_weights(*weights_, config_);
  if (std::optional<Classifier> found = declare_classifier(*weights_, config_)) {
    classifier_ = std::make_unique<Classifier>(std::move(*found));
  }
  weights_->finish();
  cache_groups_ = architecture_->cache_groups(config_);
}

Model::~Model() = default;

int64_t Model::parameter_count() const { return weights_->parameter_count(); }

uint64_t Model::weight_bytes() const { return weights_->bytes(); }

int Model::find_group(int layer, bool of_states) const {
  CHECK_INTERNAL(layer >= 0 && layer < config_.n_layer);
  for (size_t g = 0; g < cache_groups_.size(); ++g) {
    if ((cache_groups_[g].kind == CacheKind::kState) != of_states) continue;
    const std::vector<int32_t>& layers = cache_groups_[g].layers;
    if (std::find(layers.begin(), layers.end(), layer) != layers.end()) return static_cast<int>(g);
  }
  return -1;
}

void Model::check_cache_types(CacheTypes types) const {
  const auto check = [](const char* what, DataType type, int dim) {
    const TypeTraits& t = traits(type);
    if (!t.from_float || !t.to_float || dim % t.block_size != 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  expected_found("model", concat("cache type of ", what), concat("one that stores heads of ", dim),
                                 concat(t.name, " with blocks of ", t.block_size)));
    }
  };
  for (int layer = 0; layer < config_.n_layer; ++layer) {
    check("keys", types.key, config_.key_dim_of(layer));
    // A latent cache has no values of its own; the first part of a key serves as value.
    check("values", config_.latent.cached ? types.key : types.value, config_.value_dim_of(layer));
    if (config_.layers[layer].indexed) check("keys", types.key, config_.indexer.key_dim);
  }
}

int Model::find_compressed_group(int layer) const {
  int found = -1;
  for (size_t g = 0; g < cache_groups_.size(); ++g) {
    const std::vector<int32_t>& layers = cache_groups_[g].layers;
    if (cache_groups_[g].kind == CacheKind::kState) continue;
    if (std::find(layers.begin(), layers.end(), layer) != layers.end()) found = static_cast<int>(g);
  }
  CHECK_INTERNAL(found >= 0);
  return found;
}

CacheDesc Model::cache_desc(int layer, CacheTypes types) const {
  const int other = config_.layers[layer].cache_layer;
  CacheDesc desc;
  desc.layer = other >= 0 ? other : layer;
  desc.group = find_group(desc.layer, false);
  CHECK_INTERNAL(desc.group >= 0);
  desc.n_kv_head = config_.layers[desc.layer].n_kv_head;
  desc.key_dim = config_.key_dim_of(desc.layer);
  desc.value_dim = config_.value_dim_of(desc.layer);
  desc.key_type = types.key;
  desc.value_type = types.value;
  desc.latent = config_.latent.cached;
  if (config_.layers[desc.layer].sparse) desc.use = CacheUse::kSparseAttention;
  return desc;
}

CacheDesc Model::compressed_desc(int layer, CacheTypes types) const {
  CHECK_INTERNAL(config_.layers[layer].compress > 0);
  CacheDesc desc = cache_desc(layer, types);
  desc.group = find_compressed_group(layer);
  desc.stride = config_.layers[layer].compress;
  return desc;
}

CacheDesc Model::index_desc(int layer, CacheTypes types) const {
  CHECK_INTERNAL(config_.layers[layer].indexed);
  CacheDesc desc;
  desc.layer = layer;
  desc.group = find_compressed_group(layer);
  desc.n_kv_head = 1;
  desc.key_dim = config_.indexer.key_dim;
  desc.key_type = types.key;
  desc.latent = true;
  desc.use = CacheUse::kIndex;
  desc.stride = config_.layers[layer].index_stride;
  return desc;
}

CacheDesc Model::state_desc(int layer) const {
  CacheDesc desc;
  desc.layer = layer;
  desc.group = find_group(layer, true);
  desc.slot_values = config_.layers[layer].state_values;
  CHECK_INTERNAL(desc.group >= 0 && desc.slot_values > 0);
  return desc;
}

CacheDesc Model::token_ids_desc(int layer) const {
  CacheDesc desc = state_desc(layer);
  desc.slot_values = config_.layers[layer].recent_ids;
  desc.use = CacheUse::kTokenIds;
  CHECK_INTERNAL(desc.slot_values > 0);
  return desc;
}

std::vector<CacheDesc> Model::caches(int layer, CacheTypes types) const {
  std::vector<CacheDesc> all;
  if (find_group(layer, false) >= 0) all.push_back(cache_desc(layer, types));
  if (config_.layers[layer].compress > 0) all.push_back(compressed_desc(layer, types));
  if (config_.layers[layer].indexed) all.push_back(index_desc(layer, types));
  if (find_group(layer, true) >= 0) all.push_back(state_desc(layer));
  if (config_.layers[layer].recent_ids > 0) all.push_back(token_ids_desc(layer));
  return all;
}

std::span<ModelWeight* const> Model::weights_of_layer(int layer) const { return weights_->of_layer(layer); }

std::vector<int> Model::all_layers() const {
  std::vector<int> layers = {kInputLayer};
  for (int layer = 0; layer < config_.n_layer; ++layer) layers.push_back(layer);
  layers.push_back(kOutputLayer);
  return layers;
}

ModelOutputs Model::build(Graph& graph, CacheTypes cache) const {
  return architecture_->build_graph(graph, *this, cache);
}

std::unique_ptr<Model> load_model(std::shared_ptr<const GgufFile> file, ModelPart part) {
  return std::unique_ptr<Model>(new Model(std::move(file), nullptr, part));
}

std::unique_ptr<Model> load_model(std::shared_ptr<const GgufFile> file, std::unique_ptr<Architecture> architecture) {
  return std::unique_ptr<Model>(new Model(std::move(file), std::move(architecture), ModelPart::kTrunk));
}

}  // namespace infer
