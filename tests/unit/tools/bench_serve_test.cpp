// The parts of infer bench-serve that need no network: parsing streams and addresses, statistics, the plot.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "ggml-like/error.h"
#include "tools/bench_serve/answer_stream.h"
#include "tools/bench_serve/latency.h"
#include "tools/bench_serve/load.h"
#include "tools/bench_serve/plot.h"
#include "tools/bench_serve/sse_parser.h"

using namespace infer;

namespace {

using Events = std::vector<std::string>;

// The events of a text that arrives in pieces of `size` bytes.
Events events_of(std::string_view text, size_t size) {
  SseParser parser;
  Events events;
  for (size_t at = 0; at < text.size(); at += size) {
    parser.feed(text.substr(at, size), [&](std::string_view data) { events.emplace_back(data); });
  }
  return events;
}

std::string chunk(const std::string& content) {
  return "data: {\"choices\":[{\"delta\":{\"content\":\"" + content + "\"}}]}\n\n";
}

Outcome answered(double first, double per_token, int tokens) {
  Outcome o;
  o.first_token = first, o.per_output_token = per_token, o.output_tokens = tokens, o.total = first + 1;
  o.gaps.assign(static_cast<size_t>(tokens - 1), per_token);
  return o;
}

}  // namespace

TEST_CASE("events of a stream are the same for pieces of any size and any line ends") {
  const Events expected = {"one", "two\nlines", "", " spaced", "colon: within", "last"};
  std::string text =
      "\xEF\xBB\xBF"
      "data: one\n\n: a comment\nevent: message\nid: 7\n\ndata: two\ndata:lines\n\n\n\ndata\n\ndata:  spaced\n"
      "retry: 10\n\ndata: colon: within\n\ndatum: not this\n\ndata: last\n\ndata: never completed\n";
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    std::string ended;
    for (const char c : text) {
      if (c == '\n') ended += end;
      else ended += c;
    }
    for (const size_t size : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, ended.size()}) {
      CAPTURE(size);
      CHECK(events_of(ended, size) == expected);
    }
  }
}

TEST_CASE("an event without end is refused at the limit") {
  SseParser parser(100);
  const auto ignore = [](std::string_view) {};
  parser.feed("data: " + std::string(90, 'x') + "\n\n", ignore);
  CHECK(parser.between_events());
  CHECK_THROWS_AS(parser.feed(std::string(101, 'x'), ignore), Error);
  SseParser lines(100);
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 100; ++i) lines.feed("data: xxxxxxxx\n", ignore);
      }(),
      Error);
}

TEST_CASE("the drafts of an answer, from the server's timings") {
  AnswerStream answer;
  answer.feed(chunk("Hello"), 1.0);
  answer.feed("data: {\"choices\":[],\"timings\":{\"draft_n\":8,\"draft_n_accepted\":5}}\n\n", 2.0);
  CHECK(answer.drafted_tokens() == 8);
  CHECK(answer.accepted_tokens() == 5);
}

TEST_CASE("an answer's text, times and counts") {
  AnswerStream answer;
  answer.feed("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n", 1.0);
  CHECK(answer.times().empty());
  answer.feed(chunk("Hello"), 2.0);
  answer.feed(chunk(""), 2.5);
  answer.feed(chunk(" you") + chunk("!"), 3.0);
  answer.feed("data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n", 4.0);
  answer.feed("data: {\"choices\":[{\"text\":\"plain\"}]}\n\n", 5.0);
  CHECK(answer.times() == std::vector<double>{2.0, 3.0, 3.0, 4.0, 5.0});
  CHECK(answer.output_tokens() == 5);
  CHECK(answer.prompt_tokens() == 0);
  CHECK_FALSE(answer.done());
  answer.feed(
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":9,"
      "\"prompt_tokens_details\":{\"cached_tokens\":8}}}\n\ndata: [DONE]\n\n",
      6.0);
  CHECK(answer.done());
  CHECK(answer.output_tokens() == 9);
  CHECK(answer.prompt_tokens() == 12);
  CHECK(answer.cached_tokens() == 8);
  CHECK(answer.drafted_tokens() == 0);
  answer.feed("data: after the end\n\n", 7.0);
}

TEST_CASE("invalid streams are refused with the reason") {
  const auto refusal = [](const std::string& data) {
    AnswerStream answer;
    try {
      answer.feed("data: " + data + "\n\n", 0);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal("{\"error\":{\"message\":\"out of luck\"}}") == "[server] out of luck");
  CHECK(refusal("not json").find("not json") != std::string::npos);
  CHECK(refusal("[1,2]").starts_with("[stream]"));
  CHECK(refusal("\x01\xff{").find("\\x") != std::string::npos);
  // Values of other types than the expected numbers and objects are ignored.
  CHECK(refusal("{\"choices\":{\"a\":1},\"usage\":[3]}").empty());
  CHECK(refusal("{\"choices\":[1,null,{\"delta\":\"x\"}],\"usage\":{\"completion_tokens\":-3}}").empty());
  CHECK(error_message("<html>busy</html>") == "<html>busy</html>");
  CHECK(error_message("{\"error\":\"short\"}") == "short");
  CHECK(error_message("") == "no message");
}

TEST_CASE("percentiles by the nearest rank") {
  CHECK(percentile({}, 50) == 0);
  CHECK(percentile({3}, 1) == 3);
  CHECK(percentile({3, 1, 2}, 50) == 2);
  CHECK(percentile({4, 1, 3, 2}, 50) == 2);
  std::vector<double> hundred;
  for (int i = 100; i >= 1; --i) hundred.push_back(i);
  CHECK(percentile(hundred, 95) == 95);
  CHECK(percentile(hundred, 99) == 99);
  CHECK(percentile(hundred, 100) == 100);
  CHECK(percentile(hundred, 0) == 1);
  const Latency latency = summarize(hundred);
  CHECK(latency.mean == 50.5);
  CHECK(latency.p50 == 50);
  CHECK(latency.p99 == 99);
  CHECK(summarize({}).p99 == 0);
}

TEST_CASE("a level summarizes the answers, and counts errors by kind") {
  std::vector<Outcome> outcomes = {answered(0.1, 0.01, 11), answered(0.3, 0.03, 21), answered(0.2, 0, 1)};
  for (const char* message : {"first", "second"}) {
    Outcome failed;
    failed.error = "status 429", failed.message = message, failed.output_tokens = 5;
    outcomes.push_back(failed);
  }
  const LevelResult level = summarize_level(4, 2.0, outcomes);
  CHECK(level.requests == 5);
  CHECK(level.answered == 3);
  CHECK(level.failed() == 2);
  CHECK(level.output_tokens == 33);
  CHECK(level.per_second(static_cast<double>(level.output_tokens)) == 16.5);
  CHECK(level.first_token.p50 == 0.2);
  CHECK(level.per_output_token.p50 == 0.01);  // of answers with more than one token
  CHECK(level.per_output_token.p99 == 0.03);
  CHECK(level.errors.at("status 429").count == 2);
  CHECK(level.errors.at("status 429").message == "first");
}

TEST_CASE("addresses of endpoints") {
  const ServerAddress local = parse_server_address("http://127.0.0.1:8080");
  CHECK(local.origin == "http://127.0.0.1:8080");
  CHECK(local.base == "/v1");
  CHECK(parse_server_address("http://host/v1/").url() == "http://host/v1");
  CHECK(parse_server_address("http://[::1]:80/proxy//").url() == "http://[::1]:80/proxy/v1");
  for (const char* wrong :
       {"", "127.0.0.1:8080", "ftp://host", "http://", "http://:80", "http://host:", "http://host:0",
        "http://host:65536", "http://host:8x", "http://host:99999999999999", "http://us er/", "http://user@host/",
        "http://host/?q", "http://host/#a", "http://host\r\nX: y"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_server_address(wrong), Error);
  }
}

TEST_CASE("requests of a mix are the same in every run, and all prompts of a run differ") {
  for (const Mix mix : {Mix::kPrefill, Mix::kDecode, Mix::kChat}) {
    for (const bool chat : {true, false}) {
      Workload workload;
      workload.mix = mix, workload.chat_endpoint = chat;
      std::set<std::string> prompts;
      for (uint64_t i = 0; i < 50; ++i) {
        const auto body = workload.body(i);
        CHECK(body == workload.body(i));
        CHECK(body["stream"] == true);
        CHECK_FALSE(body.contains("model"));
        prompts.insert(body[chat ? "messages" : "prompt"].dump());
      }
      CHECK(prompts.size() == 50);
    }
  }
  Workload chat;
  CHECK(chat.body(1)["messages"][0] == chat.body(2)["messages"][0]);  // the system prompt is shared
  chat.max_tokens = 7, chat.model = "m";
  CHECK(chat.body(1)["max_tokens"] == 7);
  CHECK(chat.body(1)["model"] == "m");
  CHECK_FALSE(chat.body(1).contains("speculative.n_max"));
  CHECK_FALSE(chat.body(1).contains("timings"));
  CHECK_FALSE(chat.body(1).contains("cache_salt"));
  chat.prompts = {"one", "two"};
  chat.cache_salt = "s";
  CHECK(chat.body(3)["messages"].dump() == R"([{"content":"two","role":"user"}])");
  CHECK(chat.body(3)["cache_salt"] == "s");
  chat.max_drafts = 0;
  CHECK(chat.body(1)["speculative.n_max"] == 0);
  CHECK(chat.body(1)["timings"] == true);
}

TEST_CASE("steps of an axis are round and at most five") {
  for (double largest = 1e-3; largest < 1e6; largest *= 1.07) {
    const double step = axis_step(largest);
    CHECK(5 * step >= largest * 0.999);
    CHECK(2 * step < largest * 1.001);
    const double mantissa = step / std::pow(10, std::floor(std::log10(step * 1.0001)));
    CHECK((std::abs(mantissa - 1) < 1e-6 || std::abs(mantissa - 2) < 1e-6 || std::abs(mantissa - 5) < 1e-6));
  }
  CHECK(axis_step(0) == 1);
  CHECK(axis_step(NAN) == 1);
}

TEST_CASE("the plot has a point per level and percentile, at the right place") {
  std::vector<LevelResult> levels;
  for (const int concurrency : {1, 4, 16}) {
    levels.push_back(summarize_level(concurrency, 1, {answered(0.010 * concurrency, 0.001 * concurrency, 5)}));
  }
  LevelResult dead;
  dead.concurrency = 32, dead.requests = 3;
  levels.push_back(dead);
  const std::string svg = latency_plot("a < b & \"c\"\n", levels);
  const auto count = [&](const std::string& what) {
    size_t n = 0;
    for (size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++n;
    return n;
  };
  CHECK(svg.starts_with("<svg xmlns="));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count("<circle") == 2 * 3 * 3);  // nothing for the level without an answer
  CHECK(count("<polyline") == 6);
  CHECK(count("a &lt; b &amp; &quot;c&quot; ") == 1);
  for (const char* label : {">1<", ">4<", ">16<", ">32<", ">p99<", ">150<", ">200<"}) CHECK(count(label) >= 1);
  // The largest latencies, 160 of 200 ms and 16 of 20 ms, are at four fifths of the height of their panels.
  CHECK(count("cy=\"118.0\"") == 6);
}
