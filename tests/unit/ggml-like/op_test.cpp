#include "ggml-like/op.h"

#include <doctest/doctest.h>

#include <array>
#include <set>
#include <string>

#include "ggml-like/ref/ref_device.h"
#include "ggml-like/ref/ref_ops.h"

using namespace infer;

TEST_CASE("operations: the table is in order, names are unique file names") {
  std::set<std::string_view> names;
  for (const OpInfo& info : all_ops()) {
    CAPTURE(info.name);
    CHECK(&op_info(info.op) == &info);
    CHECK(names.insert(info.name).second);
    CHECK(info.min_inputs <= info.max_inputs);
    CHECK((info.n_outputs > 0 || info.has_cache));
    for (const char c : info.name) CHECK(((c >= 'a' && c <= 'z') || c == '_'));
  }
  CHECK(all_ops().size() == static_cast<size_t>(Op::kTopK) + 1);
}

TEST_CASE("operations: the reference implements each operation once") {
  const std::unique_ptr<Device> ref = create_ref_device();
  CHECK(ref->operations().size() == all_ops().size());
  for (const OpInfo& info : all_ops()) {
    const OpRecord* record = ref->find(info.op);
    REQUIRE(record != nullptr);
    CHECK(record->op == info.op);
  }
}

TEST_CASE("operations: activations by name and by value") {
  CHECK(unary_name(UnaryKind::kSilu) == "silu");
  CHECK(unary_name(UnaryKind::kReluSquared) == "relu_squared");
  CHECK(unary_name(UnaryKind::kTanh) == "tanh");
  CHECK(unary_name(UnaryKind::kSoftplus) == "softplus");
  CHECK(ref::activate(UnaryKind::kSilu, 1) == doctest::Approx(0.7310585786));
  CHECK(ref::activate(UnaryKind::kGeluTanh, 1) == doctest::Approx(0.8411919906));
  CHECK(ref::activate(UnaryKind::kGeluErf, 1) == doctest::Approx(0.8413447461));
  CHECK(ref::activate(UnaryKind::kRelu, -2) == 0);
  CHECK(ref::activate(UnaryKind::kReluSquared, 3) == 9);
  CHECK(ref::activate(UnaryKind::kReluSquared, -3) == 0);
  CHECK(ref::activate(UnaryKind::kSigmoid, 0) == 0.5);
  CHECK(ref::activate(UnaryKind::kTanh, 1) == doctest::Approx(0.761594156));
  CHECK(ref::activate(UnaryKind::kGeluQuick, 1) == doctest::Approx(0.8457957659));
  CHECK(ref::activate(UnaryKind::kSoftplus, 1) == doctest::Approx(1.3132616875));
  CHECK(ref::activate(UnaryKind::kSoftplus, 100) == 100);
}

TEST_CASE("tensors: shapes and descriptors") {
  const Shape s{3, 4, 5};
  CHECK(s.elements() == 60);
  CHECK(s.row_elements() == 20);
  CHECK(s.last() == 5);
  CHECK(s.to_string() == "[3, 4, 5]");
  CHECK(s == Shape{3, 4, 5});
  CHECK_FALSE(s == Shape{3, 4});
  CHECK_FALSE(s == Shape{3, 4, 6});
  CHECK(Shape{7}.row_elements() == 1);
  const TensorDesc d = make_desc(DataType::kQ4_K, {3, 512});
  CHECK(d.bytes() == 3 * 2 * 144);
  CHECK(d.contiguous());
}

// The rows were computed by a few lines of Python, whose integers have no limit.
TEST_CASE("operations: n-grams hash with 64 bits, and end at the end token and at the beginning") {
  NgramTables tables;
  tables.per_length = 2;
  tables.end_token = 41;
  tables.multipliers = {0x9e3779b97f4a7c15, 11, 0xffffffffffffffff};
  tables.sizes = {23, 29, 31, 37};
  tables.offsets = {0, 23, 52, 83};
  REQUIRE(tables.lookups() == 4);
  REQUIRE(tables.state_values() == 2);
  constexpr int kIds[] = {5, 9, 41, 3, 8, 2};
  constexpr std::array<int32_t, 4> kRows[] = {{9, 50, 57, 84},  {20, 44, 67, 86},  {21, 25, 80, 99},
                                              {5, 44, 66, 101}, {22, 28, 67, 118}, {22, 46, 65, 93}};
  float before[2] = {0, 0};
  for (size_t i = 0; i < std::size(kIds); ++i) {
    std::array<int32_t, 4> rows{};
    tables.rows_of(kIds[i], before, rows.data());
    CHECK(rows == kRows[i]);
    before[0] = before[1];
    before[1] = static_cast<float>(kIds[i] + 1);
  }
}
