#include "src/hub/variants.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>

namespace infer {
namespace {

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

// PREFIX-00002-of-00005.gguf
struct SplitName {
  std::string_view prefix;
  int index = 0, count = 0;
};

std::optional<SplitName> parse_split_name(std::string_view path) {
  constexpr std::string_view kForm = "-00000-of-00000.gguf";
  if (path.size() <= kForm.size()) return std::nullopt;
  const std::string_view end = path.substr(path.size() - kForm.size());
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? !std::isdigit(static_cast<unsigned char>(end[i])) : end[i] != kForm[i]) return std::nullopt;
  }
  SplitName name{path.substr(0, path.size() - kForm.size()), 0, 0};
  std::from_chars(end.data() + 1, end.data() + 6, name.index);
  std::from_chars(end.data() + 10, end.data() + 15, name.count);
  if (name.index < 1 || name.count < 1 || name.index > name.count) return std::nullopt;
  return name;
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_no_model(std::string_view path) {
  const std::string name = lower_case(file_name(path));
  if (!name.ends_with(".gguf")) return true;
  for (const char* part : {"mmproj", "imatrix"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  for (const char* start : {"mtp-", "eagle3-", "dflash-", "dspark-"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

// Whether a word is a quantization: Q4_K_M, IQ2_XXS, TQ1_0, BF16, MXFP4_MOE.
bool is_quantization(std::string_view word) {
  for (const char* whole : {"F16", "BF16", "F32", "FP16", "FP32"}) {
    if (word == whole) return true;
  }
  if (word.starts_with("MXFP") || word.starts_with("NVFP")) return word.size() > 4 && word[4] == '4';
  if (word.starts_with('I') || word.starts_with('T')) word.remove_prefix(1);
  return word.size() >= 4 && word[0] == 'Q' && word[1] >= '1' && word[1] <= '8' && word[2] == '_';
}

// The last quantization in a name whose words are separated by dashes and dots.
std::string last_quantization(std::string_view name) {
  std::string found;
  std::string_view before;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find_first_of("-.", at), name.size());
    const std::string_view word = name.substr(at, end - at);
    if (is_quantization(word)) found = before == "UD" ? "UD-" + std::string(word) : std::string(word);
    before = word;
    at = end + 1;
  }
  return found;
}

// Quantizations by how well they serve most people.
constexpr std::string_view kPreference[] = {
    "Q4_K_M",  "UD-Q4_K_XL", "Q4_K_XL", "Q4_K_L", "Q4_K_S", "IQ4_XS",  "IQ4_NL",  "MXFP4",  "MXFP4_MOE", "NVFP4",
    "Q4_0",    "Q4_1",       "Q5_K_M",  "Q5_K_S", "Q5_K_L", "Q5_0",    "Q5_1",    "Q6_K",   "Q6_K_L",    "Q8_0",
    "BF16",    "F16",        "F32",     "Q3_K_M", "Q3_K_L", "Q3_K_XL", "IQ3_M",   "Q3_K_S", "IQ3_S",     "IQ3_XS",
    "IQ3_XXS", "Q2_K_L",     "Q2_K",    "IQ2_M",  "IQ2_S",  "IQ2_XS",  "IQ2_XXS", "Q2_K_S", "IQ1_M",     "IQ1_S"};

// Of what is not in the list: between the known ones and the very small ones.
constexpr size_t kUnknownRank = 25;

size_t rank(std::string_view label) {
  const auto* known = std::find(std::begin(kPreference), std::end(kPreference), label);
  if (known == std::end(kPreference) && label.starts_with("UD-")) {
    known = std::find(std::begin(kPreference), std::end(kPreference), label.substr(3));
  }
  return known == std::end(kPreference) ? 2 * kUnknownRank + 1 : 2 * static_cast<size_t>(known - kPreference);
}

}  // namespace

uint64_t Variant::size() const {
  uint64_t sum = 0;
  for (const RemoteFile& file : files) sum += file.size;
  return sum;
}

std::string quantization_of(std::string_view path) {
  const std::string capitals = upper_case(path);
  std::string found = last_quantization(file_name(capitals));
  if (found.empty() && capitals.find('/') != std::string::npos) {
    const std::string_view folder = std::string_view(capitals).substr(0, capitals.rfind('/'));
    found = last_quantization(file_name(folder));
  }
  return found;
}

std::vector<Variant> group_variants(std::vector<RemoteFile> files) {
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  std::vector<Variant> variants;
  std::map<std::pair<std::string, int>, std::vector<RemoteFile>> splits;  // by prefix and count
  for (RemoteFile& file : files) {
    if (is_no_model(file.path)) continue;
    const std::optional<SplitName> split = parse_split_name(file.path);
    if (split) {
      splits[{std::string(split->prefix), split->count}].push_back(std::move(file));
    } else {
      variants.push_back({quantization_of(file.path), {std::move(file)}});
    }
  }
  for (auto& [key, parts] : splits) {
    // Sorted and distinct, so that a full count means that every part is there.
    if (parts.size() != static_cast<size_t>(key.second)) continue;
    variants.push_back({quantization_of(key.first + ".gguf"), std::move(parts)});
  }
  std::sort(variants.begin(), variants.end(),
            [](const Variant& a, const Variant& b) { return a.files[0].path < b.files[0].path; });
  return variants;
}

std::vector<Variant> matching_variants(const std::vector<Variant>& variants, std::string_view tag) {
  if (tag.empty()) return variants;
  const std::string wanted = upper_case(tag);
  std::vector<Variant> exact, similar;
  for (const Variant& variant : variants) {
    if (variant.label == wanted) {
      exact.push_back(variant);
    } else if (variant.label == "UD-" + wanted) {
      similar.push_back(variant);
    }
  }
  return exact.empty() ? similar : exact;
}

std::string variant_name(const std::string& base, const Variant& variant, const std::vector<Variant>& all) {
  const auto alike = std::count_if(all.begin(), all.end(), [&](const Variant& v) { return v.label == variant.label; });
  if (!variant.label.empty() && alike <= 1) return base + ":" + variant.label;
  return base + "/" + variant.files.front().path;
}

bool is_preferred(std::string_view label, std::string_view other) { return rank(label) < rank(other); }

void sort_by_preference(std::vector<Variant>& variants) {
  std::stable_sort(variants.begin(), variants.end(),
                   [](const Variant& a, const Variant& b) { return is_preferred(a.label, b.label); });
}

}  // namespace infer
