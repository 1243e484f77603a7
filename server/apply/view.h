// What the compares and ranges of a transaction read from: the writer of the batch, or a reader for transactions that
// only read.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "mvcc/mvcc.h"

namespace apply {

class View {
 public:
  using Head = mvcc::Writer::Head;

  virtual ~View() = default;
  virtual int64_t revision() const = 0;  // that a range reads at now
  virtual Status range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response) = 0;
  virtual Result<mvcc::KeyValuePtr> get(std::string_view key) = 0;
  // The latest heads in [key, end) until `visit` returns false.
  virtual Status heads(std::string_view key, std::string_view end, const std::function<bool(const Head&)>& visit) = 0;
};

class WriterView final : public View {
 public:
  explicit WriterView(mvcc::Writer& writer) : writer_(writer) {}
  int64_t revision() const override { return writer_.revision(); }
  Status range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response) override {
    return writer_.range(request, response);
  }
  Result<mvcc::KeyValuePtr> get(std::string_view key) override { return writer_.get(key); }
  Status heads(std::string_view key, std::string_view end, const std::function<bool(const Head&)>& visit) override {
    writer_.heads(key, end, visit);
    return {};
  }

 private:
  mvcc::Writer& writer_;
};

class ReaderView final : public View {
 public:
  explicit ReaderView(mvcc::Reader& reader) : reader_(reader) {}
  int64_t revision() const override { return reader_.at().revision; }
  Status range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response) override {
    return reader_.range(request, response);
  }
  Result<mvcc::KeyValuePtr> get(std::string_view key) override { return reader_.get(key, 0); }
  Status heads(std::string_view key, std::string_view end, const std::function<bool(const Head&)>& visit) override;

 private:
  mvcc::Reader& reader_;
};

}  // namespace apply
