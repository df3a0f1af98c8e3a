// The list of architectures: each has a row here, sorted by name. Those that compute the same share a class.
#include <algorithm>
#include <array>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/model/arch/architecture.h"
#include "src/model/similar_words.h"

namespace infer {

// Defined in the file of the same name in this folder.
std::unique_ptr<Architecture> create_afmoe();
std::unique_ptr<Architecture> create_apertus();
std::unique_ptr<Architecture> create_arcee();
std::unique_ptr<Architecture> create_baichuan();
std::unique_ptr<Architecture> create_bailingmoe2();
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
std::unique_ptr<Architecture> create_deepseek32();
std::unique_ptr<Architecture> create_deepseek4();
std::unique_ptr<Architecture> create_dots1();
std::unique_ptr<Architecture> create_hy_v3();
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
std::unique_ptr<Architecture> create_glm_dsa();
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
std::unique_ptr<Architecture> create_minimax_m3();
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
std::unique_ptr<Architecture> create_qwen4exp();
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
    ArchitectureEntry{"afmoe", "Arcee Trinity", create_afmoe},
    ArchitectureEntry{"apertus", "Apertus", create_apertus},
    ArchitectureEntry{"arcee", "Arcee AFM", create_arcee},
    ArchitectureEntry{"baichuan", "Baichuan 1 and 2", create_baichuan},
    ArchitectureEntry{"bailingmoe2", "Ling 2, Ring 2", create_bailingmoe2},
    ArchitectureEntry{"bailingmoe3", "Ling 3", create_bailingmoe3},
    ArchitectureEntry{"bert", "BERT, BGE, E5, all-MiniLM, Arctic Embed", create_bert},
    ArchitectureEntry{"bitnet", "BitNet b1.58", create_bitnet},
    ArchitectureEntry{"bloom", "BLOOM", create_bloom},
    ArchitectureEntry{"chatglm", "ChatGLM 3, GLM-4 9B", create_chatglm},
    ArchitectureEntry{"codeshell", "CodeShell", create_codeshell},
    ArchitectureEntry{"cohere2", "Command R7B, Command A, Aya", create_cohere2},
    ArchitectureEntry{"cohere2moe", "Cohere's mixtures of experts", create_cohere2moe},
    ArchitectureEntry{"command-r", "Command R, Command R+, Aya Expanse", create_command_r},
    ArchitectureEntry{"dbrx", "DBRX", create_dbrx},
    ArchitectureEntry{"deci", "Nemotron Super and Ultra (Llama), DeciLM", create_deci},
    ArchitectureEntry{"deepseek", "DeepSeek 1, DeepSeek MoE", create_deepseek},
    ArchitectureEntry{"deepseek2", "DeepSeek 2, 2.5, 3, 3.1 and R1, Kimi K2, GLM-4.7-Flash", create_deepseek2},
    ArchitectureEntry{"deepseek32", "DeepSeek 3.2", create_deepseek32},
    ArchitectureEntry{"deepseek4", "DeepSeek 4", create_deepseek4},
    ArchitectureEntry{"dots1", "dots.llm1", create_dots1},
    ArchitectureEntry{"ernie4_5", "ERNIE 4.5 (dense)", create_llama},
    ArchitectureEntry{"ernie4_5-moe", "ERNIE 4.5 (mixture of experts)", create_llama},
    ArchitectureEntry{"eurobert", "EuroBERT", create_eurobert},
    ArchitectureEntry{"exaone", "EXAONE 3 and 3.5", create_qwen2},
    ArchitectureEntry{"exaone-moe", "K-EXAONE", create_exaone_moe},
    ArchitectureEntry{"exaone4", "EXAONE 4", create_exaone4},
    ArchitectureEntry{"falcon", "Falcon 7B and 40B", create_falcon},
    ArchitectureEntry{"falcon-h1", "Falcon-H1", create_falcon_h1},
    ArchitectureEntry{"gemma", "Gemma 1", create_gemma},
    ArchitectureEntry{"gemma-embedding", "EmbeddingGemma", create_gemma_embedding},
    ArchitectureEntry{"gemma2", "Gemma 2", create_gemma2},
    ArchitectureEntry{"gemma3", "Gemma 3", create_gemma3},
    ArchitectureEntry{"gemma3n", "Gemma 3n", create_gemma3n},
    ArchitectureEntry{"gemma4", "Gemma 4", create_gemma4},
    ArchitectureEntry{"glm-dsa", "GLM-5, 5.1 and 5.2", create_glm_dsa},
    ArchitectureEntry{"glm4", "GLM-4 0414, GLM-Z1", create_glm4},
    ArchitectureEntry{"glm4moe", "GLM-4.5, 4.6 and 4.7, and Air", create_glm4moe},
    ArchitectureEntry{"gpt-oss", "gpt-oss 20B and 120B", create_gpt_oss},
    ArchitectureEntry{"gpt2", "GPT-2", create_gpt2},
    ArchitectureEntry{"gptneox", "GPT-NeoX, Pythia, Dolly", create_gptneox},
    ArchitectureEntry{"granite", "Granite 3, Granite 4 (dense)", create_granite},
    ArchitectureEntry{"granite_swa", "Granite with sliding windows", create_granite_swa},
    ArchitectureEntry{"granitehybrid", "Granite 4 (hybrid)", create_granitehybrid},
    ArchitectureEntry{"granitemoe", "Granite 3 (mixture of experts)", create_granite},
    ArchitectureEntry{"grok", "Grok 1 and 2", create_grok},
    ArchitectureEntry{"hunyuan-dense", "Hunyuan (dense)", create_hunyuan},
    ArchitectureEntry{"hunyuan-moe", "Hunyuan A13B", create_hunyuan},
    ArchitectureEntry{"hy_v3", "Hunyuan 3", create_hy_v3},
    ArchitectureEntry{"internlm2", "InternLM 2, 2.5 and 3", create_llama},
    ArchitectureEntry{"jamba", "Jamba", create_jamba},
    ArchitectureEntry{"jina-bert-v2", "Jina Embeddings 2", create_jina_bert_v2},
    ArchitectureEntry{"kimi-k3", "Kimi K3", create_kimi_k3},
    ArchitectureEntry{"kimi-linear", "Kimi Linear", create_kimi_linear},
    ArchitectureEntry{"laguna", "Laguna", create_laguna},
    ArchitectureEntry{"lfm2", "LFM2, LFM2.5", create_lfm2},
    ArchitectureEntry{"lfm2moe", "LFM2 (mixture of experts)", create_lfm2},
    ArchitectureEntry{"llama", "Llama 1 to 3, Mistral, Mixtral, TinyLlama, Yi, SmolLM 1 and 2, Hermes", create_llama},
    ArchitectureEntry{"llama4", "Llama 4", create_llama4},
    ArchitectureEntry{"maincoder", "Maincoder", create_maincoder},
    ArchitectureEntry{"mamba", "Mamba, FalconMamba", create_mamba},
    ArchitectureEntry{"mamba2", "Mamba-2, Codestral Mamba", create_mamba2},
    ArchitectureEntry{"mellum", "Mellum 2", create_mellum},
    ArchitectureEntry{"mimo2", "MiMo-V2", create_mimo2},
    ArchitectureEntry{"minicpm", "MiniCPM 1", create_minicpm},
    ArchitectureEntry{"minicpm3", "MiniCPM 3", create_minicpm3},
    ArchitectureEntry{"minimax-m2", "MiniMax M2", create_minimax_m2},
    ArchitectureEntry{"minimax-m3", "MiniMax M3", create_minimax_m3},
    ArchitectureEntry{"mistral3", "Ministral 3, Devstral 2", create_mistral3},
    ArchitectureEntry{"mistral4", "Mistral Small 4", create_mistral4},
    ArchitectureEntry{"modern-bert", "ModernBERT, Granite Embedding R2", create_modern_bert},
    ArchitectureEntry{"mpt", "MPT", create_mpt},
    ArchitectureEntry{"nanbeige", "Nanbeige", create_nanbeige},
    ArchitectureEntry{"nemotron", "Nemotron 3 8B, Minitron", create_nemotron},
    ArchitectureEntry{"nemotron_h", "Nemotron-H, Nemotron Nano 2", create_nemotron_h},
    ArchitectureEntry{"nemotron_h_moe", "Nemotron 3 Nano and Super", create_nemotron_h},
    ArchitectureEntry{"neo-bert", "NeoBERT", create_neo_bert},
    ArchitectureEntry{"nomic-bert", "Nomic Embed 1 and 1.5, Snowflake Arctic Embed M Long", create_nomic_bert},
    ArchitectureEntry{"nomic-bert-moe", "Nomic Embed 2", create_nomic_bert_moe},
    ArchitectureEntry{"olmo", "OLMo 1", create_olmo},
    ArchitectureEntry{"olmo2", "OLMo 2 and 3", create_olmo2},
    ArchitectureEntry{"olmoe", "OLMoE", create_olmoe},
    ArchitectureEntry{"openelm", "OpenELM", create_openelm},
    ArchitectureEntry{"orion", "Orion 14B", create_orion},
    ArchitectureEntry{"pangu-embedded", "openPangu Embedded", create_qwen2},
    ArchitectureEntry{"phi2", "Phi 1, 1.5 and 2", create_phi2},
    ArchitectureEntry{"phi3", "Phi 3, 3.5 and 4", create_phi3},
    ArchitectureEntry{"phimoe", "Phi 3.5 MoE", create_phimoe},
    ArchitectureEntry{"plamo2", "PLaMo 2", create_plamo2},
    ArchitectureEntry{"plamo3", "PLaMo 3", create_plamo3},
    ArchitectureEntry{"qwen", "Qwen 1", create_qwen},
    ArchitectureEntry{"qwen2", "Qwen 1.5, 2 and 2.5, QwQ, DeepSeek R1 distilled", create_qwen2},
    ArchitectureEntry{"qwen2moe", "Qwen 1.5 MoE, Qwen 2 57B-A14B", create_qwen2moe},
    ArchitectureEntry{"qwen3", "Qwen 3 (dense), Qwen 3 Embedding and Reranker", create_qwen3},
    ArchitectureEntry{"qwen35", "Qwen 3.5 (dense)", create_qwen35},
    ArchitectureEntry{"qwen35moe", "Qwen 3.5 (mixture of experts)", create_qwen35},
    ArchitectureEntry{"qwen3moe", "Qwen 3 30B-A3B and 235B-A22B, Qwen 3 Coder", create_qwen3moe},
    ArchitectureEntry{"qwen3next", "Qwen 3 Next", create_qwen3next},
    ArchitectureEntry{"qwen3vl", "Qwen 3 VL, text only", create_qwen3vl},
    ArchitectureEntry{"qwen3vlmoe", "Qwen 3 VL (mixture of experts), text only", create_qwen3moe},
    ArchitectureEntry{"qwen4exp", "Qwen 4 (experimental)", create_qwen4exp},
    ArchitectureEntry{"refact", "Refact 1.6B", create_refact},
    ArchitectureEntry{"rwkv6", "RWKV 6", create_rwkv6},
    ArchitectureEntry{"rwkv7", "RWKV 7", create_rwkv7},
    ArchitectureEntry{"seed_oss", "Seed-OSS", create_seed_oss},
    ArchitectureEntry{"smollm3", "SmolLM 3", create_smollm3},
    ArchitectureEntry{"stablelm", "StableLM", create_stablelm},
    ArchitectureEntry{"starcoder", "StarCoder 1", create_gpt2},
    ArchitectureEntry{"starcoder2", "StarCoder 2", create_starcoder2},
    ArchitectureEntry{"step35", "Step 3.5 Flash", create_step35},
    ArchitectureEntry{"xverse", "XVERSE", create_llama},
};

}  // namespace

std::span<const ArchitectureEntry> all_architectures() { return kArchitectures; }

std::unique_ptr<Architecture> create_architecture(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ArchitectureEntry& entry : kArchitectures) {
    if (entry.name == name) return entry.create();
    known.push_back(entry.name);
  }
  std::string similar;
  for (const std::string_view other : similar_words(name, known)) similar += concat(similar.empty() ? "" : ", ", other);
  if (!similar.empty()) similar = concat("similar: ", similar, "; ");
  throw Error(ErrorCode::kUnsupported,
              concat("[model] general.architecture: \"", printable(name, 60), "\" is not implemented (", similar,
                     "all names: infer inspect --architectures)"));
}

std::vector<CacheGroup> Architecture::cache_groups(const ModelConfig& config) const {
  std::vector<CacheGroup> groups;
  CacheGroup states;
  states.kind = CacheKind::kState;
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
