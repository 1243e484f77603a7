#include "http/handler.h"

#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "http/grpc_wire.h"
#include "http/json_table.h"
#include "http/json_write.h"
#include "http/path.h"

namespace http {

// --- Replies

Reply::~Reply() {
  if (target_ != nullptr) fail(Code::kUnavailable, "etcdserver: server stopped");
}

Reply& Reply::operator=(Reply&& other) noexcept {
  if (this != &other) {
    Reply dropped(std::move(*this));
    target_ = std::move(other.target_);
    call_ = other.call_;
  }
  return *this;
}

void Reply::send(Answer answer) {
  CHECK(target_ != nullptr, "a call is answered once");
  std::exchange(target_, nullptr)->answer(call_, std::move(answer));
}

void Reply::send_now(const Message& response) {
  CHECK(target_ != nullptr, "a call is answered once");
  std::exchange(target_, nullptr)->answer_now(call_, response);
}

void Reply::send_part(std::shared_ptr<const Encoded> part, bool last) {
  CHECK(target_ != nullptr, "a call is answered once");
  if (last) {
    std::exchange(target_, nullptr)->answer_part(call_, std::move(part), true);
  } else {
    target_->answer_part(call_, std::move(part), false);
  }
}

PlainReply::~PlainReply() {
  if (target_ != nullptr) send({.status = 503, .body = "Service Unavailable\n"});
}

PlainReply& PlainReply::operator=(PlainReply&& other) noexcept {
  if (this != &other) {
    PlainReply dropped(std::move(*this));
    target_ = std::move(other.target_);
    call_ = other.call_;
  }
  return *this;
}

void PlainReply::send(PlainResponse response) {
  CHECK(target_ != nullptr, "a call is answered once");
  std::exchange(target_, nullptr)->answer_plain(call_, std::move(response));
}

// --- Streams

std::shared_ptr<const Encoded> encode(Codec codec, const Message& response) {
  auto encoded = std::make_shared<Encoded>();
  encoded->codec = codec;
  if (codec == Codec::kGrpc) {
    grpc::append(encoded->bytes, response);
  } else {
    json::append_result(encoded->bytes, response);
  }
  return encoded;
}

struct PartsEncoder::State {
  Codec codec = Codec::kJson;
  std::string bytes;
  json::PartsWriter writer;
};

PartsEncoder::PartsEncoder(Codec codec) : state_(std::make_unique<State>()) { state_->codec = codec; }
PartsEncoder::PartsEncoder(PartsEncoder&&) noexcept = default;
PartsEncoder& PartsEncoder::operator=(PartsEncoder&&) noexcept = default;
PartsEncoder::~PartsEncoder() = default;

// Protobuf messages one after another are one message, whose lists go on.
void PartsEncoder::add(const Message& part) {
  if (divisible()) return state_->writer.add(state_->bytes, part);
  if (state_->bytes.empty()) state_->bytes.resize(grpc::kPrefixBytes);
  part.AppendToString(&state_->bytes);
}

void PartsEncoder::close() {
  if (divisible()) return state_->writer.close(state_->bytes);
  if (state_->bytes.empty()) state_->bytes.resize(grpc::kPrefixBytes);
  grpc::write_prefix(state_->bytes.data(), state_->bytes.size() - grpc::kPrefixBytes);
}

size_t PartsEncoder::size() const { return state_->bytes.size(); }
std::string PartsEncoder::take() { return std::exchange(state_->bytes, {}); }
Codec PartsEncoder::codec() const { return state_->codec; }

// --- Query strings

std::vector<std::string> query_values(std::string_view query, std::string_view name) {
  std::vector<std::string> values;
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    const size_t equals = pair.find('=');
    const auto key = percent_decode(pair.substr(0, equals), /*plus_is_space=*/true);
    if (!key || *key != name) continue;
    const std::string_view raw = equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    if (auto value = percent_decode(raw, /*plus_is_space=*/true)) values.push_back(std::move(*value));
  }
  return values;
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  auto values = query_values(query, name);
  if (values.empty()) return std::nullopt;
  return std::move(values.front());
}

// --- The table

namespace {
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <class Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;
}  // namespace

struct Router::Tables {
  Admission admission;
  std::deque<UnaryMethod> unary;
  std::deque<StreamMethod> stream;
  std::deque<PlainRoute> plain;
  TextMap<Endpoint> paths;
  TextMap<Endpoint> names;
  std::unordered_set<std::string, TextHash, std::equal_to<>> services;

  void add(const std::string& name, const std::vector<std::string>& methods_paths, Endpoint endpoint) {
    CHECK(names.emplace(name, endpoint).second, name);
    services.insert(name.substr(1, name.rfind('/') - 1));
    for (const std::string& path : methods_paths) {
      CHECK(path.starts_with("/v3/"), path);
      CHECK(paths.emplace(path, endpoint).second, path);
    }
  }
};

Router::Router() : tables_(std::make_unique<Tables>()) {}
Router::~Router() = default;

void Router::admit(Admission admission) { tables_->admission = std::move(admission); }

void Router::unary(UnaryMethod method) {
  CHECK(method.request != nullptr, method.name);
  if (tables_->admission) {
    method.handler = [admission = tables_->admission, name = method.name,
                      handler = std::move(method.handler)](UnaryCall call) {
      if (Status admitted = admission(name, call.request.get()); !admitted) {
        return call.reply.send(::fail(std::move(admitted.error())));
      }
      handler(std::move(call));
    };
  }
  json::table_of(*method.request);  // refuses a type without JSON form now, not at the first call
  tables_->unary.push_back(std::move(method));
  const UnaryMethod& kept = tables_->unary.back();
  tables_->add(kept.name, kept.paths, {.unary = &kept});
}

void Router::stream(StreamMethod method) {
  CHECK(method.request != nullptr, method.name);
  if (tables_->admission) {
    method.open = [admission = tables_->admission, name = method.name,
                   open = std::move(method.open)](StreamStart start) -> Result<std::unique_ptr<StreamHandler>> {
      TRY(admission(name, nullptr));
      return open(std::move(start));
    };
  }
  json::table_of(*method.request);
  tables_->stream.push_back(std::move(method));
  const StreamMethod& kept = tables_->stream.back();
  tables_->add(kept.name, kept.paths, {.stream = &kept});
}

void Router::plain(PlainRoute route) {
  tables_->plain.push_back(std::move(route));
  const PlainRoute& kept = tables_->plain.back();
  CHECK(tables_->paths.emplace(kept.path, Endpoint{.plain = &kept}).second, kept.path);
}

const Router::Endpoint* Router::find_path(std::string_view path) const {
  const auto at = tables_->paths.find(path);
  return at == tables_->paths.end() ? nullptr : &at->second;
}

bool Router::has_service(std::string_view service) const { return tables_->services.contains(service); }

const Router::Endpoint* Router::find_name(std::string_view name) const {
  const auto at = tables_->names.find(name);
  return at == tables_->names.end() ? nullptr : &at->second;
}

}  // namespace http
