// Answers that may be large are made here, on threads of their own: an io thread is to read what is small, and to move
// bytes. Each answer is made in parts of some hundred KiB, one after another for all that are under way, so that a
// short one does not wait for a long one.
//
// Memory: a part is charged until its socket has taken it. An answer of more than one part needs one of kSeats first,
// which it keeps until all is with the client; others wait for one, and keep nothing meanwhile. With a seat an answer
// may always have one part waiting, and more while there is room in kBytesMax; so a client that reads slowly holds up
// itself only. (A client that takes next to nothing is cut off: http's kPartsProgressBytes.) What can only be made as a
// whole is begun while there is room.
//
// Threads: any may submit. What becomes of an answer is the business of one thread of the pool at a time. Must outlive
// the server's stop(): a part that is dropped tells the pool.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/rpc.pb.h"
#include "base/result.h"
#include "http/handler.h"
#include "mvcc/mvcc.h"

namespace rpc {

// How an answer is made.
class LargeRead {
 public:
  virtual ~LargeRead() = default;
  // Adds the next piece. True: that was the last one.
  virtual Result<bool> next(mvcc::Reader& reader, http::PartsEncoder& to) = 0;
  // Begins again, and with what is published then unless the request says otherwise. Nothing of it was sent.
  virtual void restart() = 0;
  // It is one large piece: to be begun only while there is room.
  virtual bool whole() const { return false; }
  // Others have their turn after each piece, and the next one has a reader of its own: much is read, little is sent.
  virtual bool one_piece_a_turn() const { return false; }
};

class LargeReads {
 public:
  static constexpr size_t kThreads = 2;
  static constexpr size_t kSeats = 32;
  static constexpr size_t kWaitingMax = 20'000;          // beyond: "etcdserver: too many requests"
  static constexpr size_t kPartBytes = 512 * 1024;       // from here on a part is sent
  static constexpr size_t kBytesMax = 64 * 1024 * 1024;  // of parts on their way, before each answer has only one

  struct Parts {
    std::function<std::unique_ptr<mvcc::Reader>()> reader;
    std::function<void(const Error&)> damaged;  // a read found damage
  };
  explicit LargeReads(Parts parts);
  ~LargeReads();
  LargeReads(const LargeReads&) = delete;
  LargeReads& operator=(const LargeReads&) = delete;

  void start();
  void stop();  // what is not done by then is answered with Unavailable, or cut off

  void submit(std::unique_ptr<LargeRead> read, http::Reply reply);

  struct Stats {
    size_t waiting = 0;  // to begin, for a seat, for room, or for their turn
    size_t seated = 0;
    size_t bytes = 0;  // of parts on their way
  };
  Stats stats() const;

 private:
  class Pool;
  const std::shared_ptr<Pool> pool_;  // parts on their way know it too
};

}  // namespace rpc
