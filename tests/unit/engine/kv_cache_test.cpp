// The guarantees of each kind of cache group, on small hand-made cases.
#include "src/engine/kv_cache.h"

#include <doctest/doctest.h>

#include "src/engine/kv_cache_size.h"
#include "tests/unit/engine/scheduler_world.h"

using namespace infer;
using namespace infer::test;

namespace {

World world_of(std::vector<CacheGroup> groups) { return World(std::move(groups), small_config()); }

void check_text(World& w, RequestId id, const std::vector<TokenId>& prompt, int32_t max_new) {
  const auto expected = w.model.expected(prompt, max_new, true, 512, id);
  const auto found = w.sequence(id).known_tokens();
  CHECK(std::equal(expected.begin(), expected.end(), found.begin(), found.end()));
}

int64_t cached_tokens(World& w, RequestId id, const std::vector<TokenId>& prompt) {
  w.add(request(id, prompt, 1));
  w.drain();
  return w.sequence(id).cached_prompt_tokens();
}

}  // namespace

TEST_CASE("blocks_behind_the_window_are_released_and_those_in_it_are_not") {
  World w = world_of({full_group(40), window_group(20, 40)});
  w.add(request(1, text(150), 100));
  while (!w.scheduler.idle()) {
    w.step();
    if (w.scheduler.idle()) break;
    const auto table = w.sequence(1).cache().table(1);
    const int64_t first_seen = std::max<int64_t>(0, w.sequence(1).computed() - 39) / kBlockTokens;
    for (int64_t i = 0; i < static_cast<int64_t>(table.size()); ++i) CHECK((table[i] == kNoBlock) == (i < first_seen));
    CHECK(w.scheduler.cache().pool(1).stats().used <= 3);
  }
  check_text(w, 1, text(150), 100);
}

TEST_CASE("a_prefix_hit_needs_only_the_blocks_in_the_window") {
  World w = world_of({full_group(40), window_group(20, 40)});
  w.add(request(1, text(200), 1));
  w.drain();
  w.add(request(2, text(200), 5));
  const StepPlan plan = w.scheduler.schedule();
  CHECK(w.sequence(2).cached_prompt_tokens() == 192);
  const auto table = w.sequence(2).cache().table(1);
  REQUIRE(table.size() == 7);
  CHECK(table[3] == kNoBlock);  // positions before 192 - 39
  CHECK(table[4] != kNoBlock);
  w.run(plan);
  w.drain();
  check_text(w, 2, text(200), 5);
}

TEST_CASE("sequences_beyond_the_room_for_windows_wait_and_none_is_preempted") {
  World w = world_of({full_group(200), window_group(8, 40)});  // a window and a chunk of 64 touch 5 blocks
  for (RequestId id = 1; id <= 3; ++id) w.add(request(id, text(100, 10 * static_cast<int>(id)), 100));
  w.step();
  CHECK(w.scheduler.running().size() == 1);
  w.drain();
  CHECK(w.scheduler.stats().preemptions == 0);
  for (RequestId id = 1; id <= 3; ++id) check_text(w, id, text(100, 10 * static_cast<int>(id)), 100);
}

TEST_CASE("a_fork_from_before_the_window_is_recomputed") {
  World w = world_of({full_group(40), window_group(30, 33)});
  w.add(request(1, text(40), 200));
  while (w.sequence(1).known() < 140) w.step();
  w.scheduler.fork(1, 2, w.sequence(1).sampler(), 135, w.model.draw(2, hash_of(w.sequence(1).history(134))));
  CHECK(w.sequence(2).state() == SequenceState::kRunning);
  w.scheduler.fork(1, 3, w.sequence(1).sampler(), 40, w.model.draw(3, hash_of(text(40))));
  CHECK(w.sequence(3).state() == SequenceState::kWaiting);
  w.drain();
  check_text(w, 3, text(40), 200);
}

TEST_CASE("chunks_of_prompts_end_at_borders_where_the_state_is_checkpointed") {
  World w = world_of({full_group(40), state_group(12)});
  w.add(request(1, text(150), 5));
  std::vector<int32_t> chunks;
  while (w.sequence(1).generated().empty()) chunks.push_back(w.step().n_tokens);
  CHECK(chunks == std::vector<int32_t>{64, 64, 22});  // 128 is the last border
  CHECK(w.scheduler.cache().pool(1).stats().cached == 2);
  w.drain();
  std::vector<TokenId> longer = text(150);
  longer.insert(longer.begin() + 100, 7);  // they share 100 tokens, of which the full group alone could reuse 96
  CHECK(cached_tokens(w, 2, longer) == 64);
  CHECK(cached_tokens(w, 3, text(150)) == 128);
  CHECK(cached_tokens(w, 4, text(128)) == 64);  // one token is left to compute

  World odd = world_of({full_group(40), state_group(12)});
  odd.add(request(1, text(50), 5));
  odd.step();
  CHECK(odd.sequence(1).computed() == 32);
  Request unpublished = request(2, text(50, 9), 5);
  unpublished.reuse_prefix = false;
  odd.drain();
  odd.add(unpublished);
  odd.step();
  CHECK(odd.sequence(2).computed() == 50);
}

TEST_CASE("a_state_is_restored_after_rejected_drafts_and_the_known_tokens_are_computed_again") {
  World w = world_of({full_group(40), state_group(12)});
  w.add(request(1, text(30), 40));
  w.step();
  const auto expected = w.model.expected(text(30), 40, true, 512, 1);
  std::vector<TokenId> drafts(expected.begin() + 31, expected.begin() + 34);
  drafts[2] = drafts[2] == 5 ? 6 : 5;
  w.scheduler.propose(1, drafts);
  StepPlan plan = w.step();
  REQUIRE(plan.copies.size() == 1);  // the slot is saved
  CHECK(w.sequence(1).known() == 34);
  CHECK(w.sequence(1).computed() == 30);
  plan = w.step();
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.n_tokens == 4);
  CHECK(w.sequence(1).computed() == 34);
  // All accepted: nothing is restored.
  w.scheduler.propose(1, std::span(expected).subspan(35, 3));
  w.step();
  CHECK(w.sequence(1).computed() == 38);
  CHECK(w.step().copies.empty());
  w.drain();
  check_text(w, 1, text(30), 40);
  CHECK(w.scheduler.cache().pool(1).stats().used == 0);
}

TEST_CASE("a_conversation_continues_from_its_state_or_else_from_a_checkpoint") {
  for (const bool edited : {false, true}) {
    CAPTURE(edited);
    World w = world_of({full_group(40), window_group(30, 40), state_group(12)});
    Request turn = request(1, text(90), 21);
    turn.conversation = 7;
    w.add(turn);
    w.drain();
    std::vector<TokenId> next(w.sequence(1).known_tokens().begin(), w.sequence(1).known_tokens().end());
    if (edited) next.resize(105);
    for (const TokenId t : text(20, 60)) next.push_back(t);
    turn.id = 2;
    turn.prompt = next;
    w.add(turn);
    w.drain();
    CHECK(w.sequence(2).cached_prompt_tokens() == (edited ? 64 : 110));
    check_text(w, 2, next, 21);
  }
}

TEST_CASE("a_state_that_a_cancelled_step_has_changed_is_not_retained") {
  World w = world_of({full_group(40), state_group(12)});
  Request turn = request(1, text(50), 40);
  turn.conversation = 7;
  w.add(turn);
  while (w.sequence(1).known() < 60) w.step();
  const StepPlan plan = w.scheduler.schedule();
  const std::vector<std::vector<TokenId>> sampled = {w.model.run(plan.sequences[0], 1)};
  w.scheduler.finish(1, FinishReason::kCancelled);
  w.scheduler.commit(plan, sampled);
  turn.id = 2;
  turn.prompt.assign(w.sequence(1).known_tokens().begin(), w.sequence(1).known_tokens().end());
  turn.prompt.push_back(5);
  w.add(turn);
  w.drain();
  CHECK(w.sequence(2).cached_prompt_tokens() == 32);
  check_text(w, 2, turn.prompt, 40);
}

TEST_CASE("the_blocks_of_each_group_follow_from_context_sequences_and_step") {
  const std::vector<CacheGroup> groups = {full_group(0), latent_group(0), window_group(0, 512), state_group(0)};
  CHECK(cache_blocks(groups, {4096, 4, 512, 0, false}) == std::vector<int32_t>{512, 512, 4 * 33, 12});
  CHECK(cache_blocks(groups, {4096, 4, 512, 0, true})[3] == 16);
  CHECK(cache_blocks(groups, {4096, 4, 512, 1000, false}) == std::vector<int32_t>{32, 32, 32, 12});
  CHECK(cache_blocks(groups, {100, 2, 512, 0, false}) == std::vector<int32_t>{8, 8, 8, 6});
  CHECK(cache_blocks(groups, {int64_t{1} << 40, 1, 512, 0, false})[0] == INT32_MAX);
  // A window and a chunk never touch more blocks than that, wherever they begin.
  for (const int64_t n : {1, 2, 33, 34, 551}) {
    int64_t most = 0;
    for (int64_t begin = 0; begin < kBlockTokens; ++begin) most = std::max(most, (begin + n - 1) / kBlockTokens + 1);
    CHECK(blocks_touched(n) == most);
  }
}
