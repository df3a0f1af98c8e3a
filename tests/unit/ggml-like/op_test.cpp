#include "ggml-like/op.h"

#include <doctest/doctest.h>

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
