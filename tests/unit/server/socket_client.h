// A client of a server on this machine that sends given bytes.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace infer::test {

class SocketClient {
 public:
  explicit SocketClient(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    const timeval limit = {600, 0};  // a hang
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  ~SocketClient() { leave(); }
  void leave() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }
  void end_sending() { shutdown(socket_, SHUT_WR); }
  bool send(const std::string& text) {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Receives until `end` has arrived, or the connection ends.
  std::string receive(const std::string& end = "\x01") {
    std::string text;
    char data[4096];
    while (text.find(end) == std::string::npos) {
      const ssize_t n = recv(socket_, data, sizeof(data), 0);
      if (n <= 0) break;
      text.append(data, static_cast<size_t>(n));
    }
    return text;
  }

 private:
  int socket_;
};

}  // namespace infer::test
