// Many requests with drafts and few blocks, cancelled at any time: the remaining texts are right, and no blocks leak.
#include "tests/unit/engine/speculation_world.h"

namespace infer {
namespace {

using namespace infer::test;

class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t n) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return (state_ >> 33) % n;
  }

 private:
  uint64_t state_;
};

// Every sequence of the draft model mirrors one that the target still runs.
void check_mirrors(const Engine& engine) {
  const DraftModel* draft = engine.speculator()->draft();
  REQUIRE(draft);
  for (const auto list : {draft->scheduler().running(), draft->scheduler().waiting()}) {
    for (const Sequence* mirror : list) {
      const Sequence* s = engine.scheduler().find(mirror->id());
      REQUIRE(s);
      REQUIRE(s->state() != SequenceState::kFinished);
    }
  }
}

TEST_CASE("soak with drafts: cancelled or preempted at any time, requests give the right texts and leak no blocks") {
  const RequestId n_requests = full() ? 2000 : 150;
  std::vector<Request> requests = repeating_requests(16);
  const Results expected = plain_results(requests);  // with the longest answers
  for (const Drafts drafts : {Drafts::kModel, Drafts::kBoth}) {
    CAPTURE(name_of(drafts));
    EngineOptions options = options_with(drafts, 3, 6);
    options.cache_tokens = 256;
    Engine engine(open_model(kTarget), options);
    Recorder recorder(engine);
    std::map<RequestId, RequestId> origin;  // of each request and choice, the one in `expected`
    Chance chance(7);
    RequestId next = 1000;
    int n_steps = 0;
    for (RequestId n = 0; n < n_requests || !engine.idle(); ++n_steps) {
      REQUIRE(n_steps < 100 * static_cast<int>(n_requests));
      if (n < n_requests && chance.below(3) == 0) {
        Request request = requests[chance.below(requests.size())];
        origin[next] = request.id;
        request.id = next++;
        request.max_new_tokens = static_cast<int32_t>(1 + chance.below(40));
        if (chance.below(8) == 0) request.choices = {next, next + 1}, next += 2;
        recorder.submit(request);
        ++n;
      }
      if (chance.below(6) == 0) recorder.cancel(1000 + chance.below(next - 1000));
      recorder.step();
      check_mirrors(engine);
    }
    int n_whole = 0;
    for (const auto& [id, from] : origin) {
      const auto found = recorder.results.find(id);
      if (found == recorder.results.end()) continue;  // cancelled before it had a token
      const std::vector<TokenId>&text = found->second.tokens, &whole = expected.at(from).tokens;
      n_whole += found->second.finished == FinishReason::kMaxTokens;
      REQUIRE(text.size() <= whole.size());
      REQUIRE(std::equal(text.begin(), text.end(), whole.begin()));
    }
    CHECK(n_whole > static_cast<int>(n_requests) / 3);
    CHECK(n_whole < static_cast<int>(n_requests));
    CHECK(engine.scheduler().stats().preemptions > 0);
    CHECK(engine.scheduler().stats().drafts.accepted > 0);
    if (drafts == Drafts::kModel) CHECK(engine.speculator()->draft()->scheduler().stats().preemptions > 0);
    check_blocks_returned(engine);
  }
}

TEST_CASE("a preempted sequence leaves its blocks in the draft model to others") {
  EngineOptions options = options_with(Drafts::kModel, 3, 3);
  options.cache_tokens = 320;
  Engine engine(open_model(kTarget), options);
  Recorder recorder(engine);
  for (const RequestId id : {1, 2}) recorder.submit(make_request(id, 50, 150, static_cast<int>(id)));
  for (int i = 0; i < 5; ++i) recorder.step();
  Request urgent = make_request(3, 120, 70, 3);  // so the second is preempted
  urgent.priority = 10;
  recorder.submit(urgent);
  int n_steps = 0, n_drafted = 0;  // of the urgent request while the second waits
  for (int step = 0; !engine.idle(); ++step) {
    REQUIRE(step < 1000);
    recorder.step();
    const Sequence *second = engine.scheduler().find(2), *s = engine.scheduler().find(3);
    if (!second || !s || second->state() != SequenceState::kWaiting || s->remaining() > 1) continue;
    const Sequence* mirror = engine.speculator()->draft()->scheduler().find(3);
    ++n_steps;
    n_drafted += mirror && mirror->state() == SequenceState::kRunning;
  }
  CHECK(n_steps > 10);
  CHECK(n_drafted > n_steps / 2);
  check_blocks_returned(engine);
}

}  // namespace
}  // namespace infer
