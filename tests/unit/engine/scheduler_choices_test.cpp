// Several choices of one prompt.
#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "tests/unit/engine/scheduler_world.h"

using namespace infer;
using namespace infer::test;

TEST_CASE("choices_begin_with_the_prompt_of_their_request_computed_once") {
  World w;
  Request r = request(1, text(100), 6);
  r.choices = {2, 3, 4, 5, 6};
  w.add(r);
  CHECK_THROWS_AS(w.add(request(4, text(3), 1)), Error);
  w.step();  // a chunk of 64
  CHECK(w.scheduler.find(2) == nullptr);
  w.step();
  CHECK(w.sequence(1).computed() == 100);
  for (const RequestId id : {2, 3, 4}) {
    CHECK(w.sequence(id).state() == SequenceState::kRunning);
    CHECK(w.sequence(id).computed() == 100);
    CHECK(w.sequence(id).cache().table(0)[3] == w.sequence(1).cache().table(0)[3]);
    CHECK(w.sequence(id).sampler().seed() == w.sequence(1).sampler().seed() + id - 1);
  }
  CHECK(w.sequence(5).state() == SequenceState::kWaiting);  // four run at once
  CHECK(w.sequence(6).state() == SequenceState::kWaiting);
  CHECK(w.scheduler.cache().pool(0).references(w.sequence(1).cache().table(0)[0]) == 4);
  CHECK(w.scheduler.stats().computed_tokens == 100);
  w.drain();
  for (RequestId id = 1; id <= 6; ++id) {
    const auto expected = w.model.expected(text(100), 6, true, 512, id);
    CHECK(std::equal(expected.begin(), expected.end(), w.sequence(id).known_tokens().begin(),
                     w.sequence(id).known_tokens().end()));
  }
  CHECK(w.scheduler.cache().pool(0).stats().used == 0);
}

TEST_CASE("choices_share_the_blocks_of_a_parent_that_ends_with_its_first_token") {
  World w;
  Request r = request(1, text(10), 1);
  r.reuse_prefix = false;
  r.choices = {2, 3};
  w.add(r);
  w.step();
  for (const RequestId id : {1, 2, 3}) CHECK(w.sequence(id).finish_reason() == FinishReason::kMaxTokens);
  CHECK(w.scheduler.stats().computed_tokens == 10);
  CHECK(w.scheduler.cache().pool(0).stats().used == 0);
}

TEST_CASE("choices_are_cancelled_alone_or_while_the_prompt_is_computed_with_their_request") {
  World w;
  Request r = request(1, text(100), 6);
  r.choices = {2, 3};
  w.add(r);
  w.step();
  w.scheduler.finish(2, FinishReason::kCancelled);
  w.add(request(2, text(5), 1));  // the id is free again
  w.drain();
  CHECK(w.sequence(2).prompt_length() == 5);
  CHECK(w.sequence(3).generated().size() == 6);
  r.id = 11, r.choices = {12, 13};
  w.add(r);
  w.scheduler.finish(11, FinishReason::kCancelled);
  w.add(request(12, text(5), 1));
  w.drain();
  CHECK(w.scheduler.find(13) == nullptr);
  Request twice = request(20, text(5), 1);
  twice.choices = {21, 21};
  CHECK_THROWS_AS(w.add(twice), Error);
  Request none = request(20, text(5), 0);
  none.choices = {21};
  CHECK_THROWS_AS(w.add(none), Error);
}
