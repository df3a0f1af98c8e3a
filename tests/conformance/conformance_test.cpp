// Checks every operation on every device against its definition.
//   INFER_TEST_FULL=1 runs all cases instead of a fixed subset.
//   INFER_DEVICES="vulkan,cpu" runs them on the devices whose names begin with one of these, instead of on all.
//   INFER_CASE="matmul Q4_K n=49 k=512 t=5 floats" runs only that case; a failure prints the name. With the name of a
//   device after it, it runs only on that device.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "backends/registry.h"
#include "ggml-like/error.h"
#include "tests/conformance/case.h"
#include "tests/support/skip.h"

using namespace infer;
using namespace infer::test;

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Whether INFER_DEVICES selects the device `name`, by a prefix of it.
bool is_listed(const std::string& name) {
  static const std::string listed = environment("INFER_DEVICES");
  if (listed.empty()) return true;
  for (size_t at = 0; at <= listed.size();) {
    const size_t end = std::min(listed.find(',', at), listed.size());
    if (end > at && name.starts_with(listed.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

// The devices a case runs on: all, or the one named in INFER_CASE. Empty if the case is not selected.
Devices wanted_devices(const Entry& entry) {
  static const std::string filter = environment("INFER_CASE");
  static const bool full = environment("INFER_TEST_FULL") == "1";
  Devices devices;
  for (TestDevice& device : test_devices()) {
    if (!is_listed(device.name)) continue;
    if (filter.empty() ? full || entry.quick : filter == entry.name || filter == entry.name + " " + device.name) {
      devices.push_back(&device);
    }
  }
  return devices;
}

// The line of an operation in fingerprints.txt, such as "embed 0123456789abcdef": a hash of what the CPU computes for
// the subset, on every machine. Integers are exact and floats correctly rounded, so a change of the hash is a change of
// every model's results.
std::string recorded_fingerprint(std::string_view op) {
  std::ifstream file(std::string(INFER_SOURCE_DIR) + "/tests/conformance/fingerprints.txt");
  for (std::string name, hash; file >> name >> hash;) {
    if (name == op) return hash;
  }
  return "none";
}

}  // namespace

void infer::test::run_cases(Op op) {
  int cases = 0, all = 0, runs = 0, unsupported = 0;
  uint64_t subset = 0;
  for (const Entry& entry : all_cases()) {
    if (entry.op != op) continue;
    ++all;
    const Devices devices = wanted_devices(entry);
    if (devices.empty()) continue;
    ++cases;
    INFO("while running INFER_CASE=\"", entry.name, "\"");
    const Verdict verdict = entry.run(devices);
    runs += verdict.runs;
    unsupported += verdict.unsupported;
    if (entry.quick) subset = (subset ^ verdict.fingerprint) * 0x9e3779b97f4a7c15u;
    for (const Failure& failure : verdict.failures) {
      FAIL_CHECK("INFER_CASE=\"", entry.name, " ", failure.device, "\" conformance\n  ", failure.what);
    }
    CHECK(verdict.failures.empty());
  }
  if (cases == 0) return;
  if (environment("INFER_CASE").empty() && is_listed("cpu")) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(subset));
    CHECK_MESSAGE(recorded_fingerprint(op_info(op).name) == text,
                  "the CPU's results changed, or differ from other machines': fingerprints.txt would say "
                      << op_info(op).name << " " << text);
  }
  std::printf("%-16s %5d cases of %5d, %6d runs on devices, %d unsupported\n", std::string(op_info(op).name).c_str(),
              cases, all, runs, unsupported);
}

TEST_CASE("every operation has cases, also in the subset, and names are unique") {
  std::set<std::string> names;
  std::set<Op> ops, quick;
  for (const Entry& entry : all_cases()) {
    CHECK_MESSAGE(names.insert(entry.name).second, "two cases are called " << entry.name);
    ops.insert(entry.op);
    if (entry.quick) quick.insert(entry.op);
  }
  for (const OpInfo& info : all_ops()) {
    CAPTURE(info.name);
    CHECK(ops.contains(info.op));
    CHECK(quick.contains(info.op));
  }
  const std::string filter = environment("INFER_CASE");
  if (filter.empty()) return;
  bool found = false;
  for (const Entry& entry : all_cases()) found |= !wanted_devices(entry).empty();
  CHECK_MESSAGE(found, "INFER_CASE names no case of the list: " << filter);
}

TEST_CASE("OpenBLAS is available") {
  if (is_listed("blas") && blas_description().empty()) test::skip("conformance with OpenBLAS", "no such library");
}

TEST_CASE("accelerators named by INFER_REQUIRE are available") {
  const std::string required = concat(",", environment("INFER_REQUIRE"), ",");
  for (const std::string kind : {"cuda", "vulkan"}) {
    if (!is_listed(kind)) continue;
    bool present = false;
    for (const std::string& name : device_names()) present |= name.starts_with(kind);
    if (present) continue;
    if (required.find(concat(",", kind, ",")) != std::string::npos) {
      FAIL_CHECK("INFER_REQUIRE asks for ", kind, ", and no such device was found");
    } else {
      test::skip("conformance on " + kind, "no such device");
    }
  }
}
