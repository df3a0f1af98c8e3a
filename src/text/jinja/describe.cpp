#include "src/text/jinja/describe.h"

namespace infer::jinja {
namespace {

constexpr size_t kLongest = 60;  // bytes of a name

std::string describe_call(const Call& call, const SyntaxTree& tree) {
  const Expression callee = call.callee;
  if (callee->kind == NodeKind::kName) {
    return tree.symbols[static_cast<const Name*>(callee)->symbol].substr(0, kLongest);
  }
  if (callee->kind == NodeKind::kAttribute) {
    return "." + static_cast<const Attribute*>(callee)->name->text.substr(0, kLongest) + "()";
  }
  return "call";
}

std::string describe_operator(const Node& node) {
  constexpr const char* kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};
  if (node.kind == NodeKind::kNegate) return "unary -";
  if (node.kind == NodeKind::kPlus) return "unary +";
  return kSigns[static_cast<size_t>(static_cast<const Binary&>(node).op)];
}

}  // namespace

std::string describe(const Node& node, const SyntaxTree& tree) {
  switch (node.kind) {
    case NodeKind::kAttribute:
      return "." + static_cast<const Attribute&>(node).name->text.substr(0, kLongest);
    case NodeKind::kSubscript:
      return "[]";
    case NodeKind::kCall:
      return describe_call(static_cast<const Call&>(node), tree);
    case NodeKind::kFilter:
      return "filter " + static_cast<const Apply&>(node).name->text.substr(0, kLongest);
    case NodeKind::kTest:
      return "test " + static_cast<const Apply&>(node).name->text.substr(0, kLongest);
    case NodeKind::kNegate:
    case NodeKind::kPlus:
    case NodeKind::kBinary:
      return describe_operator(node);
    case NodeKind::kCompare:
      return "comparison";
    case NodeKind::kConcat:
      return "~";
    case NodeKind::kDict:
      return "dict";
    case NodeKind::kFor:
      return "for";
    case NodeKind::kIf:
      return "if";
    case NodeKind::kSet:
    case NodeKind::kSetBlock:
      return "set";
    case NodeKind::kFilterBlock:
      return "filter";
    case NodeKind::kMacro:
      return "macro";
    case NodeKind::kCallBlock:
      return "call";
    case NodeKind::kWith:
      return "with";
    case NodeKind::kBlock:
      return "block";
    case NodeKind::kScope:
      return "generation";
    case NodeKind::kAutoescape:
      return "autoescape";
    case NodeKind::kData:
      return "text";
    default:
      return "expression";
  }
}

}  // namespace infer::jinja
