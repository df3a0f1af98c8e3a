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

constinit thread_local Thread running_thread;
char* const shared_begin = new char[kMostShared];

namespace {

std::string text(const Place& place) {
  const std::string file = place.file_name();
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(place.line());
}
bool same(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
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
  unsigned arrived = 0, left = 0;  // a lane leaves when it comes to its next one: until then it reads values
  bool is_barrier;
  Place place;
  uint64_t values[warpSize] = {};
};
using Together = void (*)(const uint64_t (&values)[warpSize]);

struct Warp {
  std::vector<std::unique_ptr<Meeting>> meetings, spare;
  uint32_t barriers = 0;  // since the epoch began
};

enum class Wait { kNothing, kBarrier, kWarp, kEnded };

struct Lane {
  Fiber* fiber = nullptr;  // while it runs
  uint3 index = {};
  Wait wait = Wait::kEnded;
  Place place;
  Meeting* last = nullptr;
};

class Grid {
 public:
  std::string run(const cudaLaunchConfig_t& config, const BoundKernel& kernel, int device);

  Lane& running() { return lanes_[running_thread.thread]; }
  [[noreturn]] void fail(const std::string& what) {
    failure_ = what;
    running().fiber->yield();
    __builtin_unreachable();
  }
  void wait(Wait for_what, const Place& place) {
    Lane& lane = running();
    lane.wait = for_what;
    lane.place = place;
#ifdef INFER_FIBERS_PASS
    if (Lane* const next = next_ready()) {
      enter(*next);
      return lane.fiber->pass(*next->fiber);
    }
#endif
    lane.fiber->yield();
  }
  int barrier_sum(int value, const Place& place) {
    sum_ += value;
    wait(Wait::kBarrier, place);
    return last_sum_;
  }
  void meet(unsigned mask, uint64_t value, bool is_barrier, const Place& place, Together together = nullptr);
  uint64_t exchanged(int lane) { return running().last->values[lane]; }
  void* object(const void* key, size_t bytes);
  bool is_argument(const void* p) const {
    const char *at = static_cast<const char*>(p), *begin = reinterpret_cast<const char*>(kernel_);
    return at >= begin && at < begin + kernel_->size();
  }
  std::string name() const { return "thread " + text(threadIdx) + " of block " + text(blockIdx); }

 private:
  void start_launch(unsigned threads);
  void start_block(unsigned threads);
  void start_epoch();
  void leave(Warp& warp, Lane& lane, unsigned bit);
  Lane* next_ready();
  void enter(Lane& lane);
  bool run_ready();
  bool release_barrier(unsigned threads);
  std::string who_waits(unsigned threads) const;
  Meeting& meeting(Warp& warp, unsigned mask, bool is_barrier, const Place& place);

  struct Object {
    const void* key;
    size_t at;
  };
  std::vector<Lane> lanes_;  // of a block
  std::vector<Warp> warps_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;  // of them
  std::vector<Object> objects_;
  size_t shared_used_ = 0, dynamic_bytes_ = 0;
  size_t next_ = 0;         // place in the order of threads
  bool backwards_ = false;  // the order
  Thread counts_ = {};      // of the launches, blocks and barriers so far
  int sum_ = 0, last_sum_ = 0;
  std::string failure_;
  const BoundKernel* kernel_ = nullptr;
};

Grid& the_grid = *new Grid;  // outlives every static object of the program
Grid& grid() { return the_grid; }

void run_thread(void* kernel) { static_cast<const BoundKernel*>(kernel)->run_thread(); }

void Grid::start_launch(unsigned threads) {
  lanes_.resize(threads);
  warps_.resize((threads + warpSize - 1) / warpSize);
  idle_.clear();
  for (const auto& fiber : fibers_) idle_.push_back(fiber.get());
  for (unsigned t = 0; t < threads; ++t) {
    lanes_[t].index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
    lanes_[t].fiber = nullptr;
  }
}

void Grid::start_epoch() {
  ++counts_.epoch;
  for (Warp& warp : warps_) warp.barriers = 0;
}

void Grid::start_block(unsigned threads) {
  for (Warp& warp : warps_) {
    for (auto& m : warp.meetings) warp.spare.push_back(std::move(m));
    warp.meetings.clear();
  }
  objects_.clear();
  std::memset(shared_begin, 0xff, std::max(shared_used_, dynamic_bytes_));
  shared_used_ = dynamic_bytes_;
  ++counts_.block_serial;
  counts_.barriers = 0;
  start_epoch();
  sum_ = 0;
  for (unsigned t = 0; t < threads; ++t) {
    lanes_[t].wait = Wait::kNothing;
    lanes_[t].last = nullptr;
  }
}

// The next thread in the order of this launch that is not waiting, none after the last one.
Lane* Grid::next_ready() {
  while (next_ < lanes_.size()) {
    Lane& lane = lanes_[backwards_ ? lanes_.size() - 1 - next_ : next_];
    ++next_;
    if (lane.wait == Wait::kNothing) return &lane;
  }
  return nullptr;
}

// Makes it the running thread. A thread gets its fiber when it begins, so threads that never wait all run on the same.
void Grid::enter(Lane& lane) {
  if (!lane.fiber) {
    if (idle_.empty()) idle_.push_back(fibers_.emplace_back(std::make_unique<Fiber>()).get());
    lane.fiber = idle_.back();
    idle_.pop_back();
    lane.fiber->start(run_thread, const_cast<BoundKernel*>(kernel_));
  }
  const auto t = static_cast<uint32_t>(&lane - lanes_.data());
  running_thread.thread = t;
  running_thread.epoch = counts_.epoch;
  running_thread.warp_barriers = warps_[t / warpSize].barriers;
  running_thread.stack = lane.fiber->stack();
  threadIdx = lane.index;
}

// Runs every thread that is not waiting until it waits. Returns whether there was one.
bool Grid::run_ready() {
  bool any = false;
  next_ = 0;
  running_thread = counts_;
  while (Lane* const first = failure_.empty() ? next_ready() : nullptr) {
    any = true;
    enter(*first);
    first->fiber->resume();
    running_thread.stack = nullptr;
    Lane& last = running();  // threads that wait pass on to the next one
    if (!last.fiber->ended()) continue;
    last.wait = Wait::kEnded;
    idle_.push_back(std::exchange(last.fiber, nullptr));
  }
  return any;
}

std::string Grid::who_waits(unsigned threads) const {
  const Lane *waiting = nullptr, *other = nullptr;
  for (unsigned t = 0; t < threads; ++t) {
    const Lane& lane = lanes_[t];
    if (lane.wait == Wait::kEnded) other = other ? other : &lane;
    else if (!waiting) waiting = &lane;
  }
  const std::string first = "thread " + text(waiting->index) + " of block " + text(blockIdx) + " waits at " +
                            text(waiting->place) + " for threads that ";
  for (unsigned t = 0; t < threads; ++t) {
    const Lane& lane = lanes_[t];
    if (lane.wait != Wait::kEnded && !same(lane.place, waiting->place)) {
      return first + "wait elsewhere: thread " + text(lane.index) + " at " + text(lane.place);
    }
  }
  return first + (other ? "have ended, such as " + text(other->index) : std::string("do not come"));
}

// If all threads wait at one barrier, they go on. Returns whether they do.
bool Grid::release_barrier(unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) {
    if (lanes_[t].wait != Wait::kBarrier || !same(lanes_[t].place, lanes_[0].place)) return false;
  }
  for (unsigned t = 0; t < threads; ++t) lanes_[t].wait = Wait::kNothing;
  ++counts_.barriers;
  start_epoch();
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
  ++counts_.launch;
  counts_.device = device;
  const unsigned n = static_cast<unsigned>(threads);
  start_launch(n);
  const uint64_t blocks = static_cast<uint64_t>(g.x) * g.y * g.z;
  // Every second launch runs its blocks and threads in descending order.
  backwards_ = counts_.launch % 2 == 0;
  for (uint64_t i = 0; i < blocks && failure_.empty(); ++i) {
    const uint64_t block = backwards_ ? blocks - 1 - i : i;
    blockIdx = {static_cast<unsigned>(block % g.x), static_cast<unsigned>(block / g.x % g.y),
                static_cast<unsigned>(block / g.x / g.y)};
    counts_.block = static_cast<uint32_t>(block);
    start_block(n);
    while (failure_.empty()) {
      if (run_ready() || release_barrier(n)) continue;
      const bool done = std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.wait == Wait::kEnded; });
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

void Grid::leave(Warp& warp, Lane& lane, unsigned bit) {
  Meeting* const m = std::exchange(lane.last, nullptr);
  if (!m || (m->left |= bit) != m->mask) return;
  const auto at = std::find_if(warp.meetings.begin(), warp.meetings.end(), [&](const auto& p) { return p.get() == m; });
  warp.spare.push_back(std::move(*at));
  warp.meetings.erase(at);
}

void Grid::meet(unsigned mask, uint64_t value, bool is_barrier, const Place& place, Together together) {
  const size_t mine = running_thread.thread % warpSize, first = running_thread.thread - mine;
  const unsigned bit = 1u << mine;
  if (!(mask & bit)) fail(name() + " is not in the mask " + text(mask) + " that it uses at " + text(place));
  Warp& warp = warps_[first / warpSize];
  Lane& lane = running();
  leave(warp, lane, bit);
  Meeting& m = meeting(warp, mask, is_barrier, place);
  m.values[mine] = value;
  m.arrived |= bit;
  lane.last = &m;
  if (m.arrived != mask) return wait(Wait::kWarp, place);
  if (is_barrier) {
    if (++warp.barriers > kMostWarpBarriers) start_epoch();
    running_thread.epoch = counts_.epoch;
    running_thread.warp_barriers = warp.barriers;
  }
  if (together) together(m.values);
  for (size_t i = 0; i < warpSize; ++i) {
    if ((mask >> i & 1) && i != mine) lanes_[first + i].wait = Wait::kNothing;
  }
}

void* Grid::object(const void* key, size_t bytes) {
  for (const Object& o : objects_) {
    if (o.key == key) return shared_begin + o.at;
  }
  const size_t at = (shared_used_ + 15) / 16 * 16;
  if (at + bytes > kMostShared) fail("the block's shared memory exceeds " + std::to_string(kMostShared) + " bytes");
  objects_.push_back({key, at});
  std::memset(shared_begin + at, 0xff, bytes);
  shared_used_ = at + bytes;
  return shared_begin + at;
}

}  // namespace

std::string run_grid(const cudaLaunchConfig_t& config, const BoundKernel& kernel, int device) {
  return grid().run(config, kernel, device);
}
bool is_argument(const void* address) { return grid().is_argument(address); }
void fail(const std::string& what) { grid().fail(what); }
std::string running_thread_name() { return grid().name(); }
void exchange_all(uint64_t value, Together together, Place place) { grid().meet(~0u, value, false, place, together); }

// ---- The functions of the language ----

void barrier(Place place) { grid().barrier_sum(0, place); }
int barrier_sum(int value, Place place) { return grid().barrier_sum(value, place); }
void warp_barrier(unsigned mask, Place place) { grid().meet(mask, 0, true, place); }
int lane() { return static_cast<int>(running_thread.thread % warpSize); }
void exchange(unsigned mask, uint64_t value, Place place) { grid().meet(mask, value, false, place); }
uint64_t exchanged(int lane) { return grid().exchanged(lane); }
void* shared_object(const void* key, size_t bytes) { return grid().object(key, bytes); }
void* dynamic_shared() { return shared_begin; }
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
