// Sampling stages in an order that the user chose.
#include "src/text/sampler_chain.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/text/sampler.h"

using namespace infer;

namespace {

using Stage = SamplerStage;

SamplingParams with_chain(std::vector<Stage> chain) {
  SamplingParams p;
  p.seed = 1, p.top_k = 0, p.top_p = 1, p.min_p = 0, p.temperature = 1;
  p.chain = std::move(chain);
  return p;
}

// The tokens sampled at 2000 positions, with how often.
std::vector<int> counts(const SamplingParams& p, const std::vector<float>& logits,
                        const std::vector<TokenId>& last = {}) {
  Sampler sampler(p, logits.size());
  SamplerScratch scratch;
  std::vector<int> n(logits.size());
  for (size_t position = 0; position < 2000; ++position) {
    std::vector<TokenId> history(position, static_cast<TokenId>(logits.size()));  // in no candidate
    history.insert(history.end(), last.begin(), last.end());
    ++n[static_cast<size_t>(sampler.sample(logits, history, scratch))];
  }
  return n;
}

}  // namespace

TEST_CASE("sampler chain: names, letters and other spellings") {
  CHECK(stage_by_name("top_k") == Stage::kTopK);
  CHECK(stage_by_name("top-k") == Stage::kTopK);
  CHECK(stage_by_name("nucleus") == Stage::kTopP);
  CHECK(stage_by_name("typical-p") == Stage::kTypical);
  CHECK(stage_by_name("temp") == Stage::kTemperature);
  for (const char* wrong : {"", "top", "k", "infill", "typ typical", " "}) CHECK(!stage_by_name(wrong));
  CHECK(stage_names(";") == "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature");
  CHECK(stage_letters() == "edskypmxt");
  CHECK(stage_by_letter('m') == Stage::kMinP);
  CHECK(!stage_by_letter('z'));
}

TEST_CASE("sampler chain: stages left out are off, and only another order is kept") {
  SamplingParams p = with_chain({Stage::kTopK, Stage::kTemperature});
  p.top_k = 3, p.min_p = 0.5f, p.temperature = 2, p.repeat_penalty = 2;
  SamplingParams off = with_stages_off(p);
  CHECK(!off.chain);
  CHECK(off.top_k == 3);
  CHECK(off.temperature == 2);
  CHECK(off.min_p == 0);
  CHECK(!off.has_penalties());
  p.chain = {{Stage::kTemperature, Stage::kTopK}};
  CHECK(with_stages_off(p).chain == p.chain);
  p.chain = {{Stage::kTopK, Stage::kTopK}};
  CHECK(with_stages_off(p).chain == p.chain);
  p.chain = std::vector<Stage>{};
  off = with_stages_off(p);
  CHECK(!off.chain);
  CHECK(off.temperature == 1);
}

TEST_CASE("sampler chain: temperature before min-p flattens what min-p sees") {
  const std::vector<float> logits = {2, 1, 0, -1};
  SamplingParams p = with_chain({Stage::kMinP, Stage::kTemperature});
  p.min_p = 0.5f, p.temperature = 1000;
  std::vector<int> n = counts(p, logits);
  CHECK(n[0] == 2000);  // exp(-1) < 0.5: only the best is kept
  p.chain = {{Stage::kTemperature, Stage::kMinP}};
  n = counts(p, logits);
  for (const int times : n) CHECK(times > 350);  // all are kept, and about equally probable
}

TEST_CASE("sampler chain: the order equals the default where stages do not depend on each other") {
  const std::vector<float> logits = {0.3f, 2, 1.5f, -1, 0, 1.9f};
  SamplingParams p = with_chain({Stage::kTopP, Stage::kTopK});
  p.top_k = 3, p.top_p = 0.999f;
  SamplingParams usual = p;
  usual.chain.reset();
  CHECK(counts(p, logits) == counts(usual, logits));
}

TEST_CASE("sampler chain: penalties after top-k demote only what is left") {
  const std::vector<float> logits = {3, 2.9f, 2};
  SamplingParams p = with_chain({Stage::kTopK, Stage::kPenalties});
  p.top_k = 2, p.presence_penalty = 100, p.repeat_last_n = 2;
  std::vector<int> n = counts(p, logits, {0, 1});
  CHECK(n[0] + n[1] == 2000);  // both are penalized, but the third was gone
  p.chain = {{Stage::kPenalties, Stage::kTopK}};
  n = counts(p, logits, {0, 1});
  CHECK(n[2] == 2000);
}

TEST_CASE("sampler chain: a temperature of 0 keeps the best of what is left") {
  const std::vector<float> logits = {1, 5, 4};
  SamplingParams p = with_chain({Stage::kTemperature, Stage::kTopK});
  p.temperature = 0;
  CHECK(counts(p, logits)[1] == 2000);
  Sampler sampler(p, logits.size());
  CHECK(sampler.n_deciding() == 0);
}
