#include "config/url.h"

#include <gtest/gtest.h>

namespace {

using config::parse_url;
using config::parse_urls;
using config::Url;

TEST(Url, ReadsHostsAddressesAndSockets) {
  const auto plain = parse_url(" http://localhost:2379 ").value();
  EXPECT_EQ(plain.scheme, Url::Scheme::kHttp);
  EXPECT_EQ(plain.host, "localhost");
  EXPECT_EQ(plain.port, 2379);
  EXPECT_EQ(plain.text, "http://localhost:2379");
  EXPECT_FALSE(plain.is_secure());

  const auto six = parse_url("https://[::1]:0").value();
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.port, 0);
  EXPECT_TRUE(six.is_secure());

  const auto socket = parse_url("unix:///run/conclave.sock").value();
  EXPECT_TRUE(socket.is_socket());
  EXPECT_EQ(socket.path, "/run/conclave.sock");
  EXPECT_EQ(parse_url("unix://local.sock").value().path, "local.sock");
}

TEST(Url, RefusesEverythingElse) {
  for (const char* text : {"", "localhost:2379", "ftp://a:1", "http://a", "http://a:", "http://a:65536", "http://a:-1",
                           "http://a:1/path", "http://a:1/", "http://a:1?q", "http://::1:2379", "http://[::1]",
                           "http://[::1:1", "http://u@a:1", "http://a b:1", "unix://", "http://a:1x"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, Code::kInvalidArgument);
    EXPECT_NE(url.error().message.find(text), std::string::npos) << url.error().message;
  }
}

TEST(Url, ListsAreSortedWithoutRepeats) {
  const auto urls = parse_urls("http://b:1, http://a:2,http://b:1").value();
  EXPECT_EQ(join(urls), "http://a:2,http://b:1");
  EXPECT_FALSE(parse_urls(""));
  EXPECT_FALSE(parse_urls("http://a:1,"));
}

}  // namespace
