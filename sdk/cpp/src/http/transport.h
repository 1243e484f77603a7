// One member's HTTP: requests answered whole, and answers that never end. The inner interface of the SDK: what stands
// behind it (cpprestsdk) is named in this folder only.
//
// Nothing here retries or waits. Handlers run on the transport's threads and must not block. cpprestsdk itself would
// send a request again when a pooled connection turns out closed; request bodies are streams that cannot rewind, which
// makes it report the failure instead.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace conclave::inline v1::internal {

struct HttpReply {
  int status = 0;            // 0: no answer
  std::string body = {};     // of a stream: only that of a status other than 200
  bool sent = false;         // the member may have the request. False: nothing can have happened
  std::string failure = {};  // why there is no answer, or why it broke off; empty: it came whole
};

// A request in flight. Its `done` handler runs once, unless the exchange is given up first.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Gives up and closes the connection. True: the handler will not run. False: it has run or is running.
  virtual bool cancel() = 0;
  // The same, but only if the request has not left: true means that nothing can have happened.
  virtual bool cancel_unsent() = 0;
  virtual bool sent() const = 0;
};

// What a stream sends: `head` at once, and `tail` (if any) when finish() is called. The answer is read from then on.
struct StreamRequest {
  std::string path = {};
  std::string head = {};
  std::string tail = {};
};

class Stream : public Exchange {
 public:
  virtual void finish() = 0;  // sends the tail; does nothing when there is none
};

using HttpDone = std::function<void(HttpReply)>;
using StreamData = std::function<void(std::string_view)>;

class Member {
 public:
  virtual ~Member() = default;
  // POSTs `body`, which must not be empty. `fresh`: not on a connection that was idle for over kIdleForWritesMax, which
  // the member may have closed.
  virtual std::shared_ptr<Exchange> post(const std::string& path, std::string body, bool fresh, HttpDone done) = 0;
  // `data` runs for each piece of a 200 answer, one at a time; `done` once at its end. A piece may still come while
  // cancel() runs.
  virtual std::shared_ptr<Stream> stream(StreamRequest request, StreamData data, HttpDone done) = 0;
};

std::shared_ptr<Member> make_member(const std::string& url);
// Scheme http or https, a host, perhaps a port, no path, query or user.
bool valid_endpoint(const std::string& url);

}  // namespace conclave::inline v1::internal
