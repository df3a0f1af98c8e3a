#include "ggml-like/data_type.h"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "tests/support/quant_reference.h"

using namespace infer;

TEST_CASE("type table: ascending, complete, consistent") {
  const auto types = all_types();
  for (size_t i = 0; i < types.size(); ++i) {
    const TypeTraits& t = types[i];
    CAPTURE(t.name);
    CHECK((i == 0 || static_cast<uint32_t>(types[i - 1].type) < static_cast<uint32_t>(t.type)));
    CHECK(find_type(static_cast<uint32_t>(t.type)) == &t);
    CHECK(&traits(t.type) == &t);
    CHECK(find_type(t.name) == &t);
    CHECK((t.block_size == 1 || (t.block_size >= 32 && 256 % t.block_size == 0)));
    CHECK(t.quantized == (t.block_size > 1));
    CHECK((t.to_float == nullptr) == (t.from_float == nullptr));
    CHECK((t.dot == nullptr) == (t.activation == ActivationFormat::kNone));
    CHECK((t.dot == nullptr || t.to_float != nullptr));
    if (t.dot != nullptr) {
      const ActivationFormat expected = !t.quantized         ? ActivationFormat::kF32
                                        : t.block_size < 256 ? ActivationFormat::kInt8Per32
                                                             : ActivationFormat::kInt8Per256;
      CHECK(t.activation == expected);
    }
  }
}

TEST_CASE("type table: unknown numbers and names") {
  for (uint32_t number : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 1000u, 0xffffffffu}) {
    CHECK(find_type(number) == nullptr);
  }
  for (const char* name : {"", "Q4", "Q4_KK", " F32", "Q4-K"}) CHECK(find_type(std::string_view(name)) == nullptr);
}

TEST_CASE("type table: names in any case") {
  CHECK(find_type("q4_k") == &traits(DataType::kQ4_K));
  CHECK(find_type("Iq4_nL") == &traits(DataType::kIQ4_NL));
  CHECK(find_type("bf16") == &traits(DataType::kBF16));
  CHECK(find_type("mxfp4") == &traits(DataType::kMXFP4));
}

TEST_CASE("type table: sizes of blocks and rows") {
  struct Size {
    std::string_view name;
    size_t bytes_per_256;
  };
  // Types without a QuantRecord; those of the records are appended.
  std::vector<Size> sizes = {{"F32", 1024}, {"F16", 512},  {"BF16", 512}, {"F64", 2048}, {"I8", 256},
                             {"I16", 512},  {"I32", 1024}, {"I64", 2048}, {"Q8_1", 288}};
  for (const test::QuantRecord& record : test::kQuantRecords) sizes.push_back({record.name, record.bytes});
  CHECK(sizes.size() == all_types().size());
  for (const Size& size : sizes) {
    CAPTURE(size.name);
    const TypeTraits* t = find_type(size.name);
    REQUIRE(t != nullptr);
    CHECK(row_bytes(t->type, 256) == size.bytes_per_256);
    CHECK(row_bytes(t->type, 256 * int64_t{1000000}) == size.bytes_per_256 * 1000000);
  }
}
