// One client's connection, whatever is spoken on it: the socket, what waits to be written to it, and its turns in the
// passes of its io thread. What is read and what is answered is the business of the class below: Http1Connection, which
// every connection begins as, or Http2Connection, which takes the socket over when it reads HTTP/2's preface.
//
// Io thread only, but for what a derived class declares for others.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/handler.h"
#include "http/io_thread.h"
#include "http/output.h"

namespace http {

void shrink(std::string& text);  // empties a buffer; an idle connection keeps no more than kIdleBufferBytes of it

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::posix::stream_descriptor;

  Connection(IoThread& io, Socket socket, std::shared_ptr<const Peer> peer, bool tcp);
  virtual ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Called by the io thread.
  virtual void start() = 0;
  virtual void receive(Letter& letter) = 0;
  virtual void run_calls() = 0;            // after IoThread::call_ready()
  virtual void pump(uint64_t stream) = 0;  // after Stream::wake()
  virtual void sweep(IoThread::Clock::time_point now) = 0;
  virtual void begin_stop() = 0;
  void settle();      // after IoThread::unsettled()
  void begin_pass();  // after IoThread::next_pass()
  void abort();       // closes at once; streams hear on_cancel()
  size_t slot() const { return slot_; }
  void set_slot(size_t slot) { slot_ = slot; }

 protected:
  // What the protocol has to say.
  virtual bool wants_input() const = 0;
  virtual void on_input(std::string_view data) = 0;
  virtual void on_eof() = 0;
  virtual void before_write() = 0;  // brings what is to be written into out_
  virtual void after_write() = 0;
  virtual void on_abort() = 0;                                   // its calls and streams end
  virtual void on_written_all() {}                               // out_ is empty
  virtual size_t write_progress_bytes_min() const { return 1; }  // in a write_timeout, from a client that is read to

  // Whatever changes the connection within a round ends with this; settle() then brings socket and state together once.
  void unsettle();
  void wait_read();
  // Of what a connection may do in a pass, `done` of which is done.
  size_t pass_bytes_left(size_t done);
  size_t pass_bytes_left_to_make() { return pass_bytes_left(static_cast<size_t>(sent_ + out_.size() - pass_made_)); }
  void wait_pass();
  // What is kept of this connection's requests goes into the sum of all; false: that is over the limit, and this
  // connection has a part in it.
  bool account(size_t kept);
  bool closed() const { return !socket_; }
  int native_socket() { return socket_->native_handle(); }
  // Another class goes on with the socket; this object is over.
  Socket release();

  IoThread& io_;
  const std::shared_ptr<Inbox> inbox_;
  const std::shared_ptr<const Peer> peer_;
  const bool tcp_;
  Output out_;
  bool read_eof_ = false;
  bool writing_ = false;      // waiting for the socket to be writable
  bool awaits_pass_ = false;  // it has had its share of this one
  IoThread::Clock::time_point write_deadline_ = IoThread::Clock::time_point::max();

 private:
  void on_readable();
  void write();
  void note_blocked(size_t written);
  void wait_write();

  std::optional<Socket> socket_;
  size_t slot_ = 0;
  bool unsettled_ = false;
  bool reading_ = false;    // waiting for the socket to be readable
  uint64_t pass_ = 0;       // the one that the two below are of
  uint64_t pass_sent_ = 0;  // sent_ when it began
  uint64_t pass_made_ = 0;  // sent_ and what waited in out_ when it began
  uint64_t sent_ = 0;
  size_t accounted_ = 0;       // of Shared::requests_bytes
  size_t write_progress_ = 0;  // since the write deadline was set
};

}  // namespace http
