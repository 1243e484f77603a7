// Every limit of the client port, in one place.
#pragma once

#include <chrono>
#include <cstddef>

namespace http {

struct Limits {
  // --max-request-bytes. The gateway takes this much more, as etcd's does (its gRPC server's receive limit), so that
  // the layer above can refuse what is between with its own message.
  size_t request_bytes_max = 1536 * 1024;
  size_t request_overhead_bytes = 512 * 1024;
  size_t header_bytes_max = 64 * 1024;
  size_t connections_max = 65536;
  size_t streams_max = 65536;                        // of the whole process
  std::chrono::milliseconds header_timeout{30'000};  // from the first byte of a request to its last header line
  std::chrono::milliseconds idle_timeout{300'000};   // between two requests of a connection
  // A body must grow by this much in each period (bodies of streams are exempt: they are open on purpose).
  std::chrono::milliseconds body_progress_period{30'000};
  size_t body_progress_bytes = 1024;
  // A client that takes nothing of a waiting answer for this long is cut.
  std::chrono::milliseconds write_timeout{60'000};

  size_t message_bytes_max() const { return request_bytes_max + request_overhead_bytes; }
  // JSON is larger than the message (base64 is 4/3, and text may be escaped); more than this is not read.
  size_t body_bytes_max() const { return 2 * message_bytes_max() + 64 * 1024; }
};

inline constexpr size_t kStreamOutputBytesMax = 64 * 1024;  // Sink::full() above this
inline constexpr size_t kReadBufferBytes = 16 * 1024;       // a connection's, while it is small talk
inline constexpr size_t kPipelinedBytesMax = 64 * 1024;     // read ahead while a call is being handled
inline constexpr size_t kBatchCallsMax = 256;               // calls handled between two BatchHooks
inline constexpr size_t kJsonDepthMax = 10'000;             // of skipped data, as Go's encoding/json
inline constexpr size_t kJsonMessageDepthMax = 1000;  // of messages: the parser recurses; --max-txn-ops ends far below
inline constexpr int kListenBacklog = 4096;

}  // namespace http
