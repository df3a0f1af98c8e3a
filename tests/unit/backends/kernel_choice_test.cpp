#include "backends/cpu/kernel_choice.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "backends/cpu/isa.h"

using namespace infer;
using namespace infer::cpu;

namespace {

using Kernels = CpuOptions::Kernels;

void fast(const MatmulArgs&) {}
void many(const MatmulArgs&) {}
void other_of_two(const MatmulArgs&) {}
void slow(const MatmulArgs&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

// A level with two kernels for one type, and one kernel for another.
struct FakeLevel {
  MatmulKernels kernels[2];
  KernelTable table = {};
  FakeLevel(MatmulKernel first, MatmulKernel second)
      : kernels{{DataType::kQ8_0, {{1, first}, {kAny, many}}, second, other_of_two},
                {DataType::kQ4_0, {{kAny, first}}}} {
    table.matmuls = kernels;
    table.n_matmuls = 2;
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
  CHECK((KernelChoice(first.table, with(Kernels::kFaster)).matmul(DataType::kQ8_0, 1) == fast));
  CHECK((KernelChoice(second.table, with(Kernels::kFaster)).matmul(DataType::kQ8_0, 1) == fast));
}

TEST_CASE("kernel choice: either kernel can be forced") {
  const FakeLevel level(fast, slow);
  CHECK((KernelChoice(level.table, with(Kernels::kDefault)).matmul(DataType::kQ8_0, 1) == fast));
  CHECK((KernelChoice(level.table, with(Kernels::kOther)).matmul(DataType::kQ8_0, 1) == slow));
}

TEST_CASE("kernel choice: types with one kernel, with none on this level, and with none at all") {
  const FakeLevel level(slow, fast);
  for (const Kernels kernels : {Kernels::kFaster, Kernels::kDefault, Kernels::kOther}) {
    KernelChoice choice(level.table, with(kernels));
    CHECK((choice.matmul(DataType::kQ4_0, 1) == slow));
    CHECK((choice.matmul(DataType::kQ4_1, 1) == gemm_by_dots));
    CHECK((choice.matmul(DataType::kQ8_K, 1) == nullptr));
  }
}

TEST_CASE("kernel choice: measuring on this machine selects one of the level's kernels") {
  for (const cpu::Level& level : levels()) {
    if (!level.runs_here) continue;
    KernelChoice choice(*level.kernels, with(Kernels::kFaster));
    for (int i = 0; i < level.kernels->n_matmuls; ++i) {
      const MatmulKernels& kernels = level.kernels->matmuls[i];
      const MatmulKernel chosen = choice.matmul(kernels.type, 1);
      CHECK((chosen == kernels.for_tokens(1) || (kernels.other_gemv && chosen == kernels.other_gemv)));
      CHECK((choice.matmul(kernels.type, 1) == chosen));
      const bool other = chosen != kernels.for_tokens(1);
      CHECK((choice.matmul(kernels.type, 2) == (other ? kernels.other_of_two : kernels.for_tokens(2))));
      CHECK((choice.matmul(kernels.type, 3) == kernels.for_tokens(3)));
    }
  }
}

TEST_CASE("kernel choice: two tokens take the kernel of the same kind as one token") {
  const FakeLevel first(fast, slow), second(slow, fast);
  CHECK((KernelChoice(first.table, with(Kernels::kFaster)).matmul(DataType::kQ8_0, 2) == many));
  CHECK((KernelChoice(second.table, with(Kernels::kFaster)).matmul(DataType::kQ8_0, 2) == other_of_two));
  CHECK((KernelChoice(first.table, with(Kernels::kOther)).matmul(DataType::kQ8_0, 2) == other_of_two));
}

TEST_CASE("kernel choice: there is no choice for more than two tokens") {
  const FakeLevel level(slow, fast);
  for (const Kernels kernels : {Kernels::kFaster, Kernels::kDefault, Kernels::kOther}) {
    KernelChoice choice(level.table, with(kernels));
    CHECK((choice.matmul(DataType::kQ8_0, 3) == many));
    CHECK((choice.matmul(DataType::kQ8_0, 512) == many));
  }
}

TEST_CASE("kernel table: every level has a kernel for any number of tokens") {
  for (const cpu::Level& level : levels()) {
    for (int i = 0; level.kernels && i < level.kernels->n_matmuls; ++i) {
      const MatmulKernels& kernels = level.kernels->matmuls[i];
      CAPTURE(level.kernels->level);
      CAPTURE(traits(kernels.type).name);
      int64_t before = 0;
      for (const auto& range : kernels.ranges) {
        CHECK((range.kernel != nullptr));
        CHECK(range.most_tokens >= before);
        before = range.most_tokens;
        if (before == kAny) break;
      }
      CHECK(before == kAny);
    }
  }
}
