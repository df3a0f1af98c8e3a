#include "tools/interrupt.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

using namespace infer;

namespace {

// Whether a thread of this process is asleep in a system call.
bool sleeps(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(stat, text);
  const size_t state = text.rfind(')');
  return state != std::string::npos && text.substr(state + 2, 1) == "S";
}

}  // namespace

TEST_CASE("Ctrl-C while output waits for its reader loses none of it") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  // A full pipe, so that the next write waits without having written anything.
  REQUIRE(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
  const std::string block(4096, 'x');
  size_t n_filled = 0;
  for (ssize_t n; (n = write(ends[1], block.data(), block.size())) > 0;) n_filled += static_cast<size_t>(n);
  REQUIRE(fcntl(ends[1], F_SETFL, 0) == 0);

  const InterruptGuard guard;
  const pthread_t writer = pthread_self();
  const pid_t writer_id = gettid();
  std::string read_back;
  std::thread reader([&] {
    while (!sleeps(writer_id)) std::this_thread::yield();
    pthread_kill(writer, SIGINT);
    while (!guard.interrupted()) std::this_thread::yield();
    char buffer[4096];
    while (read_back.size() < n_filled + 5) {
      const ssize_t n = read(ends[0], buffer, sizeof buffer);
      if (n <= 0) break;
      read_back.append(buffer, static_cast<size_t>(n));
    }
  });
  FILE* out = fdopen(ends[1], "w");
  REQUIRE(out != nullptr);
  const bool written = std::fwrite("hello", 1, 5, out) == 5 && std::fflush(out) == 0;
  std::fclose(out);
  reader.join();
  close(ends[0]);
  CHECK(guard.interrupted());
  CHECK(written);
  CHECK(read_back.substr(n_filled) == "hello");
}

TEST_CASE("Ctrl-C after a guard inside another one does not end the program") {
  const InterruptGuard outer(InterruptGuard::Second::kIgnored);
  {
    const InterruptGuard inner(InterruptGuard::Second::kIgnored);
    CHECK(!inner.interrupted());
    raise(SIGINT);
    raise(SIGINT);
    CHECK(inner.interrupted());
  }
  raise(SIGINT);
  raise(SIGINT);
  const InterruptGuard next(InterruptGuard::Second::kIgnored);
  CHECK(!next.interrupted());
}
