#include "tests/cuda_stand_in/grid.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/access_checks.h"
#include "tests/cuda_stand_in/fiber.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_stand_in {
namespace {

std::string text(const Place& place) {
  const std::string file = place.file_name();
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(place.line());
}
bool same(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0;
}
std::string text(const uint3& i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}
std::string text(unsigned mask) {
  char hex[16];
  std::snprintf(hex, sizeof hex, "0x%08x", mask);
  return hex;
}

// Lanes of a warp that exchange values, or wait for each other.
struct Meeting {
  unsigned mask;
  unsigned arrived = 0, left = 0;
  bool is_barrier;
  Place place;
  uint64_t values[warpSize] = {};
};

struct Warp {
  std::vector<std::unique_ptr<Meeting>> meetings, spare;
  uint32_t barriers = 0;
};

enum class Wait { kNothing, kBarrier, kWarp, kEnded };

struct Lane {
  Fiber fiber;
  uint3 index;
  Wait wait = Wait::kEnded;
  Place place;
  uint64_t values[warpSize];  // of the last exchange
};

class Grid {
 public:
  std::string run(const cudaLaunchConfig_t& config, const BoundKernel& kernel, int device);

  Lane& running() { return *lanes_[running_]; }
  bool active() const { return active_; }
  const Thread& thread() {
    thread_.warp_barriers = warps_[running_ / warpSize].barriers;
    return thread_;
  }
  [[noreturn]] void fail(const std::string& what) {
    failure_ = what;
    running().fiber.yield();
    __builtin_unreachable();
  }
  void wait(Wait for_what, const Place& place) {
    running().wait = for_what;
    running().place = place;
    running().fiber.yield();
  }
  int barrier_sum(int value, const Place& place) {
    sum_ += value;
    wait(Wait::kBarrier, place);
    return last_sum_;
  }
  void meet(unsigned mask, uint64_t value, bool is_barrier, const Place& place);
  void* object(const void* key, size_t bytes);
  bool is_argument(const void* p) const {
    const char *at = static_cast<const char*>(p), *begin = reinterpret_cast<const char*>(kernel_);
    return at >= begin && at < begin + kernel_->size();
  }
  char* shared() { return shared_.get(); }
  std::string name() const { return "thread " + text(threadIdx) + " of block " + text(blockIdx); }

 private:
  void start_block(unsigned threads);
  bool run_ready(unsigned threads, bool backwards);
  bool release_barrier(unsigned threads);
  std::string who_waits(unsigned threads) const;
  Meeting& meeting(Warp& warp, unsigned mask, bool is_barrier, const Place& place);

  struct Object {
    const void* key;
    size_t at;
  };
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Warp> warps_;
  std::unique_ptr<char[]> shared_ = std::make_unique<char[]>(kMostShared);
  std::vector<Object> objects_;
  size_t shared_used_ = 0, dynamic_bytes_ = 0;
  size_t running_ = 0;
  bool active_ = false;
  Thread thread_ = {};
  int sum_ = 0, last_sum_ = 0;
  std::string failure_;
  const BoundKernel* kernel_ = nullptr;
};

Grid& grid() {
  static Grid& the_grid = *new Grid;
  return the_grid;
}

void run_thread(void* kernel) { static_cast<const BoundKernel*>(kernel)->run_thread(); }

void Grid::start_block(unsigned threads) {
  while (lanes_.size() < threads) lanes_.push_back(std::make_unique<Lane>());
  warps_.resize((threads + warpSize - 1) / warpSize);
  for (Warp& warp : warps_) {
    for (auto& m : warp.meetings) warp.spare.push_back(std::move(m));
    warp.meetings.clear();
    warp.barriers = 0;
  }
  objects_.clear();
  std::memset(shared_.get(), 0xff, std::max(shared_used_, dynamic_bytes_));
  shared_used_ = dynamic_bytes_;
  ++thread_.block_serial;
  thread_.barriers = 0;
  sum_ = 0;
  for (unsigned t = 0; t < threads; ++t) {
    Lane& lane = *lanes_[t];
    lane.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
    lane.wait = Wait::kNothing;
    lane.fiber.start(run_thread, const_cast<BoundKernel*>(kernel_));
  }
}

// Runs every thread that is not waiting until it waits. Returns whether there was one.
bool Grid::run_ready(unsigned threads, bool backwards) {
  bool any = false;
  for (unsigned i = 0; i < threads && failure_.empty(); ++i) {
    const unsigned t = backwards ? threads - 1 - i : i;
    Lane& lane = *lanes_[t];
    if (lane.wait != Wait::kNothing) continue;
    any = true;
    running_ = t;
    thread_.thread = t;
    threadIdx = lane.index;
    active_ = true;
    lane.fiber.resume();
    active_ = false;
    if (lane.fiber.ended()) lane.wait = Wait::kEnded;
  }
  return any;
}

std::string Grid::who_waits(unsigned threads) const {
  const Lane *waiting = nullptr, *other = nullptr;
  for (unsigned t = 0; t < threads; ++t) {
    const Lane& lane = *lanes_[t];
    if (lane.wait == Wait::kEnded) other = other ? other : &lane;
    else if (!waiting) waiting = &lane;
  }
  const std::string first = "thread " + text(waiting->index) + " of block " + text(blockIdx) + " waits at " +
                            text(waiting->place) + " for threads that ";
  for (unsigned t = 0; t < threads; ++t) {
    const Lane& lane = *lanes_[t];
    if (lane.wait != Wait::kEnded && !same(lane.place, waiting->place)) {
      return first + "wait elsewhere: thread " + text(lane.index) + " at " + text(lane.place);
    }
  }
  return first + (other ? "have ended, such as " + text(other->index) : std::string("do not come"));
}

// If all threads wait at one barrier, they go on. Returns whether they do.
bool Grid::release_barrier(unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) {
    if (lanes_[t]->wait != Wait::kBarrier || !same(lanes_[t]->place, lanes_[0]->place)) return false;
  }
  for (unsigned t = 0; t < threads; ++t) lanes_[t]->wait = Wait::kNothing;
  ++thread_.barriers;
  last_sum_ = std::exchange(sum_, 0);
  return true;
}

std::string Grid::run(const cudaLaunchConfig_t& config, const BoundKernel& kernel, int device) {
  const dim3 g = config.gridDim, b = config.blockDim;
  const uint64_t threads = static_cast<uint64_t>(b.x) * b.y * b.z;
  if (threads == 0 || threads > kMostThreads || g.x == 0 || g.y == 0 || g.z == 0 || g.y > 65535 || g.z > 65535) {
    return "a grid or block with too many or no threads";
  }
  if (config.dynamicSmemBytes > kMostShared) return "too much dynamic shared memory";
  gridDim = g;
  blockDim = b;
  kernel_ = &kernel;
  dynamic_bytes_ = config.dynamicSmemBytes;
  failure_.clear();
  ++thread_.launch;
  thread_.device = device;
  const uint64_t blocks = static_cast<uint64_t>(g.x) * g.y * g.z;
  // Every second launch runs its blocks and threads in descending order.
  const bool backwards = thread_.launch % 2 == 0;
  for (uint64_t i = 0; i < blocks && failure_.empty(); ++i) {
    const uint64_t block = backwards ? blocks - 1 - i : i;
    blockIdx = {static_cast<unsigned>(block % g.x), static_cast<unsigned>(block / g.x % g.y),
                static_cast<unsigned>(block / g.x / g.y)};
    thread_.block = static_cast<uint32_t>(block);
    start_block(static_cast<unsigned>(threads));
    const unsigned n = static_cast<unsigned>(threads);
    while (failure_.empty()) {
      if (run_ready(n, backwards) || release_barrier(n)) continue;
      const bool done =
          std::all_of(lanes_.begin(), lanes_.begin() + n, [](const auto& l) { return l->wait == Wait::kEnded; });
      if (!done) failure_ = who_waits(n);
      break;
    }
  }
  return failure_;
}

Meeting& Grid::meeting(Warp& warp, unsigned mask, bool is_barrier, const Place& place) {
  for (const auto& m : warp.meetings) {
    if (m->mask == mask && m->arrived != mask) {
      if (m->is_barrier != is_barrier || !same(m->place, place)) {
        fail(name() + " is at " + text(place) + " while others of its warp are at " + text(m->place));
      }
      return *m;
    }
  }
  if (warp.spare.empty()) warp.spare.push_back(std::make_unique<Meeting>());
  warp.meetings.push_back(std::move(warp.spare.back()));
  warp.spare.pop_back();
  Meeting& m = *warp.meetings.back();
  m.mask = mask;
  m.arrived = m.left = 0;
  m.is_barrier = is_barrier;
  m.place = place;
  return m;
}

void Grid::meet(unsigned mask, uint64_t value, bool is_barrier, const Place& place) {
  const size_t mine = running_ % warpSize;
  if (!(mask >> mine & 1)) fail(name() + " is not in the mask " + text(mask) + " that it uses at " + text(place));
  Warp& warp = warps_[running_ / warpSize];
  Meeting& m = meeting(warp, mask, is_barrier, place);
  m.values[mine] = value;
  m.arrived |= 1u << mine;
  Lane& lane = running();
  if (m.arrived == mask) {
    if (is_barrier) ++warp.barriers;
    const size_t first = running_ / warpSize * warpSize;
    for (size_t i = 0; i < warpSize; ++i) {
      if ((mask >> i & 1) && i != mine) lanes_[first + i]->wait = Wait::kNothing;
    }
  } else {
    wait(Wait::kWarp, place);
  }
  std::copy(m.values, m.values + warpSize, lane.values);
  m.left |= 1u << mine;
  if (m.left == mask) {
    const auto at =
        std::find_if(warp.meetings.begin(), warp.meetings.end(), [&](const auto& p) { return p.get() == &m; });
    warp.spare.push_back(std::move(*at));
    warp.meetings.erase(at);
  }
}

void* Grid::object(const void* key, size_t bytes) {
  for (const Object& o : objects_) {
    if (o.key == key) return shared_.get() + o.at;
  }
  const size_t at = (shared_used_ + 15) / 16 * 16;
  if (at + bytes > kMostShared) fail("the block's shared memory exceeds " + std::to_string(kMostShared) + " bytes");
  objects_.push_back({key, at});
  std::memset(shared_.get() + at, 0xff, bytes);
  shared_used_ = at + bytes;
  return shared_.get() + at;
}

}  // namespace

std::string run_grid(const cudaLaunchConfig_t& config, const BoundKernel& kernel, int device) {
  return grid().run(config, kernel, device);
}
bool in_kernel() { return grid().active(); }
const Thread& running_thread() { return grid().thread(); }
bool on_running_stack(const void* address) { return grid().running().fiber.has(address); }
bool is_argument(const void* address) { return grid().is_argument(address); }
const char* shared_begin() { return grid().shared(); }
bool is_shared(const void* address, size_t bytes) {
  const char *p = static_cast<const char*>(address), *begin = grid().shared();
  return p >= begin && p + bytes <= begin + kMostShared;
}
void fail(const std::string& what) { grid().fail(what); }
std::string running_thread_name() { return grid().name(); }

// ---- The functions of the language ----

void barrier(Place place) { grid().barrier_sum(0, place); }
int barrier_sum(int value, Place place) { return grid().barrier_sum(value, place); }
void warp_barrier(unsigned mask, Place place) { grid().meet(mask, 0, true, place); }
int lane() { return static_cast<int>(running_thread().thread % warpSize); }
void exchange(unsigned mask, uint64_t value, Place place) { grid().meet(mask, value, false, place); }
uint64_t exchanged(int lane) { return grid().running().values[lane]; }
void* shared_object(const void* key, size_t bytes) { return grid().object(key, bytes); }
void* dynamic_shared() { return grid().shared(); }
void load_aligned(const void* address, void* to, size_t bytes) {
  const void* const caller = __builtin_return_address(0);
  check_alignment(address, bytes, caller);
  check_access(address, bytes, Access::kRead, caller);
  std::memcpy(to, address, bytes);
}
void store_aligned(void* address, const void* from, size_t bytes) {
  const void* const caller = __builtin_return_address(0);
  check_alignment(address, bytes, caller);
  check_access(address, bytes, Access::kWrite, caller);
  std::memcpy(address, from, bytes);
}
void load_atomic(const void* address, void* to, size_t bytes) {
  check_access(address, bytes, Access::kAtomic, __builtin_return_address(0));
  std::memcpy(to, address, bytes);
}
void store_atomic(void* address, const void* from, size_t bytes) { std::memcpy(address, from, bytes); }

}  // namespace cuda_stand_in
