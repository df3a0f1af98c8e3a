#include <doctest/doctest.h>

#include "src/hub/hub_error.h"

using namespace infer;

namespace {

int wait_for(const std::string& retry_after_value, const std::string& date = "") {
  ResponseHead head;
  head.headers = {{"retry-after", retry_after_value}};
  if (!date.empty()) head.headers.push_back({"date", date});
  return retry_after(head);
}

}  // namespace

TEST_CASE("retry-after: seconds") {
  CHECK(wait_for("0") == 0);
  CHECK(wait_for("12") == 12);
  CHECK(wait_for("86400") == 300);
  for (const char* bad : {"", "-1", "soon", "1.5", "12 s"}) CHECK(wait_for(bad) == -1);
}

TEST_CASE("retry-after: a date counts from the server's own") {
  const std::string now = "Wed, 21 Oct 2015 07:28:00 GMT";
  CHECK(wait_for("Wed, 21 Oct 2015 07:28:30 GMT", now) == 30);
  CHECK(wait_for("Thu, 22 Oct 2015 00:00:00 GMT", now) == 300);
  CHECK(wait_for("Wed, 21 Oct 2015 07:27:00 GMT", now) == 0);
  CHECK(wait_for("Wed, 21 Oct 2015 07:28:30 GMT") == 0);  // by this machine's clock long past
  CHECK(wait_for("Wed, 21 Foo 2015 07:28:30 GMT", now) == -1);
}
