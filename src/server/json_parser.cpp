#include "src/server/json_parser.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/server/api_error.h"
#include "src/server/json_fields.h"

namespace infer {
namespace {

ApiError invalid_json(const std::string& what) { return ApiError(400, "invalid_request_error", what, "invalid_json"); }

// Builds the value from the parser's events. The library's own builder compares each member of an object with all
// earlier ones, and copies an object's contents whenever it grows.
class Builder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  Json take() { return std::move(root_); }
  const std::string& error() const { return error_; }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add(value); }
  bool number_unsigned(number_unsigned_t value) { return add(value); }
  bool number_float(number_float_t value, const string_t&) { return add(value); }
  bool string(string_t& value) { return add(std::move(value)); }
  bool binary(binary_t&) { return false; }  // does not occur in JSON text

  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool key(string_t& name) {
    Container& object = open_.back();
    object.slot = object.find(name);
    if (object.slot < object.members.size()) return true;
    if (object.members.size() == limits_.object_members) {
      return fail(concat("at most ", grouped(limits_.object_members), " members in an object"));
    }
    if (++n_members_ > limits_.members)
      return fail(concat("at most ", grouped(limits_.members), " members in all objects"));
    object.append(std::move(name));
    return true;
  }
  bool end_object() {
    Json::object_t object;
    object.reserve(open_.back().members.size());
    for (auto& [name, value] : open_.back().members) object.emplace_back(std::move(name), std::move(value));
    return close(std::move(object));
  }
  bool end_array() { return close(std::move(open_.back().elements)); }

  bool parse_error(size_t, const std::string&, const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string_view text = error.what();
    const size_t bracket = text.find("] ");
    error_ = expected_found("request", "a JSON object",
                            printable(bracket == text.npos ? text : text.substr(bracket + 2), 300));
    return false;
  }

 private:
  // An array or object that is still open.
  struct Container {
    bool is_object = false;
    Json::array_t elements;
    std::vector<std::pair<std::string, Json>> members;
    std::unordered_map<std::string, size_t> places;  // by name, once there are many members
    size_t slot = 0;                                 // of the member whose value comes next

    // The index of a member; members.size() for a new one.
    size_t find(const std::string& name) const {
      if (!places.empty()) {
        const auto found = places.find(name);
        return found == places.end() ? members.size() : found->second;
      }
      size_t i = 0;
      while (i < members.size() && members[i].first != name) ++i;
      return i;
    }

    void append(std::string name) {
      constexpr size_t kFew = 16;  // up to this many are compared one by one
      if (members.size() == kFew) {
        for (size_t i = 0; i < kFew; ++i) places.emplace(members[i].first, i);
      }
      if (members.size() >= kFew) places.emplace(name, members.size());
      members.emplace_back(std::move(name), nullptr);
    }
  };

  bool fail(const std::string& expected) {
    error_ = expected_found("request", "JSON with " + expected, "more");
    return false;
  }

  bool count_value() {
    return ++n_values_ <= limits_.values || fail(concat("at most ", grouped(limits_.values), " values"));
  }

  bool open(bool is_object) {
    if (open_.size() >= static_cast<size_t>(limits_.depth)) {
      error_ = expected_found("request", concat("JSON nested at most ", limits_.depth, " deep"), "deeper nesting");
      return false;
    }
    if (!count_value()) return false;
    open_.emplace_back().is_object = is_object;
    return true;
  }

  template <typename T>
  bool close(T&& content) {
    Json value(std::forward<T>(content));
    open_.pop_back();
    put(std::move(value));
    return true;
  }

  template <typename T>
  bool add(T&& value) {
    if (!count_value()) return false;
    put(Json(std::forward<T>(value)));
    return true;
  }

  void put(Json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Container& container = open_.back(); container.is_object) {
      container.members[container.slot].second = std::move(value);
    } else {
      container.elements.push_back(std::move(value));
    }
  }

  const JsonLimits& limits_;
  std::vector<Container> open_;
  Json root_;
  size_t n_members_ = 0, n_values_ = 0;
  std::string error_;
};

}  // namespace

Json parse_json_object(std::string_view body, const JsonLimits& limits) {
  Builder builder(limits);
  if (!Json::sax_parse(body, &builder)) throw invalid_json(builder.error());
  Json json = builder.take();
  if (!json.is_object()) throw invalid_json(expected_found("request", "a JSON object", describe_json(json)));
  return json;
}

}  // namespace infer
