// The main() of every doctest program: runs the tests and ends with one line that scripts/run_tests.sh adds up:
//   NAME: P passed, F failed, S skipped
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "tests/support/skip.h"

namespace {

doctest::TestRunStats stats;

struct CountingReporter : doctest::IReporter {
  explicit CountingReporter(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& run) override { stats = run; }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

DOCTEST_REGISTER_LISTENER("counting", 1, CountingReporter);

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (context.shouldExit() && stats.numTestCasesPassingFilters == 0) return result;
  const std::string path = argv[0];
  const int failed = static_cast<int>(stats.numTestCasesFailed);
  const int passed = static_cast<int>(stats.numTestCasesPassingFilters) - failed;
  const int skipped = infer::test::skipped_count();
  std::printf("%s: %d passed, %d failed, %d skipped\n", path.substr(path.rfind('/') + 1).c_str(),
              passed - skipped < 0 ? 0 : passed - skipped, failed, skipped);
  return result;
}
