// What a service looks like to the front end, whatever the wire is (JSON over HTTP/1.1 or gRPC over HTTP/2): a
// request message in, response messages out. Services fill a Router before the server starts; after that it is
// read-only and shared by all io threads.
//
// Threads: a handler is called on the io thread of its connection and must not block. A Reply or a ServerStream may be
// used from any thread; what another thread says travels to the io thread through one queue per io thread, with one
// wake-up when that queue was empty.
#pragma once

#include <google/protobuf/message.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace http {

using google::protobuf::Message;
using MessagePtr = std::unique_ptr<Message>;
using Answer = Result<std::unique_ptr<const Message>>;

// The far end of a connection; shared by its calls.
struct Peer {
  std::string address;  // "127.0.0.1:51234", "[::1]:51234", or "unix"
};

struct CallInfo {
  std::string token;                 // from Grpc-Metadata-Token or Authorization, without "Bearer "; "": none given
  std::shared_ptr<const Peer> peer;  // never null
  size_t io_thread = 0;              // below ServerOptions::io_threads; the thread the handler is called on
  // From Grpc-Timeout. The front end answers DeadlineExceeded by itself when it passes; a handler may use it to stop
  // early.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

enum class Codec : uint8_t { kJson, kGrpc };

// --- Unary calls

struct Encoded;  // below, with the streams

// Where a Reply goes: a connection (or a test's fake). `call` tells the connection's calls apart.
class ReplyTarget {
 public:
  virtual ~ReplyTarget() = default;
  virtual void answer(uint64_t call, Answer answer) = 0;
  virtual void answer_now(uint64_t call, const Message& response) = 0;
  virtual void answer_part(uint64_t /*call*/, std::shared_ptr<const Encoded> /*part*/, bool /*last*/) {}
  virtual bool wanted(uint64_t /*call*/) const { return true; }
  virtual Codec codec() const { return Codec::kJson; }  // of the parts
};

// The right to answer one call, once, from any thread. On the io thread of the call the answer goes out without a hop.
// Dropped without an answer, it answers Unavailable. The call may be gone by then (client vanished, deadline passed):
// no harm, the answer is dropped.
class Reply {
 public:
  Reply() = default;
  Reply(std::shared_ptr<ReplyTarget> target, uint64_t call) : target_(std::move(target)), call_(call) {}
  Reply(Reply&& other) noexcept : target_(std::move(other.target_)), call_(other.call_) {}
  Reply& operator=(Reply&& other) noexcept;
  ~Reply();

  // Hands the response over; it is encoded on the io thread.
  void send(Answer answer);
  void fail(Code code, std::string message) { send(Answer(::fail(code, std::move(message)))); }
  // Encodes before it returns, on the calling thread, and keeps nothing of `response`: for a message that is built on
  // the stack or reused. The cheapest way on the io thread.
  void send_now(const Message& response);
  // For an answer that is too large to be held as a whole: its parts in order, as a PartsEncoder made them. A part is
  // destroyed when the socket has taken it or the client is gone; who makes the parts can wait for that, so that
  // memory stays bounded. After the first one that is not the last, fail() and dropping the reply cut the connection
  // off: that is the only way left to say that the answer is not whole.
  void send_part(std::shared_ptr<const Encoded> part, bool last);
  // False: nobody waits for the answer any more.
  bool wanted() const { return target_ != nullptr && target_->wanted(call_); }
  bool open() const { return target_ != nullptr; }
  Codec codec() const { return target_ != nullptr ? target_->codec() : Codec::kJson; }  // of its parts

 private:
  std::shared_ptr<ReplyTarget> target_;
  uint64_t call_ = 0;
};

struct UnaryCall {
  MessagePtr request;  // of the method's request type
  CallInfo info;
  Reply reply;

  // The request as what it is; leaves nothing behind. `Request` must be the type the method was registered with.
  template <class Request>
  std::unique_ptr<Request> take() {
    return std::unique_ptr<Request>(static_cast<Request*>(request.release()));
  }
};
using UnaryHandler = std::function<void(UnaryCall)>;

// --- Streams

inline constexpr size_t kGrpcMessageBytesMax = 0x7fff'ffff;  // that is sent; as grpc-go

// A response message in the form one codec puts on the wire, to be sent to many streams.
struct Encoded {
  Codec codec = Codec::kJson;
  std::string bytes;  // opaque to everybody but the codec
};
std::shared_ptr<const Encoded> encode(Codec codec, const Message& response);

// One response message that is made in parts. Each part is a message of the response's type, with fields that come
// after those of the part before; a list may go on from one part to the next. For any one thread at a time.
//
// gRPC says the length of a message before its first byte: then there is one part only, taken after close().
class PartsEncoder {
 public:
  explicit PartsEncoder(Codec codec = Codec::kJson);
  PartsEncoder(PartsEncoder&&) noexcept;
  PartsEncoder& operator=(PartsEncoder&&) noexcept;
  ~PartsEncoder();
  void add(const Message& part);
  void close();         // no more parts
  size_t size() const;  // of what was added since the last take()
  std::string take();   // for an Encoded of this codec
  Codec codec() const;
  bool divisible() const { return codec() == Codec::kJson; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Where a stream's responses go while it is being pulled.
class Sink {
 public:
  virtual ~Sink() = default;
  // Enough is waiting for the socket: stop here, you will be pulled again when it has drained. One message more is
  // taken nevertheless, so memory is bounded by the limit plus one message.
  virtual bool full() const = 0;
  virtual void send(const Message& response) = 0;
  virtual void send(const std::shared_ptr<const Encoded>& response) = 0;  // of this stream's codec
};

// The service's side of one stream. Lives on the io thread of its connection: everything here is called on it, and the
// object is destroyed on it when the stream is over.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // Asked before each message is delivered; false holds the client back (its bytes stay in the socket) until after the
  // next wake().
  virtual bool may_receive() { return true; }
  virtual void on_message(MessagePtr request) = 0;
  // The client will send nothing more (its body ended, or could not be parsed). The stream stays open until finish().
  virtual void on_half_close() = 0;
  // The stream ended from outside: client vanished, deadline passed, server stops. The last call; the object is
  // destroyed right after it.
  virtual void on_cancel() {}
  // Called after wake(), after each delivery of messages, and when the socket has drained after full(). Send what there
  // is while !sink.full().
  virtual void pull(Sink& sink) = 0;
};

// The front end's side of one stream, for any thread. Outlives the StreamHandler harmlessly: calls then do nothing.
class ServerStream {
 public:
  virtual ~ServerStream() = default;
  // There may be something to pull. Cheap, and coalesced: many streams woken at once cost one wake-up an io thread.
  virtual void wake() = 0;
  // Ends the stream after what the handler still has to send (it is pulled until a pull leaves the sink not full).
  // Success closes it normally; an error is the stream's last message. Only the first call counts.
  virtual void finish(Status status) = 0;
  virtual Codec codec() const = 0;
};

struct StreamStart {
  std::shared_ptr<ServerStream> stream;
  CallInfo info;
};
// Returns the handler of the new stream; an error ends the stream at once with it.
using StreamOpener = std::function<Result<std::unique_ptr<StreamHandler>>(StreamStart)>;

// --- Plain HTTP routes (health, version, metrics)

struct PlainRequest {
  std::string method;
  std::string path;
  std::string query;  // what follows '?', still encoded
};
struct PlainResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

class PlainTarget {
 public:
  virtual ~PlainTarget() = default;
  virtual void answer_plain(uint64_t call, PlainResponse response) = 0;
};
// As Reply. Dropped without an answer: 503.
class PlainReply {
 public:
  PlainReply() = default;
  PlainReply(std::shared_ptr<PlainTarget> target, uint64_t call) : target_(std::move(target)), call_(call) {}
  PlainReply(PlainReply&& other) noexcept : target_(std::move(other.target_)), call_(other.call_) {}
  PlainReply& operator=(PlainReply&& other) noexcept;
  ~PlainReply();
  void send(PlainResponse response);

 private:
  std::shared_ptr<PlainTarget> target_;
  uint64_t call_ = 0;
};
using PlainHandler = std::function<void(PlainRequest, PlainReply)>;

// The value of `name` in a query string, percent-decoded; nullopt when it is not there ("verbose" alone gives "").
std::optional<std::string> query_value(std::string_view query, std::string_view name);
// All values of `name`, in order.
std::vector<std::string> query_values(std::string_view query, std::string_view name);

// --- The table

struct UnaryMethod {
  std::string name;                // "/etcdserverpb.KV/Put": gRPC's path
  std::vector<std::string> paths;  // "/v3/kv/put": the gateway's, with aliases; "/v3beta/..." is understood for each
  const Message* request;          // prototype: &etcdserverpb::PutRequest::default_instance()
  UnaryHandler handler;
};
struct StreamMethod {
  std::string name;
  std::vector<std::string> paths;
  const Message* request;
  StreamOpener open;
  // One request, many responses (maintenance/snapshot): the body is read whole, the stream is half-closed right after
  // its message, and a body that does not parse is answered as a unary call's.
  bool single_request = false;
};
struct PlainRoute {
  std::string path;  // exact
  PlainHandler handler;
  bool get_only = true;  // other methods, HEAD too: 405
};

// Whether a call may be made at all; an error is its answer. Asked on the call's io thread; `request` is null where a
// stream opens.
using Admission = std::function<Status(const std::string& method, const Message* request)>;

// Filled before the server starts. Registering a path or name twice is a CHECK.
class Router {
 public:
  Router();
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  void admit(Admission admission);  // for methods that are registered after it; not for plain routes
  void unary(UnaryMethod method);
  void stream(StreamMethod method);
  void plain(PlainRoute route);

  // For the front ends.
  struct Endpoint {
    const UnaryMethod* unary = nullptr;
    const StreamMethod* stream = nullptr;
    const PlainRoute* plain = nullptr;
  };
  const Endpoint* find_path(std::string_view path) const;  // gateway and plain paths
  const Endpoint* find_name(std::string_view name) const;  // gRPC names
  bool has_service(std::string_view service) const;        // "etcdserverpb.KV"

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

// Called on an io thread around the calls that became ready in one wake-up of it: all of them have been received when
// `begin` runs, and are handled between the two. So one read transaction opened in `begin` (or by the first handler)
// serves them all and is never older than any of them.
struct BatchHooks {
  std::function<void(size_t io_thread)> begin;
  std::function<void(size_t io_thread)> end;
};

}  // namespace http
