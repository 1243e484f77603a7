// The transcoder alone, on one thread.
#include <chrono>
#include <cstdio>
#include <functional>

#include "api/rpc.pb.h"
#include "http/json_parse.h"
#include "http/json_write.h"

using namespace etcdserverpb;

namespace {

void measure(const char* what, size_t bytes, const std::function<void()>& once) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  size_t times = 0;
  double seconds = 0;
  for (size_t batch = 1; seconds < 0.5; batch *= 2) {
    for (size_t i = 0; i < batch; ++i) once();
    times += batch;
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  const double each = seconds / static_cast<double>(times);
  std::printf("%-28s %10.0f ns %8.0f MB/s\n", what, each * 1e9, static_cast<double>(bytes) / each / 1e6);
}

template <class Message>
void measure_parse(const char* what, const std::string& text) {
  measure(what, text.size(), [&] {
    Message message;
    if (!http::json::parse(text, message)) std::abort();
  });
}

void measure_write(const char* what, const google::protobuf::Message& message) {
  std::string out;
  http::json::append(out, message);
  measure(what, out.size(), [&] {
    out.clear();
    http::json::append(out, message);
  });
}

}  // namespace

int main() {
  measure_parse<PutRequest>("parse put, 256 bytes",
                            R"({"key":"YmVuY2gva2V5LzEyMzQ1","value":")" + std::string(344, 'A') + "\"}");
  measure_parse<PutRequest>("parse put, 1 MB", R"({"key":"YQ==","value":")" + std::string(1 << 20, 'A') + "\"}");
  measure_parse<RangeRequest>("parse range", R"({"key":"YmVuY2gva2V5LzEyMzQ1"})");
  measure_parse<TxnRequest>(
      "parse txn",
      R"({"compare":[{"result":"EQUAL","target":"CREATE","key":"YQ==","create_revision":"0"}],)"
      R"("success":[{"requestPut":{"key":"YQ==","value":"Yg=="}}],"failure":[{"requestRange":{"key":"YQ=="}}]})");

  PutResponse put;
  put.mutable_header()->set_cluster_id(324952591200643719);
  put.mutable_header()->set_member_id(3319814642761637952);
  put.mutable_header()->set_revision(123456);
  put.mutable_header()->set_raft_term(2);
  measure_write("write put", put);
  RangeResponse range;
  for (int i = 0; i < 10'000; ++i) {
    auto* kv = range.add_kvs();
    kv->set_key("bench/key/" + std::to_string(i));
    kv->set_create_revision(100 + i);
    kv->set_mod_revision(200'000 + i);
    kv->set_version(3);
    kv->set_value(std::string(256, 'v'));
  }
  measure_write("write 10,000 pairs of 256", range);
  WatchResponse watch;
  watch.add_events()->mutable_kv()->CopyFrom(range.kvs(0));
  measure_write("write one event", watch);
  return 0;
}
