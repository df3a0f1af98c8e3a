#include "backends/cpu/kernel_choice.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "backends/cpu/isa.h"

using namespace infer;
using namespace infer::cpu;

namespace {

using Kernels = CpuOptions::Kernels;

void fast(const ProductArgs&) {}
void slow(const ProductArgs&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

// A level of one type with two kernels, and one with a single kernel.
struct FakeLevel {
  TypeKernel kernels[2];
  KernelTable table = {};
  FakeLevel(ProductKernel first, ProductKernel second)
      : kernels{{DataType::kQ8_0, first, second}, {DataType::kQ4_0, first, nullptr}} {
    table.products = kernels;
    table.n_products = 2;
  }
};

CpuOptions with(Kernels kernels) {
  CpuOptions options;
  options.n_threads = 2;
  options.kernels = kernels;
  return options;
}

}  // namespace

TEST_CASE("kernel choice: the faster of two kernels, whichever comes first") {
  const FakeLevel first(fast, slow), second(slow, fast);
  CHECK((KernelChoice(first.table, with(Kernels::kFaster)).product(DataType::kQ8_0) == fast));
  CHECK((KernelChoice(second.table, with(Kernels::kFaster)).product(DataType::kQ8_0) == fast));
}

TEST_CASE("kernel choice: either kernel can be forced") {
  const FakeLevel level(fast, slow);
  CHECK((KernelChoice(level.table, with(Kernels::kDefault)).product(DataType::kQ8_0) == fast));
  CHECK((KernelChoice(level.table, with(Kernels::kOther)).product(DataType::kQ8_0) == slow));
}

TEST_CASE("kernel choice: types with one kernel and with none") {
  const FakeLevel level(slow, fast);
  for (const Kernels kernels : {Kernels::kFaster, Kernels::kDefault, Kernels::kOther}) {
    KernelChoice choice(level.table, with(kernels));
    CHECK((choice.product(DataType::kQ4_0) == slow));
    CHECK((choice.product(DataType::kQ4_1) == nullptr));
  }
}

TEST_CASE("kernel choice: what is measured on this machine is one of the level's kernels") {
  for (const cpu::Level& level : levels()) {
    if (!level.runs_here) continue;
    KernelChoice choice(*level.kernels, with(Kernels::kFaster));
    for (int i = 0; i < level.kernels->n_products; ++i) {
      const TypeKernel& kernels = level.kernels->products[i];
      const ProductKernel chosen = choice.product(kernels.type);
      CHECK((chosen == kernels.product || (kernels.other && chosen == kernels.other)));
      CHECK((choice.product(kernels.type) == chosen));
    }
  }
}
