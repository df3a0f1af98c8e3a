// The guarantees of the scheduler, each named by a test, on small hand-made cases.
#include "src/engine/scheduler.h"

#include <doctest/doctest.h>

#include <numeric>

#include "ggml-like/error.h"
#include "tests/unit/engine/scheduler_world.h"

using namespace infer;
using namespace infer::test;

namespace {

const ScheduledSequence* entry_of(const StepPlan& plan, RequestId id) {
  for (const auto& s : plan.sequences) {
    if (s.sequence->id() == id) return &s;
  }
  return nullptr;
}

// The error message of a call.
template <typename F>
std::string error_of(ErrorCode code, F f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a_prompt_is_computed_in_chunks_and_then_one_token_a_step") {
  World w;
  w.add(request(1, text(150), 3));
  StepPlan plan = w.step();
  CHECK(plan.n_tokens == 64);
  CHECK(plan.n_outputs == 0);
  CHECK(plan.sequences[0].first_output == 64);
  CHECK_FALSE(plan.sequences[0].samples);
  w.step();
  plan = w.step();
  CHECK(plan.n_tokens == 22);
  CHECK(plan.sequences[0].first_position == 128);
  CHECK(plan.sequences[0].first_output == 21);
  CHECK(plan.sequences[0].first_sampled_row() == 21);
  CHECK(w.sequence(1).known() == 151);
  CHECK(w.sequence(1).computed() == 150);
  plan = w.step();
  CHECK(plan.n_tokens == 1);
  CHECK(plan.sequences[0].first_output == 0);
  w.step();
  CHECK(w.scheduler.idle());
  CHECK(w.sequence(1).finish_reason() == FinishReason::kMaxTokens);
  CHECK(w.sequence(1).generated().size() == 3);
  CHECK(w.scheduler.schedule().empty());
  CHECK(w.scheduler.take(1)->id() == 1);
  CHECK(w.scheduler.find(1) == nullptr);
}

TEST_CASE("decodes_go_before_chunks_of_prompts") {
  World w;
  w.add(request(1, text(10), 100));
  w.step();
  w.add(request(2, text(300, 50)));
  const StepPlan plan = w.step();
  REQUIRE(plan.sequences.size() == 2);
  CHECK(plan.sequences[0].sequence->id() == 1);
  CHECK(plan.sequences[0].n_tokens == 1);
  CHECK(plan.sequences[1].n_tokens == 63);
}

TEST_CASE("priority_first_then_first_come") {
  World w;
  w.add(request(1, text(60)));
  w.add(request(2, text(60, 20)));
  Request urgent = request(3, text(60, 40));
  urgent.priority = 1;
  w.add(urgent);
  StepPlan plan = w.step();
  CHECK(plan.sequences[0].sequence->id() == 3);
  CHECK(plan.sequences[1].sequence->id() == 1);
  CHECK(entry_of(plan, 2) == nullptr);
}

TEST_CASE("the_queue_is_bounded") {
  World w;
  for (RequestId id = 1; id <= 8; ++id) w.add(request(id, text(4)));
  CHECK_FALSE(w.scheduler.add(request(9, text(4))));
  CHECK(w.scheduler.find(9) == nullptr);
  w.drain();
  CHECK(w.scheduler.add(request(9, text(4))));
}

TEST_CASE("what_can_never_fit_is_refused_with_numbers") {
  World w(4);
  CHECK(error_of(ErrorCode::kInvalidArgument, [&] { w.add(request(1, text(512))); }) ==
        "[scheduler] prompt: expected at most 511 tokens in a context of 512, found 512");
  CHECK(error_of(ErrorCode::kOutOfMemory, [&] { w.add(request(1, text(128))); }) ==
        "[scheduler] prompt of 128 tokens: expected 5 cache blocks, found 4");
  CHECK(error_of(ErrorCode::kInvalidArgument, [&] { w.add(request(1, {})); }) ==
        "[scheduler] expected a prompt of at least 1 token, found 0");
  CHECK(error_of(ErrorCode::kInvalidArgument, [&] {
          w.add(request(1, {5, 100}));
        }) == "[scheduler] prompt: expected token ids below 100, found 100");
  CHECK(error_of(ErrorCode::kInvalidArgument, [&] { w.add(request(1, text(3), -2)); }) ==
        "[scheduler] expected max_new_tokens of -1 or more, found -2");
  Request bad = request(1, text(3));
  bad.sampling.top_p = 2;
  CHECK(error_of(ErrorCode::kInvalidArgument, [&] { w.add(bad); }) ==
        "[sampling] top_p: expected a number from 0 to 1, found 2");
  w.add(request(1, text(128), 0));
  CHECK(error_of(ErrorCode::kInvalidArgument, [&] { w.add(request(1, text(3))); }) ==
        "[scheduler] expected an unused request id, found 1");
  w.drain();
  CHECK(w.sequence(1).generated().empty());
}

TEST_CASE("impossible_settings_are_refused") {
  auto error_with = [](ErrorCode code, auto change) {
    SchedulerConfig config = small_config();
    std::vector<CacheGroup> groups = {full_group(4)};
    change(config, groups);
    return error_of(code, [&] { Scheduler(config, groups); });
  };
  CHECK(error_with(ErrorCode::kInvalidArgument, [](auto& c, auto&) { c.token_budget = 3; }) ==
        "[scheduler] expected a token budget of at least one per sequence, found 3");
  const std::string prefix = "[scheduler] expected ";
  CHECK(error_with(ErrorCode::kInvalidArgument, [](auto& c, auto&) { c.max_outputs = 3; }).starts_with(prefix));
  CHECK(error_with(ErrorCode::kInvalidArgument, [](auto& c, auto&) { c.max_sequences = 0; }).starts_with(prefix));
  CHECK(error_with(ErrorCode::kInvalidArgument, [](auto& c, auto&) { c.max_waiting = 0; }).starts_with(prefix));
  CHECK(error_with(ErrorCode::kInvalidArgument, [](auto& c, auto&) { c.n_vocab = 0; }).starts_with(prefix));
  CHECK(error_with(ErrorCode::kInvalidArgument, [](auto&, auto& g) { g.clear(); }) ==
        "[cache] expected 1 to 4 cache groups, found 0");
  CHECK(error_with(ErrorCode::kInvalidArgument, [](auto&, auto& g) { g.assign(5, full_group(1)); }) ==
        "[cache] expected 1 to 4 cache groups, found 5");
  CHECK(error_with(ErrorCode::kInvalidArgument, [](auto&, auto& g) { g = {window_group(4, 0)}; }) ==
        "[cache] group 0: expected a window of at least 1 position, found 0");
  CHECK(error_with(ErrorCode::kInvalidArgument, [](auto&, auto& g) { g = {state_group(0)}; }) ==
        "[cache] expected at least 1 block, found 0");
}

TEST_CASE("a_running_sequence_shares_its_prefix_at_once") {
  World w;
  w.add(request(1, text(100), 50));
  w.step();
  w.step();  // 100 tokens computed: 3 full blocks
  w.add(request(2, text(100), 5));
  const StepPlan plan = w.step();
  CHECK(entry_of(plan, 2)->first_position == 96);
  CHECK(w.sequence(2).cached_prompt_tokens() == 96);
  CHECK(w.scheduler.stats().prefix_hit_tokens == 96);
  CHECK(w.scheduler.stats().admitted_tokens == 200);
  CHECK(w.sequence(1).cache().table(0)[2] == w.sequence(2).cache().table(0)[2]);
  CHECK(w.sequence(1).cache().table(0)[3] != w.sequence(2).cache().table(0)[3]);
}

TEST_CASE("a_prompt_that_is_all_cached_still_computes_its_end") {
  World w;
  w.add(request(1, text(64), 1));
  w.drain();
  w.add(request(2, text(64), 1));
  const StepPlan plan = w.step();
  CHECK(entry_of(plan, 2)->first_position == 32);
  CHECK(entry_of(plan, 2)->n_tokens == 32);
}

TEST_CASE("salts_and_opting_out_keep_prefixes_apart") {
  World w;
  w.add(request(1, text(100), 1));
  w.drain();
  auto hit = [&](RequestId id, auto change) {
    Request r = request(id, text(100), 1);
    change(r);
    w.add(r);
    w.drain();
    return w.sequence(id).cached_prompt_tokens();
  };
  CHECK(hit(2, [](Request& r) { r.cache_salt = "other"; }) == 0);
  CHECK(hit(3, [](Request& r) { r.reuse_prefix = false; }) == 0);
  CHECK(hit(4, [](Request& r) { r.logits_from = 0; }) == 0);
  CHECK(hit(5, [](Request&) {}) == 96);
  World private_world;
  Request r = request(1, text(100), 1);
  r.reuse_prefix = false;
  private_world.add(r);
  private_world.drain();
  CHECK(private_world.scheduler.cache().pool(0).stats().cached == 0);
}

TEST_CASE("equal_prompts_computed_side_by_side_end_up_in_the_same_blocks") {
  World w;
  w.add(request(1, text(32), 20));
  w.add(request(2, text(32), 20));
  w.step();
  CHECK(w.sequence(1).cache().table(0)[0] == w.sequence(2).cache().table(0)[0]);
  w.drain();
}

TEST_CASE("the_youngest_is_preempted_and_resumes_with_the_same_text") {
  World w(5);
  w.add(request(1, text(40), 60));
  w.add(request(2, text(24, 50), 60));  // 4 blocks at the end for 1, 3 for 2
  w.drain();
  CHECK(w.sequence(1).preemptions() == 0);
  CHECK(w.sequence(2).preemptions() > 0);
  for (RequestId id : {1, 2}) {
    const auto expected = w.model.expected(w.sequence(id).request().prompt, 60, true, 160, id);
    CHECK(std::equal(expected.begin(), expected.end(), w.sequence(id).known_tokens().begin(),
                     w.sequence(id).known_tokens().end()));
  }
  CHECK(w.scheduler.cache().pool(0).stats().used == 0);
}

TEST_CASE("admission_leaves_each_running_sequence_one_more_block") {
  World w(4);
  w.add(request(1, text(40), 30));  // 2 blocks, 3 at the end
  w.add(request(2, text(40, 50), 30));
  w.step();
  CHECK(w.scheduler.running().size() == 1);  // 2 blocks are free, but 2 + 1 are required
  w.drain();
  CHECK(w.scheduler.stats().preemptions == 0);
}

TEST_CASE("admission_leaves_no_block_to_sequences_that_need_none") {
  World w(4);
  for (RequestId id = 1; id <= 4; ++id) w.add(request(id, text(1, 10 * static_cast<int>(id)), 31));
  CHECK(w.step().sequences.size() == 4);
  w.drain();
  CHECK(w.scheduler.stats().preemptions == 0);
}

TEST_CASE("a_sequence_that_fills_all_blocks_ends_there") {
  World w(2);
  w.add(request(1, text(40), -1));
  w.drain();
  CHECK(w.sequence(1).known() == 64);
  CHECK(w.sequence(1).finish_reason() == FinishReason::kContextFull);
}

TEST_CASE("accepted_drafts_advance_and_rejected_ones_are_rolled_back") {
  World w;
  w.add(request(1, text(30), 40));
  w.step();
  const auto expected = w.model.expected(text(30), 40, true, 512, 1);
  // Two correct drafts, then a wrong one, then others.
  std::vector<TokenId> drafts(expected.begin() + 31, expected.begin() + 33);
  drafts.push_back(expected[33] == 5 ? 6 : 5);
  drafts.insert(drafts.end(), {1, 2, 3});
  w.scheduler.propose(1, drafts);
  const StepPlan plan = w.step();
  CHECK(plan.n_tokens == 7);
  CHECK(plan.n_outputs == 7);
  CHECK(plan.sequences[0].n_drafts == 6);
  CHECK(plan.sequences[0].first_sampled_row() == 0);
  CHECK(w.sequence(1).known() == 34);
  CHECK(w.sequence(1).computed() == 33);
  CHECK(w.sequence(1).drafts().empty());
  CHECK(w.sequence(1).cache().table(0).size() == 2);
  CHECK(w.scheduler.stats().drafts.proposed == 6);
  CHECK(w.scheduler.stats().drafts.accepted == 2);
  w.drain();
  CHECK(std::equal(expected.begin(), expected.end(), w.sequence(1).known_tokens().begin(),
                   w.sequence(1).known_tokens().end()));
}

TEST_CASE("drafts_take_only_what_is_left") {
  SchedulerConfig config = small_config();
  World w(3, config);
  w.add(request(1, text(30), 40));
  w.step();
  w.scheduler.propose(1, text(100));
  CHECK(w.sequence(1).drafts().size() == 38);  // at most 70 tokens, 31 known, one is sampled
  StepPlan plan = w.scheduler.schedule();
  CHECK(plan.n_tokens == 16);  // max_outputs
  w.scheduler.finish(1, FinishReason::kCancelled);
  w.scheduler.commit(plan, std::vector<std::vector<TokenId>>{{1}});
  CHECK(w.sequence(1).known() == 31);
  CHECK(w.sequence(1).drafts().empty());

  // Three blocks for two sequences: the first in rank takes the free one, the other's drafts end with its own block.
  config.max_outputs = 40;
  World tight(3, config);
  tight.add(request(1, text(26), 40));
  tight.add(request(2, text(26, 50), 40));
  tight.step();
  tight.step();
  REQUIRE(tight.scheduler.running().size() == 2);
  tight.scheduler.propose(1, text(8));
  tight.scheduler.propose(2, text(20));
  plan = tight.step();
  CHECK(entry_of(plan, 1)->n_drafts == 8);
  CHECK(entry_of(plan, 2)->n_drafts == 4);  // positions 28 .. 31
  CHECK(tight.scheduler.stats().preemptions == 0);

  tight.scheduler.propose(2, std::vector<TokenId>{1, -1, 3});  // an impossible token ends the drafts
  CHECK(tight.sequence(2).drafts().size() == 1);
  tight.scheduler.propose(99, text(2));  // an unknown id
}

TEST_CASE("prompt_chunks_go_before_drafts") {
  World w;
  w.add(request(1, text(10), 100));
  w.step();
  w.add(request(2, text(61, 50)));
  w.scheduler.propose(1, text(10));
  const StepPlan plan = w.step();
  CHECK(entry_of(plan, 2)->n_tokens == 61);
  CHECK(entry_of(plan, 1)->n_drafts == 2);
}

TEST_CASE("text_ends_at_the_first_token_that_ends_it") {
  auto ending = [](auto change) {
    World w;
    Request r = request(1, text(5), 20);
    change(r, w);
    w.add(r);
    w.drain();
    return std::pair(w.sequence(1).finish_reason(), w.sequence(1).generated().size());
  };
  const auto expected = FakeModel({full_group(1)}, 100).expected(text(5), 20, true, 512, 1);
  CHECK(ending([](Request&, World&) {}) == std::pair(FinishReason::kMaxTokens, size_t{20}));
  CHECK(ending([&](Request& r, World&) { r.stop_tokens = {expected[8]}; }).first == FinishReason::kEndOfGeneration);
  CHECK(ending([&](Request& r, World&) { r.stop_tokens = {expected[5]}; }).second == 1);
  CHECK(ending([](Request& r, World&) { r.max_new_tokens = 0; }) == std::pair(FinishReason::kMaxTokens, size_t{0}));

  // An end inside accepted drafts drops what follows it.
  World w;
  Request r = request(1, text(5), 20);
  r.stop_tokens = {expected[7]};
  w.add(r);
  w.step();
  w.scheduler.propose(1, std::span(expected).subspan(6, 6));
  w.step();
  CHECK(w.sequence(1).state() == SequenceState::kFinished);
  CHECK(w.sequence(1).generated().back() == expected[7]);
  CHECK(w.scheduler.cache().pool(0).stats().used == 0);
}

TEST_CASE("end_of_generation_can_be_ignored") {
  SchedulerConfig config = small_config();
  config.eog_tokens.resize(100);
  std::iota(config.eog_tokens.begin(), config.eog_tokens.end(), 0);
  World w(64, config);
  Request r = request(1, text(5), 20);
  r.ignore_eog = false;
  w.add(r);
  w.add(request(2, text(5), 20));
  w.drain();
  CHECK(w.sequence(1).generated().size() == 1);
  CHECK(w.sequence(1).finish_reason() == FinishReason::kEndOfGeneration);
  CHECK(w.sequence(2).generated().size() == 20);
}

TEST_CASE("logits_from_requests_every_row_from_there_on") {
  World w;
  Request r = request(1, text(40), 0);
  r.logits_from = 20;
  w.add(r);
  CHECK(w.step().n_outputs == 0);
  CHECK(w.step().sequences[0].first_output == 4);
  CHECK(w.step().n_outputs == 8);
}

TEST_CASE("all_logits_are_requested_within_the_output_limit") {
  World w;
  Request r = request(1, text(40), 0);
  r.logits_from = 0;
  w.add(r);
  StepPlan plan = w.step();
  CHECK(plan.n_tokens == 16);
  CHECK(plan.n_outputs == 16);
  CHECK(plan.sequences[0].first_output == 0);
  w.step();
  plan = w.step();
  CHECK(plan.n_tokens == 8);
  CHECK_FALSE(plan.sequences[0].samples);
  CHECK(w.sequence(1).finish_reason() == FinishReason::kMaxTokens);
}

TEST_CASE("a_fork_shares_blocks_and_copies_before_it_writes") {
  World w;
  w.add(request(1, text(40), 50));
  w.step();
  const uint64_t prompt_hash = hash_of(text(40));
  const TokenId next = w.model.draw(2, prompt_hash);
  w.scheduler.fork(1, 2, w.sequence(1).sampler().for_choice(1), 40, next);
  CHECK(w.sequence(2).computed() == 40);
  CHECK(w.sequence(2).cache().table(0)[1] == w.sequence(1).cache().table(0)[1]);
  CHECK(w.scheduler.cache().pool(0).references(w.sequence(1).cache().table(0)[1]) == 2);
  const StepPlan plan = w.step();
  REQUIRE(plan.copies.size() == 1);  // the second writer is the only user of the block
  CHECK(w.sequence(1).cache().table(0)[0] == w.sequence(2).cache().table(0)[0]);
  CHECK(w.sequence(1).cache().table(0)[1] != w.sequence(2).cache().table(0)[1]);
  w.drain();
  for (RequestId id : {1, 2}) {
    const auto expected = w.model.expected(text(40), 50, true, 512, id);
    CHECK(std::equal(expected.begin(), expected.end(), w.sequence(id).known_tokens().begin(),
                     w.sequence(id).known_tokens().end()));
  }
  CHECK(w.scheduler.cache().pool(0).stats().used == 0);
  CHECK_THROWS_AS(w.scheduler.fork(1, 2, w.sequence(1).sampler(), 40, next), Error);
}

TEST_CASE("forks_beyond_the_running_limit_and_of_finished_parents_wait_their_turn") {
  World w;
  w.add(request(1, text(40), 1));
  w.step();
  REQUIRE(w.sequence(1).state() == SequenceState::kFinished);
  for (RequestId id = 2; id <= 7; ++id) w.scheduler.fork(1, id, w.sequence(1).sampler(), 40, 7);
  CHECK(w.sequence(2).state() == SequenceState::kFinished);  // max_new_tokens is 1
  w.add(request(10, text(40, 50), 5));
  w.step();
  for (RequestId id = 11; id <= 16; ++id) {
    w.scheduler.fork(10, id, w.sequence(10).sampler(), 40, w.model.draw(id, hash_of(text(40, 50))));
  }
  CHECK(w.scheduler.running().size() == 4);
  CHECK(w.scheduler.waiting().size() == 3);
  w.drain();
  for (RequestId id = 11; id <= 16; ++id) {
    const auto expected = w.model.expected(text(40, 50), 5, true, 512, id);
    CHECK(std::equal(expected.begin(), expected.end(), w.sequence(id).known_tokens().begin(),
                     w.sequence(id).known_tokens().end()));
  }
}

TEST_CASE("cancellation_releases_everything_in_any_state") {
  World w;
  w.add(request(1, text(40), 50));
  w.add(request(2, text(40, 9), 50));
  w.step();
  w.add(request(3, text(40, 70), 50));
  w.scheduler.finish(3, FinishReason::kCancelled);  // waiting
  w.scheduler.finish(1, FinishReason::kCancelled);  // running
  w.scheduler.finish(77, FinishReason::kCancelled);
  const StepPlan plan = w.scheduler.schedule();
  w.scheduler.finish(2, FinishReason::kStopString);  // in flight
  std::vector<std::vector<TokenId>> sampled(plan.sequences.size(), std::vector<TokenId>{4});
  w.scheduler.commit(plan, sampled);
  w.scheduler.finish(2, FinishReason::kCancelled);  // finished: stays as it was
  CHECK(w.sequence(2).finish_reason() == FinishReason::kStopString);
  CHECK(w.scheduler.idle());
  CHECK(w.scheduler.cache().pool(0).stats().used == 0);
  CHECK(finish_reason_name(w.sequence(2).finish_reason()) == "stop string");
}

TEST_CASE("a_reset_leaves_nothing_whatever_was_in_progress") {
  World w;
  w.add(request(1, text(150), 8));
  w.step();
  w.add(request(2, text(40, 7), 8));
  w.scheduler.schedule();  // a step that never ends
  w.scheduler.reset();
  CHECK(w.scheduler.idle());
  CHECK(w.scheduler.find(1) == nullptr);
  CHECK(w.scheduler.cache().pool(0).stats().free == 64);
  CHECK(w.scheduler.stats().steps > 0);
  w.add(request(1, text(150), 3));
  w.drain();
  CHECK(w.sequence(1).generated().size() == 3);
  CHECK(w.sequence(1).cached_prompt_tokens() == 0);
}
