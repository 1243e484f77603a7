// The two ends of a request as cpprestsdk wants them: where it reads the body from, where it writes the answer to.
#pragma once

#include <cpprest/astreambuf.h>

#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace conclave::inline v1::internal {

// What both have in common: no seeking, no size, no buffer to hand out. cpprestsdk's client only calls _getn and _putn.
class PlainStreambuf : public concurrency::streams::details::streambuf_state_manager<std::uint8_t> {
 public:
  using Base = concurrency::streams::details::streambuf_state_manager<std::uint8_t>;
  using traits = Base::traits;
  using int_type = Base::int_type;
  using pos_type = traits::pos_type;
  using off_type = traits::off_type;

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(std::size_t, std::ios_base::openmode) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return pos_type(traits::eof()); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return pos_type(traits::eof()); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return pos_type(traits::eof());
  }
  bool acquire(std::uint8_t*& ptr, std::size_t& count) override {
    ptr = nullptr;
    count = 0;
    return false;
  }
  void release(std::uint8_t*, std::size_t) override {}

 protected:
  using Base::Base;
  explicit PlainStreambuf(std::ios_base::openmode mode) : Base(mode) {}

  static pplx::task<int_type> none() { return pplx::task_from_result<int_type>(traits::eof()); }
  pplx::task<int_type> _putc(std::uint8_t c) override {
    return _putn(&c, 1).then([c](std::size_t n) { return n == 1 ? int_type(c) : traits::eof(); });
  }
  pplx::task<std::size_t> _putn(const std::uint8_t*, std::size_t) override {
    return pplx::task_from_result<std::size_t>(0);
  }
  pplx::task<int_type> _bumpc() override { return none(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return none(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return none(); }
  pplx::task<int_type> _ungetc() override { return none(); }
  pplx::task<std::size_t> _getn(std::uint8_t*, std::size_t) override { return pplx::task_from_result<std::size_t>(0); }
  std::size_t _scopy(std::uint8_t*, std::size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  std::uint8_t* _alloc(std::size_t) override { return nullptr; }
  void _commit(std::size_t) override {}
};

// A request body of one or two pieces. The second is handed out only after finish().
class BodyReader : public PlainStreambuf {
 public:
  BodyReader(std::string head, std::string tail)
      : PlainStreambuf(std::ios_base::in), head_(std::move(head)), tail_(std::move(tail)) {}

  std::size_t bytes() const { return head_.size() + tail_.size(); }
  void finish();

 protected:
  pplx::task<std::size_t> _getn(std::uint8_t* into, std::size_t count) override;

 private:
  std::size_t copy(std::uint8_t* into, std::size_t count);

  const std::string head_;
  const std::string tail_;
  std::mutex mutex_;
  std::size_t position_ = 0;
  bool finished_ = false;
  std::uint8_t* waiting_into_ = nullptr;  // cpprestsdk's buffer, while it waits for the tail
  std::size_t waiting_count_ = 0;
  pplx::task_completion_event<std::size_t> waiting_;
};

// Gives each piece of an answer to `sink`, on the transport's threads.
class ReplyWriter : public PlainStreambuf {
 public:
  explicit ReplyWriter(std::function<void(std::string_view)> sink)
      : PlainStreambuf(std::ios_base::out), sink_(std::move(sink)) {}

 protected:
  pplx::task<std::size_t> _putn(const std::uint8_t* from, std::size_t count) override {
    sink_({reinterpret_cast<const char*>(from), count});
    return pplx::task_from_result(count);
  }

 private:
  std::function<void(std::string_view)> sink_;
};

}  // namespace conclave::inline v1::internal
