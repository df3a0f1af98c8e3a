#include "src/text/grammar/stack.h"

#include <algorithm>

namespace infer::grammar {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) + 0x9E3779B97F4A7C15u;
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9u;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBu;
  return hash ^ (hash >> 31);
}

uint64_t hash_of(const Frame& frame) {
  const uint64_t hash = mix(1, frame.to * uint64_t{2} + (frame.is_loop ? 1 : 0));
  return frame.is_loop ? mix(mix(hash, frame.need), frame.more) : hash;
}

}  // namespace

void Stack::set_hash(Node* node) {
  std::vector<uint64_t> below = {node->below ? node->below->hash : 0};
  for (const Node* other : node->more) below.push_back(other ? other->hash : 0);
  std::sort(below.begin(), below.end());
  uint64_t hash = hash_of(node->frame);
  for (const uint64_t b : below) hash = mix(hash, b);
  node->hash = hash | 1;
}

Stack Stack::pushed(const Frame& frame) const {
  Stack out;
  out.top_ = new Node{.frame = frame, .below = top_};
  retain(top_);
  set_hash(out.top_);
  return out;
}

bool Stack::operator==(const Stack& other) const {
  if (top_ == other.top_) return true;
  return top_ && other.top_ && top_->hash == other.top_->hash && top_->frame == other.top_->frame;
}

// Iterative, because stacks can be deeper than the call stack allows.
void Stack::release(Node* node) {
  Node* dead = nullptr;
  const auto drop = [&](Node* n) {
    if (n && n->references.fetch_sub(1, std::memory_order_acq_rel) == 1) n->next_dead = std::exchange(dead, n);
  };
  drop(node);
  while (dead) {
    Node* next = std::exchange(dead, dead->next_dead);
    drop(next->below);
    for (Node* below : next->more) drop(below);
    delete next;
  }
}

Stack StackBuilder::push(const Stack& stack, const Frame& frame, uint32_t start) {
  if (fresh_.size() * 2 >= by_key_.size()) grow();
  const size_t slot = find(frame, start);
  if (by_key_[slot].second == kNoId) {
    by_key_[slot] = {mix(hash_of(frame), start), static_cast<uint32_t>(fresh_.size())};
    Stack out;
    out.top_ = new Stack::Node{.frame = frame, .below = stack.top_};
    Stack::retain(stack.top_);
    fresh_.push_back({out, start});
    return out;
  }
  const Stack& out = fresh_[by_key_[slot].second].stack;
  Stack::Node* node = out.top_;
  const uint64_t wanted = identity(stack);
  const auto same = [&](Stack::Node* below) { return identity(Stack::share(below)) == wanted; };
  if (!same(node->below) && std::none_of(node->more.begin(), node->more.end(), same)) {
    node->more.push_back(stack.top_);
    Stack::retain(stack.top_);
  }
  return out;
}

uint64_t StackBuilder::identity(const Stack& stack) {
  if (stack.empty()) return 0;
  return stack.top_->hash != 0 ? stack.top_->hash : reinterpret_cast<uintptr_t>(stack.top_);  // hashes are odd
}

size_t StackBuilder::find(const Frame& frame, uint32_t start) {
  const uint64_t hash = mix(hash_of(frame), start);
  size_t slot = hash & (by_key_.size() - 1);
  for (; by_key_[slot].second != kNoId; slot = (slot + 1) & (by_key_.size() - 1)) {
    const Fresh& fresh = fresh_[by_key_[slot].second];
    if (by_key_[slot].first == hash && fresh.start == start && fresh.stack.top() == frame) break;
  }
  return slot;
}

void StackBuilder::grow() {
  by_key_.assign(std::max<size_t>(16, by_key_.size() * 2), {0, kNoId});
  for (uint32_t i = 0; i < fresh_.size(); ++i) {
    const Frame& frame = fresh_[i].stack.top();
    by_key_[find(frame, fresh_[i].start)] = {mix(hash_of(frame), fresh_[i].start), i};
  }
}

// Hashes are computed bottom up. A node is never below itself, because the grammar has no left recursion.
void StackBuilder::finish() {
  std::vector<Stack::Node*> rest;
  for (const Fresh& fresh : fresh_) {
    rest.push_back(fresh.stack.top_);
    while (!rest.empty()) {
      Stack::Node* node = rest.back();
      const size_t n = rest.size();
      const auto wait_for = [&](Stack::Node* below) {
        if (below && below->hash == 0) rest.push_back(below);
      };
      if (node->hash == 0) {
        wait_for(node->below);
        for (Stack::Node* below : node->more) wait_for(below);
      }
      if (rest.size() > n) continue;
      if (node->hash == 0) Stack::set_hash(node);
      rest.pop_back();
    }
  }
}

}  // namespace infer::grammar
