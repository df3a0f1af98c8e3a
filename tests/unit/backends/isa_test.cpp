// Which instruction set level is used: the best by default, the forced one if there is one, and for a name that is
// unknown or does not run here an error that lists the choices.
#include "backends/cpu/isa.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <set>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_ops.h"
#include "backends/registry.h"
#include "ggml-like/error.h"

using namespace infer;

namespace {

// Sets INFER_CPU for the duration of a scope.
class ForcedLevel {
 public:
  explicit ForcedLevel(const char* value) {
    const char* old = std::getenv("INFER_CPU");
    had_ = old != nullptr;
    if (old) old_ = old;
    if (value) setenv("INFER_CPU", value, 1);
    else unsetenv("INFER_CPU");
  }
  ~ForcedLevel() {
    if (had_) setenv("INFER_CPU", old_.c_str(), 1);
    else unsetenv("INFER_CPU");
  }

 private:
  bool had_;
  std::string old_;
};

std::string message_of(const std::string& level) {
  try {
    create_cpu_device({.n_threads = 1, .level = level});
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    return error.what();
  }
  FAIL("no error for level ", level);
  return "";
}

}  // namespace

TEST_CASE("cpu levels: scalar always runs, names are unique, each table has its own name") {
  const std::vector<std::string> names = cpu_levels();
  REQUIRE(!names.empty());
  CHECK(names.front() == "scalar");
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  CHECK(cpu_level_names() == names);
  for (const std::string& name : names) CHECK(cpu::choose_kernels(name).level == name);
}

TEST_CASE("cpu levels: a device uses the level named by INFER_CPU") {
  for (const std::string& name : cpu_levels()) {
    const ForcedLevel forced(name.c_str());
    CpuOptions options;
    options.n_threads = 2;
    const std::unique_ptr<Device> device = create_cpu_device(options);
    const std::unique_ptr<Stream> stream = device->create_stream();
    CHECK(static_cast<cpu::CpuDevice&>(*device).kernels().level == name);
    CHECK(cpu::cpu(*stream).kernels().level == name);
    CHECK(cpu::cpu(*stream).pool().size() == 2);
    CHECK(device->description().find(", " + name + ", 2 threads") != std::string::npos);
  }
}

TEST_CASE("cpu levels: the best level is used if INFER_CPU is unset or empty") {
  for (const char* value : {static_cast<const char*>(nullptr), ""}) {
    const ForcedLevel none(value);
    CHECK(cpu::choose_kernels().level == cpu_levels().back());
    CHECK(cpu::choose_kernels("").level == cpu_levels().back());
  }
}

TEST_CASE("cpu levels: an argument takes precedence over the environment") {
  const ForcedLevel forced("no_such_level");
  CHECK_THROWS_AS(cpu::choose_kernels(), Error);
  const std::unique_ptr<Device> device = create_cpu_device({.n_threads = 1, .level = "scalar"});
  CHECK(static_cast<cpu::CpuDevice&>(*device).kernels().level == std::string("scalar"));
}

TEST_CASE("cpu levels: an unknown name is an error that lists the levels that run") {
  for (const std::string name : {"avx3", "AVX2", "scalar ", "best"}) {
    const std::string text = message_of(name);
    CHECK(text.starts_with("[cpu] INFER_CPU: expected one of scalar"));
    CHECK(text.ends_with("found " + name));
    for (const std::string& level : cpu_levels()) CHECK(text.find(level) != std::string::npos);
  }
}

TEST_CASE("cpu levels: a level that does not run here is an error, not a crash") {
  int missing = 0;
  for (const cpu::Level& level : cpu::levels()) {
    if (level.runs_here) continue;
    ++missing;
    CHECK(message_of(level.kernels->level).ends_with(std::string("found ") + level.kernels->level));
  }
  // Levels of the other processor architecture never run here.
#if defined(__aarch64__)
  CHECK(message_of("avx2").ends_with("found avx2"));
#else
  CHECK(message_of("neon").ends_with("found neon"));
#endif
  MESSAGE("levels of this program that do not run here: " << missing);
}

TEST_CASE("cpu levels: every level except scalar has kernels for every type that matmuls support") {
  for (const cpu::Level& level : cpu::levels()) {
    if (std::string(level.kernels->level) == "scalar") continue;
    std::set<DataType> types;
    for (int i = 0; i < level.kernels->n_matmuls; ++i) CHECK(types.insert(level.kernels->matmuls[i].type).second);
    for (const TypeTraits& t : all_types()) {
      CAPTURE(t.name);
      CHECK(types.contains(t.type) == (t.dot != nullptr));
    }
  }
}

TEST_CASE("cpu device: memory, cores and threads are plausible") {
  CHECK(physical_cores() >= 1);
  CHECK(physical_cores() <= 4096);
  const std::unique_ptr<Device> device = create_cpu_device({});
  CHECK(static_cast<cpu::CpuDevice&>(*device).n_threads() == physical_cores());
  const DeviceMemory memory = device->memory();
  CHECK(memory.total > 0);
  CHECK(memory.free > 0);
  CHECK(memory.free <= memory.total);
  CHECK(device->is_host());
  const std::unique_ptr<Buffer> buffer = device->allocate(1000);
  CHECK(buffer->size() == 1000);
  CHECK(reinterpret_cast<uintptr_t>(buffer->host()) % 64 == 0);
}

TEST_CASE("registry: cpu and ref exist, an unknown name is an error that lists them") {
  CHECK(open_device("ref")->name() == "ref");
  CHECK(open_device("cpu", {.n_threads = 1})->name() == "cpu");
  try {
    open_device("tpu");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    CHECK(std::string(error.what()).find("cpu, ref") != std::string::npos);
    CHECK(std::string(error.what()).find("tpu") != std::string::npos);
  }
}
