// Every limit of the peer port that no operator sets, in one place. Those that a test narrows are in Options.
#pragma once

#include <chrono>
#include <cstddef>

namespace peer {

using Milliseconds = std::chrono::milliseconds;

inline constexpr size_t kHelloBodyBytesMax = 1024;        // of what a stranger may make us hold
inline constexpr size_t kAnswerBodyBytesMax = 1 << 20;    // a description of the cluster travels in it
inline constexpr size_t kRefusalTextBytesMax = 512;       // what is logged of a peer's own words
inline constexpr size_t kReadBytes = 64 * 1024;           // at once, one buffer a connection
inline constexpr size_t kBodyReserveBytes = 1024 * 1024;  // a frame's length is believed this far before bytes arrive
inline constexpr size_t kWriteBatchBytes = 1024 * 1024;   // gathered into one write: a lane may not hog the thread
inline constexpr size_t kWriteBatchFrames = 32;           // asio gathers 64 buffers, a frame is two
inline constexpr size_t kPingBytes = 8;

inline constexpr size_t kUnknownConnectionsMax = 64;  // that have not said a valid hello; the oldest makes room
inline constexpr size_t kProbeBytesMax = 16 * 1024;   // read and thrown away of a request in a foreign protocol
inline constexpr size_t kResolvesMax = 16;            // names being resolved at once, each on a thread of its own
inline constexpr size_t kUrlsMax = 16;                // of one peer
inline constexpr size_t kIntroducedMax = 16;          // members of the cluster that only they themselves have told of
inline constexpr size_t kEndpointsMax = 8;            // addresses of one name that are tried
inline constexpr size_t kLogKeysMax = 256;            // messages whose last time is remembered
inline constexpr int kListenBacklog = 256;

inline constexpr Milliseconds kBackOffMin{10};
inline constexpr Milliseconds kBackOffMax{1'000};
inline constexpr Milliseconds kBackOffForgotten{1'000};  // a connection that lived so long starts the back-off anew
inline constexpr Milliseconds kGoodbyeTimeout{1'000};    // for it to read why it is refused
inline constexpr Milliseconds kResolveTimeout{5'000};
// Shorter ones do not make peers be given up sooner: busy machines stand still for that long.
inline constexpr Milliseconds kElectionTimeoutMin{200};
inline constexpr Milliseconds kSilenceMax{60'000};    // an incoming connection without even a ping is closed
inline constexpr Milliseconds kLogPeriod{30'000};     // between two messages about the same thing
inline constexpr Milliseconds kUnknownNormal{5'000};  // "unknown sender" for so long is normal at a start
inline constexpr Milliseconds kAcceptPause{100};      // after running out of file descriptors

}  // namespace peer
