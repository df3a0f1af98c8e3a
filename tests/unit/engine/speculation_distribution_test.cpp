// With drafts, tokens are distributed as the sampling chain says: chi-squared tests against probabilities that are
// computed here from the logits, without the sampler. INFER_TEST_FULL=1 takes 20,000 answers per chain and kind of
// drafts, otherwise 3,000.
#include <random>

#include "src/model/model.h"
#include "tests/unit/engine/speculation_world.h"

namespace infer {
namespace {

using namespace infer::test;

constexpr int kTokens = 4, kPrompt = 65;  // two full blocks of the prompt are shared
constexpr const char* kModelFile = INFER_SOURCE_DIR "/tests/data/arch/llama-gqa.gguf";

// The same model with its matrices in Q4_0 where their rows are whole blocks. It often disagrees.
std::shared_ptr<Model> coarse_model() {
  const std::shared_ptr<const GgufFile> file = GgufFile::open(kModelFile);
  const auto coarse = [](const GgufTensor& t) { return t.shape.size() > 1 && t.shape.back() % 32 == 0; };
  std::vector<GgufWriter::TensorInfo> tensors;
  for (const GgufTensor& t : file->tensors()) {
    REQUIRE(t.type == DataType::kF32);
    tensors.push_back({t.name, coarse(t) ? DataType::kQ4_0 : t.type, t.shape});
  }
  const auto path = std::filesystem::temp_directory_path() / ("infer_coarse_" + std::to_string(getpid()) + ".gguf");
  GgufWriter writer(path, file->metadata(), tensors);
  for (const GgufTensor& t : file->tensors()) {
    if (!coarse(t)) {
      writer.write({t.data, t.n_bytes});
      continue;
    }
    std::vector<std::byte> blocks(row_bytes(DataType::kQ4_0, t.n_elements()));
    traits(DataType::kQ4_0).from_float(reinterpret_cast<const float*>(t.data), blocks.data(), t.n_elements());
    writer.write(blocks);
  }
  writer.finish();
  std::shared_ptr<Model> model = load_model(GgufFile::open(path));
  std::filesystem::remove(path);  // the mapping stays
  return model;
}

struct Weighted {
  TokenId token;
  double logit, p;
};

void normalize(std::vector<Weighted>& list, double temperature) {
  double sum = 0;
  for (Weighted& w : list) sum += w.p = std::exp((w.logit - list[0].logit) / temperature);
  for (Weighted& w : list) w.p /= sum;
}

// Keeps the shortest beginning of the list whose probabilities add up to p.
void keep_front(std::vector<Weighted>& list, double p) {
  normalize(list, 1);
  double sum = 0;
  size_t n = 0;
  while (n < list.size() && sum < p) sum += list[n++].p;
  list.resize(n);
}

// The distribution of the next token, most probable first: the chain's definition, by sorting.
std::vector<Weighted> distribution(const SamplingParams& p, std::span<const float> logits,
                                   std::span<const TokenId> history) {
  std::vector<Weighted> list;
  const size_t window = p.repeat_last_n < 0 ? history.size() : static_cast<size_t>(p.repeat_last_n);
  const auto recent = history.last(std::min(window, history.size()));
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    float x = logits[i];
    for (const auto& [biased, bias] : p.logit_bias) {
      if (biased == token) x += bias;
    }
    if (const auto n = std::count(recent.begin(), recent.end(), token); n > 0) {
      x = x > 0 ? x / p.repeat_penalty : x * p.repeat_penalty;
      x -= static_cast<float>(n) * p.frequency_penalty + p.presence_penalty;
    }
    list.push_back({token, x, 0});
  }
  std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.logit > b.logit; });
  if (p.top_k > 0) list.resize(std::min(list.size(), static_cast<size_t>(p.top_k)));
  if (p.top_p < 1) keep_front(list, p.top_p);
  normalize(list, 1);
  std::erase_if(list, [&](const Weighted& w) { return w.p < p.min_p * list[0].p; });
  normalize(list, p.temperature);
  return list;
}

// Where a sampled token lies in its distribution, uniform in [0, 1): a random place in the token's interval of the
// probabilities cumulated by token id. If the tokens have exactly these probabilities, whatever came before, then the
// places in an answer are independent and uniform, for every chain and every history.
double place(const std::vector<Weighted>& distribution, TokenId token, double random) {
  double before = 0, own = 0;
  for (const Weighted& w : distribution) {
    if (w.token < token) before += w.p;
    if (w.token == token) own = w.p;
  }
  if (own == 0) FAIL("token " << token << " has the probability 0");
  return before + random * own;
}

using Places = std::vector<std::array<double, kTokens>>;  // [answers][tokens]

Places sample_places(const SamplingParams& sampling, Drafts drafts) {
  EngineOptions options = options_with(drafts, 2, 32);
  options.context = 128;
  options.cache_tokens = 0;
  if (options.speculation.draft) options.speculation.draft = coarse_model();
  Engine engine(load_model(GgufFile::open(kModelFile)), options);
  std::map<std::pair<RequestId, int64_t>, std::vector<float>> rows;  // of the last step
  engine.on_logits([&](RequestId id, int64_t position, std::span<const float> row) {
    rows[{id, position}].assign(row.begin(), row.end());
  });
  Request request = make_request(0, kPrompt, kTokens);
  for (TokenId& token : request.prompt) token = 3 + token % 300;
  request.report_logits = true;
  request.sampling = sampling;
  const RequestId n_answers = full() ? 20000 : 2000;
  Places places(n_answers);
  std::map<RequestId, std::vector<TokenId>> texts;
  std::mt19937_64 random(11);
  int n_steps = 0;
  for (RequestId next = 0; next < n_answers || !engine.idle(); ++n_steps) {
    REQUIRE(n_steps < static_cast<int>(n_answers));
    for (; next < n_answers && engine.scheduler().waiting().size() < 32; ++next) {
      request.id = next;
      request.sampling.seed = next;
      texts[next] = request.prompt;
      REQUIRE(engine.submit(request));
    }
    rows.clear();
    for (const Progress& p : engine.step()) {
      std::vector<TokenId>& text = texts[p.id];
      for (const TokenId token : p.tokens) {
        const std::vector<float>& row = rows.at({p.id, std::ssize(text) - 1});
        const double u = static_cast<double>(random() >> 11) * 0x1p-53;
        places[p.id][text.size() - kPrompt] = place(distribution(sampling, row, text), token, u);
        text.push_back(token);
      }
      if (p.finished != FinishReason::kNone) texts.erase(p.id);
    }
  }
  const SchedulerStats& stats = engine.scheduler().stats();
  CHECK(stats.drafts.proposed > static_cast<int64_t>(n_answers));
  CHECK(stats.drafts.accepted > static_cast<int64_t>(n_answers) / 20);
  CHECK(stats.drafts.accepted < stats.drafts.proposed);
  return places;
}

constexpr int kSide = 8;                   // bins per axis
constexpr double kMostChiSquared = 113.5;  // 63 degrees of freedom, significance 1e-4

// Two neighbouring tokens of each answer, in 8 by 8 bins of their places: uniform and independent, so all bins expect a
// 64th of the answers. The bins are intervals of probability that pool as many improbable tokens as fill them, so none
// is rare.
double chi_squared(const Places& places, int first) {
  std::array<int, kSide * kSide> counts{};
  const auto bin = [](double place) { return std::min(static_cast<int>(place * kSide), kSide - 1); };
  for (const auto& answer : places) ++counts[bin(answer[first]) * kSide + bin(answer[first + 1])];
  const double expected = static_cast<double>(places.size()) / (kSide * kSide);
  double sum = 0;
  for (const int n : counts) sum += (n - expected) * (n - expected) / expected;
  return sum;
}

void check_distribution(const SamplingParams& sampling) {
  for (const Drafts drafts : {Drafts::kModel, Drafts::kLookup}) {
    CAPTURE(name_of(drafts));
    const Places places = sample_places(sampling, drafts);
    for (int first = 0; first + 1 < kTokens; ++first) {
      CAPTURE(first);
      CHECK(chi_squared(places, first) < kMostChiSquared);
    }
  }
}

SamplingParams plain_chain() {
  SamplingParams p;
  p.temperature = 1, p.top_k = 0, p.top_p = 1, p.min_p = 0;
  return p;
}

TEST_CASE("with drafts, tokens have the probabilities of the softmax at temperature 1") {
  check_distribution(plain_chain());
}

// Chains that choose from the same few tokens at every position, of nearly equal probability: noise that is not each
// position's own then shows in neighbouring tokens.
SamplingParams few_tokens_chain() {
  SamplingParams p = plain_chain();
  for (TokenId token = 10; token < 18; ++token) p.logit_bias.emplace_back(token, 20.0f);
  p.temperature = 4;
  return p;
}

TEST_CASE("with drafts, tokens have the probabilities of top-k, top-p and temperature") {
  SamplingParams p = few_tokens_chain();
  p.top_k = 7, p.top_p = 0.98f;
  check_distribution(p);
}

TEST_CASE("with drafts, tokens have the probabilities of min-p, penalties and temperature") {
  SamplingParams p = few_tokens_chain();
  p.min_p = 0.01f, p.repeat_penalty = 1.02f, p.presence_penalty = 0.2f, p.frequency_penalty = 0.1f,
  p.repeat_last_n = 48;
  check_distribution(p);
}

}  // namespace
}  // namespace infer
