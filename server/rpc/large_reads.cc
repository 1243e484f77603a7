#include "rpc/large_reads.h"

#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/thread.h"
#include "member/options.h"

namespace rpc {
namespace {

constexpr int kRestartsMax = 16;  // each needs a compaction that passes before the first part is made
constexpr int kFreshInARow = 4;   // then one that goes on has its turn

// One answer. In one queue, or in the hands of a pool's thread, or known to its parts only.
struct Work {
  std::unique_ptr<LargeRead> read;
  http::Reply reply;
  http::PartsEncoder encoder;
  int restarts = 0;
  size_t bytes_sent = 0;
  // Under the pool's mutex.
  bool seated = false;
  size_t bytes = 0;     // of parts on their way
  bool parked = false;  // until one of them has arrived
  bool done = false;    // all is sent; the seat is kept until it has arrived
};
using WorkPtr = std::shared_ptr<Work>;

}  // namespace

class LargeReads::Pool : public std::enable_shared_from_this<Pool> {
 public:
  explicit Pool(Parts parts) : parts_(std::move(parts)) {}

  void start() {
    for (size_t i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this, i] {
        begin_thread(("read-large-" + std::to_string(i)).c_str());
        while (WorkPtr work = take()) run(std::move(work));
      });
    }
  }

  void stop() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    drop_queues();
  }

  void drop_queues() {
    std::deque<WorkPtr> dropped[4];  // answered outside of the lock
    MutexLock lock(mutex_);
    dropped[0].swap(fresh_);
    dropped[1].swap(going_on_);
    dropped[2].swap(standing_);
    dropped[3].swap(large_);
  }

  void submit(std::unique_ptr<LargeRead> read, http::Reply reply) {
    auto work = std::make_shared<Work>();
    work->read = std::move(read);
    work->encoder = http::PartsEncoder(reply.codec());
    work->reply = std::move(reply);
    {
      MutexLock lock(mutex_);
      if (!stopping_ && waiting() < kWaitingMax) {
        fresh_.push_back(std::move(work));
        changed_.notify_one();
        return;
      }
    }
    work->reply.fail(Code::kResourceExhausted, member::kErrorTooManyRequests);
  }

  Stats stats() const {
    MutexLock lock(mutex_);
    return {.waiting = waiting(), .seated = seated_, .bytes = bytes_};
  }

 private:
  size_t waiting() const REQUIRES(mutex_) {
    return fresh_.size() + going_on_.size() + standing_.size() + large_.size();
  }

  WorkPtr take() {
    MutexLock lock(mutex_);
    while (!stopping_ && fresh_.empty() && going_on_.empty()) changed_.wait(mutex_);
    if (stopping_) return nullptr;
    const bool prefers_fresh = fresh_in_a_row_ < kFreshInARow;
    auto& queue = going_on_.empty() || (prefers_fresh && !fresh_.empty()) ? fresh_ : going_on_;
    fresh_in_a_row_ = &queue == &fresh_ ? fresh_in_a_row_ + 1 : 0;
    WorkPtr work = std::move(queue.front());
    queue.pop_front();
    return work;
  }

  // One turn: makes one part and sends it.
  void run(WorkPtr work) {
    if (!work->reply.wanted()) return leave(std::move(work));
    if (work->read->whole() && !has_room(work)) return;
    const auto reader = parts_.reader();
    bool last = false;
    const size_t enough = work->encoder.size() + kPartBytes;
    while (!last && work->encoder.size() < enough) {
      auto read = work->read->next(*reader, work->encoder);
      if (!read) return failed(std::move(work), read.error());
      last = *read;
      if (!last && work->read->one_piece_a_turn()) return wait_for_turn(std::move(work));
    }
    if (last) work->encoder.close();
    if (!last && !sit_down(work)) return;
    if (!last && !work->encoder.divisible()) return grow(std::move(work));
    send(std::move(work), last);
  }

  // It is sent as a whole, and goes on growing when others have had their turn.
  void grow(WorkPtr work) {
    if (work->encoder.size() <= http::kGrpcMessageBytesMax) return wait_for_turn(std::move(work));
    work->reply.fail(Code::kResourceExhausted, "grpc: trying to send message larger than max (more than " +
                                                   std::to_string(http::kGrpcMessageBytesMax) + ")");
    leave(std::move(work));
  }

  void wait_for_turn(WorkPtr work) {
    MutexLock lock(mutex_);
    going_on_.push_back(std::move(work));
    changed_.notify_one();
  }

  void failed(WorkPtr work, const Error& error) {
    // A compaction passed after the first piece, or the request asks for what is compacted: then the next try says so.
    const bool passed = error.message == mvcc::kErrorCompacted && work->encoder.size() > 0;
    if (passed && work->bytes_sent == 0 && work->restarts++ < kRestartsMax) {
      work->read->restart();
      work->encoder = http::PartsEncoder(work->encoder.codec());
      return wait_for_turn(std::move(work));
    }
    if (error.code == Code::kDataLoss) parts_.damaged(error);
    work->reply.send(::fail(error));
    leave(std::move(work));
  }

  // False: it stands in line, and will begin again.
  bool sit_down(const WorkPtr& work) {
    MutexLock lock(mutex_);
    if (work->seated) return true;
    if (seated_ < kSeats) {
      ++seated_;
      return work->seated = true;
    }
    work->read->restart();
    work->encoder = http::PartsEncoder(work->encoder.codec());
    standing_.push_back(work);
    return false;
  }

  // False: it waits until there is.
  bool has_room(const WorkPtr& work) {
    MutexLock lock(mutex_);
    if (bytes_ < kBytesMax) return true;
    large_.push_back(work);
    return false;
  }

  void send(WorkPtr work, bool last) {
    auto encoded = new http::Encoded{work->encoder.codec(), work->encoder.take()};
    const size_t bytes = encoded->bytes.size();
    work->bytes_sent += bytes;
    {
      MutexLock lock(mutex_);
      bytes_ += bytes;
      work->bytes += bytes;
      work->done = last;
    }
    // The last owner of the part is the connection, when it has written it or is closed.
    std::shared_ptr<const http::Encoded> part(encoded, [pool = shared_from_this(), work, bytes](const auto* gone) {
      delete gone;
      pool->arrived(work, bytes);
    });
    work->reply.send_part(std::move(part), last);
    if (last) return;
    MutexLock lock(mutex_);
    if (may_go_on(*work)) {
      going_on_.push_back(std::move(work));
      changed_.notify_one();
    } else {
      work->parked = true;  // its parts know it, and there is at least one
    }
  }

  // One part always; more while half of the room that is left is more than what this one has taken of it.
  bool may_go_on(const Work& work) const REQUIRES(mutex_) {
    if (work.bytes == 0) return true;
    return bytes_ < kBytesMax && work.bytes + kPartBytes <= (kBytesMax - bytes_) / 2;
  }

  // On any thread, in the midst of a connection's work: nothing may be answered here.
  void arrived(const WorkPtr& work, size_t bytes) {
    MutexLock lock(mutex_);
    bytes_ -= bytes;
    work->bytes -= bytes;
    if (work->done && work->bytes == 0) stand_up(*work);
    if (work->parked && may_go_on(*work)) {
      work->parked = false;
      going_on_.push_back(work);
      changed_.notify_one();
    }
    if (bytes_ >= kBytesMax) return;
    for (WorkPtr& waited : large_) {
      fresh_.push_back(std::move(waited));
      changed_.notify_one();
    }
    large_.clear();
  }

  // It will send no more. What is still on its way keeps its seat.
  void leave(WorkPtr work) {
    const http::Reply dropped = std::move(work->reply);
    MutexLock lock(mutex_);
    work->done = true;
    if (work->bytes == 0) stand_up(*work);
  }

  void stand_up(Work& work) REQUIRES(mutex_) {
    if (!std::exchange(work.seated, false)) return;
    if (standing_.empty()) {
      --seated_;
      return;
    }
    standing_.front()->seated = true;
    going_on_.push_back(std::move(standing_.front()));
    standing_.pop_front();
    changed_.notify_one();
  }

  const Parts parts_;
  std::vector<std::thread> threads_;
  mutable Mutex mutex_;
  Condition changed_;
  std::deque<WorkPtr> fresh_ GUARDED_BY(mutex_);     // to begin
  std::deque<WorkPtr> going_on_ GUARDED_BY(mutex_);  // have their turn again
  std::deque<WorkPtr> standing_ GUARDED_BY(mutex_);  // wait for a seat
  std::deque<WorkPtr> large_ GUARDED_BY(mutex_);     // wait for room
  size_t seated_ GUARDED_BY(mutex_) = 0;
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  int fresh_in_a_row_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

LargeReads::LargeReads(Parts parts) : pool_(std::make_shared<Pool>(std::move(parts))) {}
LargeReads::~LargeReads() { stop(); }
void LargeReads::start() { pool_->start(); }
void LargeReads::stop() { pool_->stop(); }
void LargeReads::submit(std::unique_ptr<LargeRead> read, http::Reply reply) {
  pool_->submit(std::move(read), std::move(reply));
}
LargeReads::Stats LargeReads::stats() const { return pool_->stats(); }

}  // namespace rpc
