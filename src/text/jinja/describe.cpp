#include "src/text/jinja/describe.h"

namespace infer::jinja {

std::string describe(const Node& node, const SyntaxTree& tree) {
  constexpr size_t kLongest = 60;
  switch (node.kind) {
    case NodeKind::kAttribute:
      return "." + static_cast<const Attribute&>(node).name->text.substr(0, kLongest);
    case NodeKind::kSubscript:
      return "[]";
    case NodeKind::kCall: {
      const Expression callee = static_cast<const Call&>(node).callee;
      if (callee->kind == NodeKind::kName) {
        return tree.symbols[static_cast<const Name*>(callee)->symbol].substr(0, kLongest);
      }
      if (callee->kind == NodeKind::kAttribute) {
        return "." + static_cast<const Attribute*>(callee)->name->text.substr(0, kLongest) + "()";
      }
      return "call";
    }
    case NodeKind::kFilter:
      return "filter " + static_cast<const Apply&>(node).name->text.substr(0, kLongest);
    case NodeKind::kTest:
      return "test " + static_cast<const Apply&>(node).name->text.substr(0, kLongest);
    case NodeKind::kNegate:
    case NodeKind::kPlus:
    case NodeKind::kBinary: {
      constexpr const char* kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};
      if (node.kind == NodeKind::kNegate) return "unary -";
      if (node.kind == NodeKind::kPlus) return "unary +";
      return kSigns[static_cast<size_t>(static_cast<const Binary&>(node).op)];
    }
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
