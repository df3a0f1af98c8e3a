// The stacks of all ways to read a text, with common parts shared (a "graph-structured stack"): a node may have several
// nodes below it, if the same fragment was entered at the same place of the text from different ones. So even a highly
// ambiguous grammar needs at most text length times number of states nodes.
//
// A stack is a reference-counted pointer to an immutable node, so copies are cheap and may be used by different
// threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/text/grammar/rules.h"

namespace infer::grammar {

// Where a fragment was entered from.
struct Frame {
  bool is_loop = false;
  uint32_t to = 0;    // the state to return to, or the index of the loop
  uint32_t need = 0;  // of a loop: the minimum number of further iterations
  uint32_t more = 0;  // of a loop: the maximum number of further iterations; kUnbounded: no limit
  bool operator==(const Frame&) const = default;
};

class Stack {
 public:
  Stack() = default;
  Stack(const Stack& other) : top_(other.top_) { retain(top_); }
  Stack(Stack&& other) noexcept : top_(std::exchange(other.top_, nullptr)) {}
  Stack& operator=(Stack other) noexcept {
    std::swap(top_, other.top_);
    return *this;
  }
  ~Stack() { release(top_); }

  bool empty() const { return top_ == nullptr; }
  Stack pushed(const Frame& frame) const;

  // REQUIRED for these: not empty.
  const Frame& top() const { return top_->frame; }
  size_t n_below() const { return 1 + top_->more.size(); }
  Stack below(size_t i = 0) const { return share(i == 0 ? top_->below : top_->more[i - 1]); }

  // Equal stacks have equal hashes; different ones collide with the probability of a 64-bit hash.
  uint64_t hash() const { return top_ ? top_->hash : 0; }
  bool operator==(const Stack& other) const;

 private:
  friend class StackBuilder;
  struct Node {
    Frame frame;
    Node* below = nullptr;
    std::vector<Node*> more = {};  // further nodes below
    uint64_t hash = 0;             // 0: not complete yet
    Node* next_dead = nullptr;     // used while freeing
    std::atomic<uint32_t> references{1};
  };
  static void retain(Node* node) {
    if (node) node->references.fetch_add(1, std::memory_order_relaxed);
  }
  static void release(Node* node);
  static Stack share(Node* node) {
    retain(node);
    Stack out;
    out.top_ = node;
    return out;
  }
  static void set_hash(Node* node);

  Node* top_ = nullptr;
};

// Pushes onto several stacks at the same place of the text.
class StackBuilder {
 public:
  // Returns `stack` with `frame` on top, for a fragment that begins at `start`. Until finish() the result may still get
  // more stacks below it and must not be popped.
  Stack push(const Stack& stack, const Frame& frame, uint32_t start);
  // Distinguishes stacks, complete or not.
  static uint64_t identity(const Stack& stack);
  void finish();

 private:
  struct Fresh {
    Stack stack;
    uint32_t start;
  };
  std::vector<Fresh> fresh_;
  std::vector<std::pair<uint64_t, uint32_t>> by_key_;  // hash of frame and start -> index; a table of 2^n slots
  size_t find(const Frame& frame, uint32_t start);
  void grow();
};

}  // namespace infer::grammar
