// Every limit of the client port, in one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace http {

// Those an operator or a test may set.
struct Limits {
  // --max-request-bytes. The gateway takes this much more, as etcd's does (its gRPC server's receive limit), so that
  // the layer above can refuse what is between with its own message.
  size_t request_bytes_max = 1536 * 1024;
  size_t request_overhead_bytes = 512 * 1024;
  size_t connections_max = 65'536;                  // what is above is closed at once
  size_t streams_max = 65'536;                      // of the whole process
  std::chrono::milliseconds head_timeout{30'000};   // from the first byte of a request to its last header line
  std::chrono::milliseconds idle_timeout{300'000};  // between two requests of a connection
  std::chrono::milliseconds write_timeout{60'000};  // a client that takes nothing of its answer for so long is cut
  std::chrono::milliseconds body_progress_period{30'000};  // a request body must grow in each by ...
  size_t body_progress_bytes = 1024;  // ... this much. Bodies of streams are exempt: they are open on purpose.
  // Of all connections together, what is kept of requests that are not answered yet. A request that needs more is
  // refused; the first kRequestBytesFree of each are not counted, so that small ones always get through.
  size_t requests_bytes_max = 256 * 1024 * 1024;

  // Of one request message in protobuf's form.
  size_t message_bytes_max() const { return request_bytes_max + request_overhead_bytes; }
  // JSON is larger than the message (base64 is 4/3, and text may be escaped); more than this is not read.
  size_t body_bytes_max() const { return 2 * message_bytes_max() + 64 * 1024; }
};

inline constexpr size_t kHeadBytesMax = 64 * 1024;           // of a request; also of a chunk's header and of trailers
inline constexpr size_t kDrainBytesMax = 256 * 1024;         // of a body nobody wants, to keep the connection; as Go
inline constexpr size_t kStreamOutputBytesMax = 64 * 1024;   // Sink::full() from here on
inline constexpr int kStreamUnsentBytesMax = 256 * 1024;     // in the kernel, per stream
inline constexpr size_t kUnaryOutputBytesMax = 1024 * 1024;  // of pipelined answers, before reading pauses
inline constexpr size_t kRequestBytesFree = 4 * 1024;
// What one connection gets done before all others have had their turn (a pass of its io thread): bytes that are made
// for it and bytes that are written, and calls.
inline constexpr size_t kPassBytesMax = 256 * 1024;
inline constexpr int kPassCallsMax = 8;
inline constexpr size_t kPartsProgressBytes = 1024 * 1024;  // of an answer in parts, to be taken in a write_timeout
inline constexpr size_t kReadBytes = 256 * 1024;            // at once; one buffer per io thread
inline constexpr size_t kReadAheadBytesMax = 64 * 1024;     // of later requests, while one is being handled
inline constexpr size_t kOutputPieceBytes = 64 * 1024;      // larger answers are not copied together
inline constexpr size_t kIdleBufferBytes = 2 * 1024;        // what an idle connection may keep of each buffer
inline constexpr size_t kBatchCallsMax = 256;               // calls handled between two BatchHooks
inline constexpr size_t kAcceptsAtOnce = 64;
inline constexpr int kListenBacklog = 4096;
inline constexpr std::chrono::milliseconds kLingerTimeout{2'000};  // for a client to read why its connection is closed
inline constexpr std::chrono::milliseconds kAcceptPause{100};      // after running out of file descriptors
inline constexpr std::chrono::seconds kLogPeriod{30};              // between two log lines about the same trouble

// HTTP/2.
inline constexpr uint32_t kHttp2CallsMax = 16'384;              // open at once on one connection
inline constexpr size_t kHttp2CallsAtOnce = 64;                 // unary ones of one connection, before others' turn
inline constexpr uint32_t kHttp2StreamWindow = 256 * 1024;      // that a client may send ahead in each call
inline constexpr int32_t kHttp2ConnectionWindow = 1024 * 1024;  // and in all of them
inline constexpr size_t kHttp2OutputBytesMax = 64 * 1024;       // framed, for the socket

inline constexpr size_t kJsonDepthMax = 10'000;        // of skipped data, as Go's encoding/json
inline constexpr size_t kJsonMessageDepthMax = 1'000;  // of messages: the parser recurses; --max-txn-ops ends far below

}  // namespace http
