#include "ggml-like/data_type.h"

#include <doctest/doctest.h>

#include <string>

#include "ggml-like/quant/blocks.h"

using namespace infer;

TEST_CASE("type table: ascending, complete, consistent") {
  using enum DataType;
  const DataType every[] = {kF32,    kF16,   kQ4_0,  kQ4_1,   kQ5_0,  kQ5_1,    kQ8_0,   kQ8_1,    kQ2_K,
                            kQ3_K,   kQ4_K,  kQ5_K,  kQ6_K,   kQ8_K,  kIQ2_XXS, kIQ2_XS, kIQ3_XXS, kIQ1_S,
                            kIQ4_NL, kIQ3_S, kIQ2_S, kIQ4_XS, kI8,    kI16,     kI32,    kI64,     kF64,
                            kIQ1_M,  kBF16,  kTQ1_0, kTQ2_0,  kMXFP4, kNVFP4,   kQ1_0,   kQ2_0};
  const auto types = all_types();
  REQUIRE(types.size() == std::size(every));
  for (size_t i = 0; i < types.size(); ++i) {
    const TypeTraits& t = types[i];
    CAPTURE(t.name);
    CHECK(t.type == every[i]);
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
                                        : t.block_size == 32 ? ActivationFormat::kInt8Per32
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
    const char* name;
    size_t bytes_per_256;
  };
  // By bits per weight, as the formats are known.
  const Size sizes[] = {{"F32", 1024},   {"F16", 512},   {"BF16", 512},   {"F64", 2048},   {"I8", 256},
                        {"I16", 512},    {"I32", 1024},  {"I64", 2048},   {"Q4_0", 144},   {"Q4_1", 160},
                        {"Q5_0", 176},   {"Q5_1", 192},  {"Q8_0", 272},   {"Q8_1", 288},   {"Q2_K", 84},
                        {"Q3_K", 110},   {"Q4_K", 144},  {"Q5_K", 176},   {"Q6_K", 210},   {"Q8_K", 292},
                        {"IQ1_S", 50},   {"IQ1_M", 56},  {"IQ2_XXS", 66}, {"IQ2_XS", 74},  {"IQ2_S", 82},
                        {"IQ3_XXS", 98}, {"IQ3_S", 110}, {"IQ4_NL", 144}, {"IQ4_XS", 136}, {"TQ1_0", 54},
                        {"TQ2_0", 66},   {"MXFP4", 136}, {"NVFP4", 144},  {"Q1_0", 36},    {"Q2_0", 72}};
  CHECK(std::size(sizes) == all_types().size());
  for (const Size& size : sizes) {
    CAPTURE(size.name);
    const TypeTraits* t = find_type(std::string_view(size.name));
    REQUIRE(t != nullptr);
    CHECK(row_bytes(t->type, 256) == size.bytes_per_256);
    CHECK(row_bytes(t->type, 256 * int64_t{1000000}) == size.bytes_per_256 * 1000000);
  }
  CHECK(traits(DataType::kQ4_0).type_size == sizeof(BlockQ4_0));
  CHECK(traits(DataType::kQ4_1).type_size == sizeof(BlockQ4_1));
  CHECK(traits(DataType::kQ5_0).type_size == sizeof(BlockQ5_0));
  CHECK(traits(DataType::kQ5_1).type_size == sizeof(BlockQ5_1));
  CHECK(traits(DataType::kQ8_0).type_size == sizeof(BlockQ8_0));
  CHECK(traits(DataType::kIQ4_NL).type_size == sizeof(BlockIQ4_NL));
  CHECK(traits(DataType::kMXFP4).type_size == sizeof(BlockMXFP4));
  CHECK(traits(DataType::kQ2_K).type_size == sizeof(BlockQ2_K));
  CHECK(traits(DataType::kQ3_K).type_size == sizeof(BlockQ3_K));
  CHECK(traits(DataType::kQ4_K).type_size == sizeof(BlockQ4_K));
  CHECK(traits(DataType::kQ5_K).type_size == sizeof(BlockQ5_K));
  CHECK(traits(DataType::kQ6_K).type_size == sizeof(BlockQ6_K));
  CHECK(traits(DataType::kIQ4_XS).type_size == sizeof(BlockIQ4_XS));
  CHECK(traits(DataType::kQ8_K).type_size == sizeof(BlockQ8_K));
}
