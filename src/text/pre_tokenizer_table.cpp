// The pre-tokenizer patterns by `tokenizer.ggml.pre`. The names are llama.cpp's; the patterns are those of the models'
// own tokenizer.json, with case-insensitive contractions spelled out. Where a pattern would rescan a long run from each
// of its characters, a look-behind or possessive quantifier that changes no match keeps the work linear.
#include "src/text/pre_tokenizer.h"

namespace infer {
namespace {

#define CONTRACTION R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))"
#define TAIL_SPACES R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
// Words of uppercase followed by lowercase letters, so "CamelCase" is two words.
#define CASED_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define CASED_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define CASED_WORD(suffix)                                                                                            \
  R"([^\r\n\p{L}\p{N}]?)" CASED_UPPER "*" CASED_LOWER "+" suffix R"(|[^\r\n\p{L}\p{N}]?)" CASED_UPPER "+" CASED_LOWER \
  "*" suffix

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL_SPACES;
constexpr const char* kQwen2 = CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL_SPACES;
constexpr const char* kPunctuationLed =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" TAIL_SPACES;
constexpr const char* kCjk = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kIdeographs = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char* kLines = R"([^\n]+|\n+)";
constexpr const char* kPoro = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
constexpr const char* kCasedWords =
    CASED_WORD("(?:" CONTRACTION ")?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" TAIL_SPACES;

const PreTokenizerRule kDefaultRule{{{R"([\p{P}$+<=>^~|]+)"}, {kGpt2}, {R"(\p{N}+)"}, {"[0-9][0-9][0-9]"}}};
const PreTokenizerRule kGpt2Rule{{{kGpt2}}};
const PreTokenizerRule kDigitGpt2Rule{{{R"(\p{N})"}, {kGpt2}}};
const PreTokenizerRule kLlama3Rule{{{kLlama3}}};
const PreTokenizerRule kQwen2Rule{{{kQwen2}}};
const PreTokenizerRule kFalconRule{{{R"([\p{P}$+<=>^~|`]+)"}, {kGpt2}, {"[0-9][0-9][0-9]"}}};
const PreTokenizerRule kJais2Rule{
    {{CONTRACTION
      R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|(?<!(?![\r\n])\s)\s*[\r\n]+)"
      R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S))"
      R"(|\s{1,2}(?!\S)|\s{1})"}}};
const PreTokenizerRule kDeepseekLlmRule{{
    {R"([\r\n])"},
    {R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
     R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5})"
     R"(\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD})"
     R"(\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"
     R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
     R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})"
     R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"
     R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})"
     R"(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
     R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06})"
     R"(\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
     R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)"},
    {R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)"},
    {R"((?<!\s)\s++\z)"},
    {kIdeographs},
    {R"(\p{N}+)"},
}};
const PreTokenizerRule kDeepseekCoderRule{
    {{R"([\r\n])"}, {R"(\s?\p{L}+)"}, {R"(\s?\p{P}+)"}, {kIdeographs}, {R"(\p{N})"}}};
const PreTokenizerRule kDeepseek3Rule{{{R"(\p{N}{1,3})"}, {kCjk}, {kPunctuationLed}}};
const PreTokenizerRule kSparkRule{{
    {R"(\p{N}{1,3})"},
    {kCjk},
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n])"
     R"(|\s+(?!\S)|\s+)"},
    {R"(\p{N})"},
}};
const PreTokenizerRule kYoutuRule{{
    {R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B})"
     R"(\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+)"
     R"(|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)"},
    {CASED_WORD("(?:" CONTRACTION ")?") R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" TAIL_SPACES},
}};
const PreTokenizerRule kQwen35Rule{
    {{CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" TAIL_SPACES}}};
const PreTokenizerRule kPoroRule{{{kPoro}}};
const PreTokenizerRule kVikingRule{{{kPoro}, {R"(\p{N})"}}};
const PreTokenizerRule kTekkenRule{{{CASED_WORD("") R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" TAIL_SPACES}}};
const PreTokenizerRule kChameleonRule{{
    {"<sentinel:[0-9]+>"},
    {"IMGIMG[A-I]{1,4}Z"},
    {R"([\t\n]|    |  )"},
    {R"(\p{N})"},
    {R"([\p{P}!-/:-@\[-`{-~])"},
    {kGpt2},
}};
const PreTokenizerRule kGpt4oRule{{{kCasedWords}}};
// Groups digits in threes from the right, unless the number begins a longer word.
const PreTokenizerRule kTinyAyaRule{
    {{R"((?<!\p{Nd})\p{Nd}++(?![\p{L}\p{M}\p{N}\p{Pc}]))", PreTokenizerStep::Kind::kDigitGroups}, {kCasedWords}}};
// The letter classes without Han are written as negated classes: PCRE2 has no set difference.
#define KIMI_UPPER R"([^\p{Han}\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}])"
#define KIMI_LOWER R"([^\p{Han}\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}])"
const PreTokenizerRule kKimiK2Rule{{{R"(\p{Han}+|[^\r\n\p{L}\p{N}]?)" KIMI_UPPER "*" KIMI_LOWER "+(?:" CONTRACTION
                                     R"()?|[^\r\n\p{L}\p{N}]?)" KIMI_UPPER "+" KIMI_LOWER "*(?:" CONTRACTION
                                     R"()?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL_SPACES}}};
const PreTokenizerRule kSuperBpeRule{{{R"(\p{N}+)"}, {R"(\p{Nd}+)", PreTokenizerStep::Kind::kDigitGroups}}};
const PreTokenizerRule kBailingRule{
    {{CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}}};
const PreTokenizerRule kSeedCoderRule{
    {{CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)" TAIL_SPACES}}};
// Qwen2 without contractions: Turkish suffixes follow an apostrophe.
const PreTokenizerRule kUfakzekaRule{{{R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL_SPACES}}};
const PreTokenizerRule kAfmoeRule{{
    {R"(\p{N}+)", PreTokenizerStep::Kind::kDigitGroups},
    {R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F})"
     R"(\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})"
     R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)"},
    {kPunctuationLed},
}};
const PreTokenizerRule kLagunaRule{{{kLines}, {kQwen2}}};
const PreTokenizerRule kExaoneMoeRule{
    {{CONTRACTION R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?)"
                  R"(|\s*[\r\n]|\s+(?!\S)|\s+)"}}};
const PreTokenizerRule kK2HorizonRule{
    {{CONTRACTION
      R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}\x{200C}\x{200D}]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL_SPACES}}};
const PreTokenizerRule kGemma4Rule{{{kLines}}, false, true};
const PreTokenizerRule kSarvamRule{{{kLines}}, false, false};
const PreTokenizerRule kMiniCpm5Rule{{
    {R"(\p{N}{1,3})"},
    {CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*)" TAIL_SPACES},
}};
const PreTokenizerRule kWhitespaceRule{{{R"(\S+)"}}, false, false};

const PreTokenizerEntry kTable[] = {
    {"default", &kDefaultRule},
    {"llama3", &kLlama3Rule, kIgnoreMerges | kAddBos},
    {"llama-v3", &kLlama3Rule, kIgnoreMerges | kAddBos},
    {"llama-bpe", &kLlama3Rule, kIgnoreMerges | kAddBos},
    {"falcon3", &kLlama3Rule, kIgnoreMerges | kAddBos},
    {"falcon-h1", &kLlama3Rule, kIgnoreMerges | kAddBos},
    {"pixtral", &kLlama3Rule, kIgnoreMerges | kAddBos},
    {"midm-2.0", &kLlama3Rule, kIgnoreMerges | kAddBos},
    {"lfm2", &kLlama3Rule, kIgnoreMerges | kAddBos},
    {"jina-v5-nano", &kLlama3Rule, kIgnoreMerges | kAddBos},
    {"dbrx", &kLlama3Rule},
    {"smaug-bpe", &kLlama3Rule},
    {"glm4", &kLlama3Rule, kNoDefaultBos},
    {"chatglm-bpe", &kLlama3Rule, kNoDefaultBos},
    {"minicpm5", &kMiniCpm5Rule, kIgnoreMerges},
    {"jais-2", &kJais2Rule},
    {"deepseek-llm", &kDeepseekLlmRule, kKeepSpaces},
    {"deepseek-coder", &kDeepseekCoderRule, kKeepSpaces},
    {"deepseek-v3", &kDeepseek3Rule, kKeepSpaces},
    {"hunyuan-dense", &kDeepseek3Rule, kKeepSpaces},
    {"joyai-llm", &kDeepseek3Rule, kKeepSpaces},
    {"hy_v4", &kDeepseek3Rule, kKeepSpaces},
    {"spark2_5", &kSparkRule, kKeepSpaces},
    {"youtu", &kYoutuRule, kIgnoreMerges | kKeepSpaces},
    {"falcon", &kFalconRule},
    {"starcoder", &kDigitGpt2Rule},
    {"refact", &kDigitGpt2Rule},
    {"command-r", &kDigitGpt2Rule, kKeepSpaces},
    {"smollm", &kDigitGpt2Rule, kKeepSpaces},
    {"codeshell", &kDigitGpt2Rule},
    {"exaone", &kDigitGpt2Rule},
    {"minerva-7b", &kDigitGpt2Rule},
    {"mellum2", &kDigitGpt2Rule},
    {"gpt-2", &kGpt2Rule},
    {"phi-2", &kGpt2Rule},
    {"jina-es", &kGpt2Rule},
    {"jina-de", &kGpt2Rule},
    {"jina-v2-es", &kGpt2Rule},
    {"jina-v2-de", &kGpt2Rule},
    {"jina-v1-en", &kGpt2Rule, kAddSep},
    {"jina-v2-code", &kGpt2Rule, kAddSep},
    {"roberta-bpe", &kGpt2Rule, kAddSep},
    {"gigachat", &kGpt2Rule},
    {"a.x-4.0", &kGpt2Rule},
    {"mellum", &kGpt2Rule},
    {"modern-bert", &kGpt2Rule},
    {"exaone4", &kGpt2Rule},
    {"mpt", &kGpt2Rule},
    {"olmo", &kGpt2Rule},
    {"jais", &kGpt2Rule},
    {"trillion", &kGpt2Rule, kKeepSpaces},
    {"granite-docling", &kGpt2Rule, kKeepSpaces},
    {"stablelm2", &kQwen2Rule},
    {"qwen2", &kQwen2Rule, kKeepSpaces},
    {"deepseek-r1-qwen", &kQwen2Rule, kKeepSpaces},
    {"kormo", &kQwen2Rule, kKeepSpaces},
    {"f2llmv2", &kQwen2Rule, kKeepSpaces},
    {"megrez", &kQwen2Rule},
    {"hunyuan", &kQwen2Rule, kKeepSpaces},
    {"solar-open", &kQwen2Rule, kKeepSpaces},
    {"grok-2", &kQwen2Rule, kKeepSpaces},
    {"ufakzeka", &kUfakzekaRule, kKeepSpaces},
    {"qwen35", &kQwen35Rule, kKeepSpaces},
    {"laguna", &kLagunaRule, kKeepSpaces},
    {"k2-horizon", &kK2HorizonRule, kKeepSpaces},
    {"poro-chat", &kPoroRule, kKeepSpaces},
    {"bloom", &kPoroRule},
    {"gpt3-finnish", &kPoroRule},
    {"viking", &kVikingRule, kKeepSpaces},
    {"tekken", &kTekkenRule, kIgnoreMerges | kAddBos | kKeepSpaces},
    {"chameleon", &kChameleonRule, kAddBos | kKeepSpaces},
    {"gpt-4o", &kGpt4oRule, kKeepSpaces},
    {"llama4", &kGpt4oRule, kKeepSpaces},
    {"kanana2", &kGpt4oRule, kKeepSpaces},
    {"talkie", &kGpt4oRule, kKeepSpaces},
    {"minimax-m2", &kGpt4oRule, kKeepSpaces},
    {"granite-embed-multi-97m", &kGpt4oRule, kIgnoreMerges | kKeepSpaces},
    {"tiny_aya", &kTinyAyaRule, kKeepSpaces},
    {"cohere2moe", &kTinyAyaRule, kKeepSpaces},
    {"kimi-k2", &kKimiK2Rule, kKeepSpaces},
    {"superbpe", &kSuperBpeRule, kKeepSpaces},
    {"bailingmoe", &kBailingRule, kKeepSpaces},
    {"bailingmoe2", &kBailingRule, kKeepSpaces},
    {"llada-moe", &kBailingRule, kKeepSpaces},
    {"seed-coder", &kSeedCoderRule, kKeepSpaces},
    {"afmoe", &kAfmoeRule, kKeepSpaces},
    {"exaone-moe", &kExaoneMoeRule},
    {"gemma4", &kGemma4Rule, kForceBos | kEscapeBlanks},
    {"granite-embed-multi-311m", &kGemma4Rule, kForceBos | kEscapeBlanks},
    {"sarvam-moe", &kSarvamRule, kKeepSpaces | kEscapeBlanks},
    {"whitespace", &kWhitespaceRule},
};

}  // namespace

std::span<const PreTokenizerEntry> pre_tokenizer_table() { return kTable; }

const PreTokenizerEntry* find_pre_tokenizer(std::string_view name) {
  if (name.empty()) name = "default";
  for (const PreTokenizerEntry& entry : kTable) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace infer
