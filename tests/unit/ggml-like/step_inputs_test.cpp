#include "ggml-like/step_inputs.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ggml-like/error.h"

using namespace infer;

namespace {

using Tables = std::vector<std::span<const int32_t>>;

template <typename F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("step inputs: what is added is read back") {
  StepInputs step({.tokens = 4, .outputs = 2, .sequences = 2, .groups = 2, .blocks_per_sequence = 3});
  const std::vector<int32_t> a{7, 8}, b{9, 10, 11}, c{}, d{5};
  CHECK(step.add_sequence(Tables{a, b}, 40) == 0);
  CHECK(step.add_sequence(Tables{c, d}, 2) == 1);
  CHECK(step.add_token(0, 100, 38, false) == 0);
  CHECK(step.add_token(0, 101, 39, true) == 1);
  CHECK(step.add_token(1, 102, 1, true) == 2);
  CHECK(step.n_tokens() == 3);
  CHECK(step.n_outputs() == 2);
  CHECK(step.n_sequences() == 2);
  const auto list = [](std::span<const int32_t> s) { return std::vector<int32_t>(s.begin(), s.end()); };
  CHECK(list(step.view().tokens()) == std::vector<int32_t>{100, 101, 102});
  CHECK(list(step.view().positions()) == std::vector<int32_t>{38, 39, 1});
  CHECK(list(step.view().sequences()) == std::vector<int32_t>{0, 0, 1});
  CHECK(list(step.view().output_rows()) == std::vector<int32_t>{1, 2});
  CHECK(step.view().sequence_length(0) == 40);
  CHECK(step.view().sequence_length(1) == 2);
  CHECK(list(step.view().block_table(0, 0)) == std::vector<int32_t>{7, 8, -1});
  CHECK(list(step.view().block_table(1, 0)) == std::vector<int32_t>{9, 10, 11});
  CHECK(list(step.view().block_table(0, 1)) == std::vector<int32_t>{-1, -1, -1});
  CHECK(list(step.view().block_table(1, 1)) == std::vector<int32_t>{5, -1, -1});
  CHECK(step.view().row_count(RowKind::kTokens, 99) == 3);
  CHECK(step.view().row_count(RowKind::kOutputs, 99) == 2);
  CHECK(step.view().row_count(RowKind::kFixed, 99) == 99);
  CHECK(step.raw().size() == 4 + 3 * 4 + 2 + 2 + 2 * 2 * 3);

  // Rows that need no logits come after those that do.
  StepInputs more({.tokens = 4, .outputs = 3, .sequences = 1, .groups = 1, .blocks_per_sequence = 1, .logits = 1});
  more.add_sequence(Tables{d}, 3);
  for (int i = 0; i < 3; ++i) more.add_token(0, i, i, i == 1);
  CHECK(error_of([&] { more.add_token(0, 3, 3, true); }).starts_with("[step] expected at most 4 tokens and 1 outputs"));
  more.add_hidden_output(0);
  more.add_hidden_output(2);
  CHECK(error_of([&] { more.add_hidden_output(1); }) == "[step] expected at most 3 outputs, found more");
  CHECK(list(more.view().output_rows()) == std::vector<int32_t>{1, 0, 2});
  CHECK(more.view().row_count(RowKind::kOutputs, 99) == 3);
  CHECK(more.view().row_count(RowKind::kLogits, 99) == 1);
  more.clear();
  CHECK(more.view().row_count(RowKind::kLogits, 99) == 0);

  // Nothing is left of the previous step's tables.
  step.clear();
  CHECK(step.n_tokens() == 0);
  CHECK(step.n_outputs() == 0);
  step.add_sequence(Tables{d, d}, 1);
  CHECK(list(step.view().block_table(1, 0)) == std::vector<int32_t>{5, -1, -1});
}

TEST_CASE("step inputs: exceeding a capacity is an error and changes nothing") {
  StepInputs step({.tokens = 2, .outputs = 1, .sequences = 1, .groups = 1, .blocks_per_sequence = 2});
  const std::vector<int32_t> two{1, 2}, three{1, 2, 3};
  CHECK(error_of([&] { step.add_sequence(Tables{three}, 1); }) ==
        "[step] expected at most 2 blocks per sequence, found 3");
  CHECK(step.n_sequences() == 0);
  CHECK(step.add_sequence(Tables{two}, 1) == 0);
  CHECK(error_of([&] { step.add_sequence(Tables{two}, 1); }) == "[step] expected at most 1 sequences, found more");
  step.add_token(0, 1, 0, true);
  CHECK(error_of([&] { step.add_token(0, 2, 1, true); }).starts_with("[step] expected at most 2 tokens and 1 outputs"));
  CHECK(step.n_tokens() == 1);
  step.add_token(0, 2, 1, false);
  CHECK(
      error_of([&] { step.add_token(0, 3, 2, false); }).starts_with("[step] expected at most 2 tokens and 1 outputs"));
  CHECK(step.n_tokens() == 2);
  CHECK(step.n_outputs() == 1);
}

TEST_CASE("buckets: the sequence of sizes, each its own bucket, never below the number") {
  const std::vector<int> expected{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 1536};
  std::vector<int> found;
  for (int n = 0; n <= 1536; ++n) {
    const int bucket = bucket_size(n);
    REQUIRE(bucket >= n);
    REQUIRE(bucket_size(bucket) == bucket);
    if (n > 4) REQUIRE(bucket < 2 * n);
    if (found.empty() || found.back() != bucket) found.push_back(bucket);
  }
  CHECK(found == expected);
  CHECK(bucket_size(100001) == 100352);
}
