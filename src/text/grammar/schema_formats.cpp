#include "src/text/grammar/schema_formats.h"

#include <algorithm>

namespace infer::grammar {
namespace {

using FormatKind = SchemaFormat::Kind;

// Gregorian: 29 February only in leap years, as validators check.
const std::string& date() {
  static const std::string text =
      "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
      "02-(0[1-9]|1[0-9]|2[0-8]))|"
      "([0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)";
  return text;
}

const std::string& time() {
  static const std::string text =
      "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
  return text;
}

std::string duration() {
  const std::string clock = "T([0-9]{1,9}H([0-9]{1,9}M)?([0-9]{1,9}S)?|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S)";
  const std::string days = "([0-9]{1,9}Y([0-9]{1,9}M)?([0-9]{1,9}D)?|[0-9]{1,9}M([0-9]{1,9}D)?|[0-9]{1,9}D)";
  return "P(" + days + "(" + clock + ")?|" + clock + "|[0-9]{1,9}W)";
}

std::string ipv4() {
  const std::string part = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  return "(" + part + "\\.){3}" + part;
}

std::string ipv6() {
  const std::string h = "[0-9a-fA-F]{1,4}";
  std::string all = "((" + h + ":){7}" + h + "|(" + h + ":){1,7}:|:(:" + h + "){1,7}|::";
  for (int before = 1; before <= 6; ++before)
    all += "|(" + h + ":){" + std::to_string(before) + "}(:" + h + "){1," + std::to_string(7 - before) + "}";
  return all + ")";
}

// At most 249 characters; validators stop at 253.
const std::string& hostname() {
  static const std::string text = [] {
    const std::string label = "[A-Za-z0-9]([A-Za-z0-9-]{0,46}[A-Za-z0-9])?";
    return label + "(\\." + label + "){0,4}";
  }();
  return text;
}

std::string email() {
  const std::string label = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?";
  return "[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@(" + label + "\\.)+" + label;
}

std::string uri() {
  return "(https?|ftp)://" + hostname() +
         "(:[0-9]{1,5})?(/[A-Za-z0-9._~:@!$&'()*+,;=-]*)*(\\?[A-Za-z0-9._~:@!$&'()*+,;=/?-]*)?"
         "(#[A-Za-z0-9._~:@!$&'()*+,;=/?-]*)?";
}

std::string uuid() { return "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"; }

// Formats that ajv-formats checks besides those above.
constexpr std::string_view kUnsupported[] = {
    "iso-time",      "iso-date-time",
    "uri-reference", "uri-template",
    "url",           "regex",
    "byte",          "json-pointer",
    "int32",         "json-pointer-uri-fragment",
    "int64",         "relative-json-pointer",
    "float",         "double",
    "password",      "binary",
    "idn-email",     "idn-hostname",
    "iri",           "iri-reference",
};

}  // namespace

SchemaFormat schema_format(std::string_view name) {
  if (name == "date") return {FormatKind::kPattern, date(), 10};
  if (name == "time") return {FormatKind::kPattern, time(), 9};
  if (name == "date-time") return {FormatKind::kPattern, date() + "T" + time(), 20};
  if (name == "duration") return {FormatKind::kPattern, duration(), 3};
  if (name == "ipv4") return {FormatKind::kPattern, ipv4(), 7};
  if (name == "ipv6") return {FormatKind::kPattern, ipv6(), 2};
  if (name == "hostname") return {FormatKind::kPattern, hostname(), 1};
  if (name == "email") return {FormatKind::kPattern, email(), 5};
  if (name == "uri") return {FormatKind::kPattern, uri(), 7};
  if (name == "uuid") return {FormatKind::kPattern, uuid(), 36};
  const bool checked = std::find(std::begin(kUnsupported), std::end(kUnsupported), name) != std::end(kUnsupported);
  return {checked ? FormatKind::kUnsupported : FormatKind::kAnnotation, {}};
}

}  // namespace infer::grammar
