#include "rpc/watch.h"

#include <utility>

namespace rpc {
namespace {

using etcdserverpb::WatchRequest;

// Everything happens on the io thread of the connection; only the hub's wake comes from elsewhere, and goes straight to
// the front end's queue.
class WatchHandler final : public http::StreamHandler {
 public:
  WatchHandler(watch::Hub& hub, std::shared_ptr<http::ServerStream> stream)
      : stream_(stream), watches_(hub.open([stream = std::move(stream)] { stream->wake(); })) {}
  ~WatchHandler() override { watches_->close(); }

  bool may_receive() override {
    held_back_ = watches_->crowded();
    return !held_back_;
  }

  void on_message(http::MessagePtr message) override {
    const auto& request = static_cast<const WatchRequest&>(*message);
    switch (request.request_union_case()) {
      case WatchRequest::kCreateRequest:
        return watches_->create(request.create_request());
      case WatchRequest::kCancelRequest:
        return watches_->cancel(request.cancel_request().watch_id());
      case WatchRequest::kProgressRequest:
        return watches_->progress();
      case WatchRequest::REQUEST_UNION_NOT_SET:
        return;  // as etcd: neither an answer nor an error
    }
  }

  // The stream goes on: over HTTP/1.1 the body of a watch ends with its first request.
  void on_half_close() override {}
  void on_cancel() override { watches_->close(); }

  void pull(http::Sink& sink) override {
    while (!sink.full()) {
      auto response = watches_->take();
      if (response == nullptr) break;
      if (response->shared) {
        sink.send(encoded(*response));
      } else {
        sink.send(response->message);
      }
    }
    if (held_back_ && !watches_->crowded()) {
      held_back_ = false;
      stream_->wake();  // takes requests again
    }
  }

 private:
  // Encoded by the first stream of this codec that gets it; the bytes live as long as the response is shared.
  std::shared_ptr<const http::Encoded> encoded(const watch::Response& response) {
    const http::Codec codec = stream_->codec();
    MutexLock lock(response.forms_mutex);
    auto& form = response.forms[static_cast<size_t>(codec)];
    if (form == nullptr) form = http::encode(codec, response.message);
    return std::static_pointer_cast<const http::Encoded>(form);
  }

  const std::shared_ptr<http::ServerStream> stream_;
  const std::shared_ptr<watch::Stream> watches_;
  bool held_back_ = false;
};

}  // namespace

void add_watch(http::Router& router, watch::Hub& hub, const HeaderSource& header) {
  hub.set_header([&header](etcdserverpb::ResponseHeader* to) { header.fill(to); });
  router.stream({.name = "/etcdserverpb.Watch/Watch",
                 .paths = {"/v3/watch"},
                 .request = &WatchRequest::default_instance(),
                 .open = [&hub](http::StreamStart start) -> Result<std::unique_ptr<http::StreamHandler>> {
                   return std::make_unique<WatchHandler>(hub, std::move(start.stream));
                 }});
}

}  // namespace rpc
