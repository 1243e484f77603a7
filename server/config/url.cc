#include "config/url.h"

#include <algorithm>
#include <charconv>

namespace config {

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

auto refuse(std::string_view text, std::string_view why) {
  return fail(Code::kInvalidArgument, std::string(why) + ": \"" + std::string(text) + "\"");
}

Status parse_host_and_port(std::string_view given, std::string_view rest, Url& url) {
  constexpr std::string_view kForm = "URL address does not have the form \"host:port\"";
  std::string_view port;
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos || !rest.substr(end + 1).starts_with(':')) return refuse(given, kForm);
    url.host = rest.substr(1, end - 1);
    port = rest.substr(end + 2);
  } else {
    const size_t colon = rest.find(':');
    if (colon == std::string_view::npos || rest.find(':', colon + 1) != std::string_view::npos) {
      return refuse(given, kForm);
    }
    url.host = rest.substr(0, colon);
    port = rest.substr(colon + 1);
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (error != std::errc() || end != port.data() + port.size()) {
    return refuse(given, "URL has no port from 0 to 65535");
  }
  if (url.host.find_first_of(" \t\"<>@\\^`{|}") != std::string::npos) return refuse(given, "URL has a malformed host");
  return {};
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  text = trim(text);
  Url url;
  url.text = text;
  const size_t colon = text.find("://");
  const std::string_view scheme = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (scheme == "http") {
    url.scheme = Url::Scheme::kHttp;
  } else if (scheme == "https") {
    url.scheme = Url::Scheme::kHttps;
  } else if (scheme == "unix") {
    url.scheme = Url::Scheme::kUnix;
  } else if (scheme == "unixs") {
    url.scheme = Url::Scheme::kUnixs;
  } else {
    return refuse(text, "URL scheme must be http, https, unix, or unixs");
  }
  const std::string_view rest = text.substr(colon + 3);
  if (url.is_socket()) {
    // "unix:///run/c.sock" names an absolute file, "unix://c.sock" one in the working folder.
    if (rest.empty()) return refuse(text, "URL names no socket file");
    url.path = rest;
    return url;
  }
  if (rest.find_first_of("/?#") != std::string_view::npos) return refuse(text, "URL must not contain a path");
  TRY(parse_host_and_port(text, rest, url));
  return url;
}

Result<std::vector<Url>> parse_urls(std::string_view text) {
  std::vector<Url> urls;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    TRY_ASSIGN(auto url, parse_url(text.substr(0, comma)));
    urls.push_back(std::move(url));
    text.remove_prefix(more ? comma + 1 : text.size());
  }
  std::sort(urls.begin(), urls.end(), [](const Url& a, const Url& b) { return a.text < b.text; });
  urls.erase(std::unique(urls.begin(), urls.end()), urls.end());
  return urls;
}

std::string join(const std::vector<Url>& urls) {
  std::string joined;
  for (const Url& url : urls) joined.append(joined.empty() ? "" : ",").append(url.text);
  return joined;
}

}  // namespace config
