// The list of architectures: each has a row here, sorted by name. Those that compute the same share a class.
#include <algorithm>
#include <array>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/model/arch/architecture.h"

namespace infer {

// Defined in the file of the same name in this folder.
std::unique_ptr<Architecture> create_afmoe();
std::unique_ptr<Architecture> create_apertus();
std::unique_ptr<Architecture> create_arcee();
std::unique_ptr<Architecture> create_baichuan();
std::unique_ptr<Architecture> create_bailingmoe3();
std::unique_ptr<Architecture> create_bert();
std::unique_ptr<Architecture> create_bitnet();
std::unique_ptr<Architecture> create_bloom();
std::unique_ptr<Architecture> create_chatglm();
std::unique_ptr<Architecture> create_codeshell();
std::unique_ptr<Architecture> create_cohere2();
std::unique_ptr<Architecture> create_cohere2moe();
std::unique_ptr<Architecture> create_command_r();
std::unique_ptr<Architecture> create_dbrx();
std::unique_ptr<Architecture> create_deci();
std::unique_ptr<Architecture> create_deepseek();
std::unique_ptr<Architecture> create_deepseek2();
std::unique_ptr<Architecture> create_dots1();
std::unique_ptr<Architecture> create_eurobert();
std::unique_ptr<Architecture> create_exaone4();
std::unique_ptr<Architecture> create_exaone_moe();
std::unique_ptr<Architecture> create_falcon();
std::unique_ptr<Architecture> create_falcon_h1();
std::unique_ptr<Architecture> create_gemma();
std::unique_ptr<Architecture> create_gemma2();
std::unique_ptr<Architecture> create_gemma3();
std::unique_ptr<Architecture> create_gemma3n();
std::unique_ptr<Architecture> create_gemma4();
std::unique_ptr<Architecture> create_gemma_embedding();
std::unique_ptr<Architecture> create_glm4();
std::unique_ptr<Architecture> create_glm4moe();
std::unique_ptr<Architecture> create_gpt2();
std::unique_ptr<Architecture> create_gpt_oss();
std::unique_ptr<Architecture> create_gptneox();
std::unique_ptr<Architecture> create_granite();
std::unique_ptr<Architecture> create_granite_swa();
std::unique_ptr<Architecture> create_granitehybrid();
std::unique_ptr<Architecture> create_grok();
std::unique_ptr<Architecture> create_hunyuan();
std::unique_ptr<Architecture> create_jamba();
std::unique_ptr<Architecture> create_jina_bert_v2();
std::unique_ptr<Architecture> create_kimi_k3();
std::unique_ptr<Architecture> create_kimi_linear();
std::unique_ptr<Architecture> create_laguna();
std::unique_ptr<Architecture> create_lfm2();
std::unique_ptr<Architecture> create_llama();
std::unique_ptr<Architecture> create_llama4();
std::unique_ptr<Architecture> create_maincoder();
std::unique_ptr<Architecture> create_mamba();
std::unique_ptr<Architecture> create_mamba2();
std::unique_ptr<Architecture> create_mellum();
std::unique_ptr<Architecture> create_mimo2();
std::unique_ptr<Architecture> create_minicpm();
std::unique_ptr<Architecture> create_minicpm3();
std::unique_ptr<Architecture> create_minimax_m2();
std::unique_ptr<Architecture> create_mistral3();
std::unique_ptr<Architecture> create_mistral4();
std::unique_ptr<Architecture> create_modern_bert();
std::unique_ptr<Architecture> create_mpt();
std::unique_ptr<Architecture> create_nanbeige();
std::unique_ptr<Architecture> create_nemotron();
std::unique_ptr<Architecture> create_nemotron_h();
std::unique_ptr<Architecture> create_neo_bert();
std::unique_ptr<Architecture> create_nomic_bert();
std::unique_ptr<Architecture> create_nomic_bert_moe();
std::unique_ptr<Architecture> create_olmo();
std::unique_ptr<Architecture> create_olmo2();
std::unique_ptr<Architecture> create_olmoe();
std::unique_ptr<Architecture> create_openelm();
std::unique_ptr<Architecture> create_orion();
std::unique_ptr<Architecture> create_phi2();
std::unique_ptr<Architecture> create_phi3();
std::unique_ptr<Architecture> create_phimoe();
std::unique_ptr<Architecture> create_plamo2();
std::unique_ptr<Architecture> create_plamo3();
std::unique_ptr<Architecture> create_qwen();
std::unique_ptr<Architecture> create_qwen2();
std::unique_ptr<Architecture> create_qwen2moe();
std::unique_ptr<Architecture> create_qwen3();
std::unique_ptr<Architecture> create_qwen35();
std::unique_ptr<Architecture> create_qwen3moe();
std::unique_ptr<Architecture> create_qwen3next();
std::unique_ptr<Architecture> create_qwen3vl();
std::unique_ptr<Architecture> create_refact();
std::unique_ptr<Architecture> create_rwkv6();
std::unique_ptr<Architecture> create_rwkv7();
std::unique_ptr<Architecture> create_seed_oss();
std::unique_ptr<Architecture> create_smollm3();
std::unique_ptr<Architecture> create_stablelm();
std::unique_ptr<Architecture> create_starcoder2();
std::unique_ptr<Architecture> create_step35();

namespace {

constexpr std::array kArchitectures = {
    ArchitectureEntry{"afmoe", create_afmoe},
    ArchitectureEntry{"apertus", create_apertus},
    ArchitectureEntry{"arcee", create_arcee},
    ArchitectureEntry{"baichuan", create_baichuan},
    ArchitectureEntry{"bailingmoe2", create_dots1},
    ArchitectureEntry{"bailingmoe3", create_bailingmoe3},
    ArchitectureEntry{"bert", create_bert},
    ArchitectureEntry{"bitnet", create_bitnet},
    ArchitectureEntry{"bloom", create_bloom},
    ArchitectureEntry{"chatglm", create_chatglm},
    ArchitectureEntry{"codeshell", create_codeshell},
    ArchitectureEntry{"cohere2", create_cohere2},
    ArchitectureEntry{"cohere2moe", create_cohere2moe},
    ArchitectureEntry{"command-r", create_command_r},
    ArchitectureEntry{"dbrx", create_dbrx},
    ArchitectureEntry{"deci", create_deci},
    ArchitectureEntry{"deepseek", create_deepseek},
    ArchitectureEntry{"deepseek2", create_deepseek2},
    ArchitectureEntry{"dots1", create_dots1},
    ArchitectureEntry{"ernie4_5", create_llama},
    ArchitectureEntry{"ernie4_5-moe", create_llama},
    ArchitectureEntry{"eurobert", create_eurobert},
    ArchitectureEntry{"exaone", create_qwen2},
    ArchitectureEntry{"exaone-moe", create_exaone_moe},
    ArchitectureEntry{"exaone4", create_exaone4},
    ArchitectureEntry{"falcon", create_falcon},
    ArchitectureEntry{"falcon-h1", create_falcon_h1},
    ArchitectureEntry{"gemma", create_gemma},
    ArchitectureEntry{"gemma-embedding", create_gemma_embedding},
    ArchitectureEntry{"gemma2", create_gemma2},
    ArchitectureEntry{"gemma3", create_gemma3},
    ArchitectureEntry{"gemma3n", create_gemma3n},
    ArchitectureEntry{"gemma4", create_gemma4},
    ArchitectureEntry{"glm4", create_glm4},
    ArchitectureEntry{"glm4moe", create_glm4moe},
    ArchitectureEntry{"gpt-oss", create_gpt_oss},
    ArchitectureEntry{"gpt2", create_gpt2},
    ArchitectureEntry{"gptneox", create_gptneox},
    ArchitectureEntry{"granite", create_granite},
    ArchitectureEntry{"granite_swa", create_granite_swa},
    ArchitectureEntry{"granitehybrid", create_granitehybrid},
    ArchitectureEntry{"granitemoe", create_granite},
    ArchitectureEntry{"grok", create_grok},
    ArchitectureEntry{"hunyuan-dense", create_hunyuan},
    ArchitectureEntry{"hunyuan-moe", create_hunyuan},
    ArchitectureEntry{"hy_v3", create_dots1},
    ArchitectureEntry{"internlm2", create_llama},
    ArchitectureEntry{"jamba", create_jamba},
    ArchitectureEntry{"jina-bert-v2", create_jina_bert_v2},
    ArchitectureEntry{"kimi-k3", create_kimi_k3},
    ArchitectureEntry{"kimi-linear", create_kimi_linear},
    ArchitectureEntry{"laguna", create_laguna},
    ArchitectureEntry{"lfm2", create_lfm2},
    ArchitectureEntry{"lfm2moe", create_lfm2},
    ArchitectureEntry{"llama", create_llama},
    ArchitectureEntry{"llama4", create_llama4},
    ArchitectureEntry{"maincoder", create_maincoder},
    ArchitectureEntry{"mamba", create_mamba},
    ArchitectureEntry{"mamba2", create_mamba2},
    ArchitectureEntry{"mellum", create_mellum},
    ArchitectureEntry{"mimo2", create_mimo2},
    ArchitectureEntry{"minicpm", create_minicpm},
    ArchitectureEntry{"minicpm3", create_minicpm3},
    ArchitectureEntry{"minimax-m2", create_minimax_m2},
    ArchitectureEntry{"mistral3", create_mistral3},
    ArchitectureEntry{"mistral4", create_mistral4},
    ArchitectureEntry{"modern-bert", create_modern_bert},
    ArchitectureEntry{"mpt", create_mpt},
    ArchitectureEntry{"nanbeige", create_nanbeige},
    ArchitectureEntry{"nemotron", create_nemotron},
    ArchitectureEntry{"nemotron_h", create_nemotron_h},
    ArchitectureEntry{"nemotron_h_moe", create_nemotron_h},
    ArchitectureEntry{"neo-bert", create_neo_bert},
    ArchitectureEntry{"nomic-bert", create_nomic_bert},
    ArchitectureEntry{"nomic-bert-moe", create_nomic_bert_moe},
    ArchitectureEntry{"olmo", create_olmo},
    ArchitectureEntry{"olmo2", create_olmo2},
    ArchitectureEntry{"olmoe", create_olmoe},
    ArchitectureEntry{"openelm", create_openelm},
    ArchitectureEntry{"orion", create_orion},
    ArchitectureEntry{"pangu-embedded", create_qwen2},
    ArchitectureEntry{"phi2", create_phi2},
    ArchitectureEntry{"phi3", create_phi3},
    ArchitectureEntry{"phimoe", create_phimoe},
    ArchitectureEntry{"plamo2", create_plamo2},
    ArchitectureEntry{"plamo3", create_plamo3},
    ArchitectureEntry{"qwen", create_qwen},
    ArchitectureEntry{"qwen2", create_qwen2},
    ArchitectureEntry{"qwen2moe", create_qwen2moe},
    ArchitectureEntry{"qwen3", create_qwen3},
    ArchitectureEntry{"qwen35", create_qwen35},
    ArchitectureEntry{"qwen35moe", create_qwen35},
    ArchitectureEntry{"qwen3moe", create_qwen3moe},
    ArchitectureEntry{"qwen3next", create_qwen3next},
    ArchitectureEntry{"qwen3vl", create_qwen3vl},
    ArchitectureEntry{"qwen3vlmoe", create_qwen3moe},
    ArchitectureEntry{"refact", create_refact},
    ArchitectureEntry{"rwkv6", create_rwkv6},
    ArchitectureEntry{"rwkv7", create_rwkv7},
    ArchitectureEntry{"seed_oss", create_seed_oss},
    ArchitectureEntry{"smollm3", create_smollm3},
    ArchitectureEntry{"stablelm", create_stablelm},
    ArchitectureEntry{"starcoder", create_gpt2},
    ArchitectureEntry{"starcoder2", create_starcoder2},
    ArchitectureEntry{"step35", create_step35},
    ArchitectureEntry{"xverse", create_llama},
};

}  // namespace

std::span<const ArchitectureEntry> all_architectures() { return kArchitectures; }

std::unique_ptr<Architecture> create_architecture(std::string_view name) {
  std::string known;
  for (const ArchitectureEntry& entry : kArchitectures) {
    if (entry.name == name) return entry.create();
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(ErrorCode::kUnsupported, expected_found("model", "general.architecture", "one of " + known,
                                                      concat('"', printable(name, 60), '"')));
}

std::vector<CacheGroup> Architecture::cache_groups(const ModelConfig& config) const {
  std::vector<CacheGroup> groups;
  CacheGroup states{.kind = CacheKind::kState};
  for (int i = 0; i < config.n_layer; ++i) {
    const int window = config.causal ? config.layers[i].window : 0;  // an encoder's step has the whole text
    if (config.layers[i].state_values > 0) states.layers.push_back(i);
    if (config.layers[i].n_kv_head == 0 || config.layers[i].cache_layer >= 0) continue;
    auto at = std::find_if(groups.begin(), groups.end(), [&](const CacheGroup& g) { return g.window == window; });
    if (at == groups.end()) {
      at = groups.insert(groups.end(), CacheGroup{});
      at->kind = config.latent.cached ? CacheKind::kLatent : window > 0 ? CacheKind::kWindow : CacheKind::kFull;
      at->window = window;
    }
    at->layers.push_back(i);
  }
  if (!states.layers.empty()) groups.push_back(std::move(states));
  return groups;
}

}  // namespace infer
