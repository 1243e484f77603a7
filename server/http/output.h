// What waits to be written to a socket: a queue of byte strings, the last of which grows. Owned by one io thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "http/handler.h"

namespace http {

class Output {
 public:
  // To append to. Valid until the next call of another member.
  std::string& tail();
  // For what is large: taken over or shared instead of copied.
  void add(std::string bytes);
  void add(std::shared_ptr<const Encoded> encoded);

  bool empty() const { return size() == 0; }
  size_t size() const;  // bytes not yet written

  enum class Written { kAll, kMore, kBlocked, kFailed };
  // As much as the socket takes without blocking, at most `bytes_max` (then kMore); `sent` grows by it.
  Written write_to(int socket, size_t bytes_max, uint64_t& sent);
  void clear();

 private:
  struct Piece {
    std::string own;
    std::shared_ptr<const Encoded> shared;
    std::string_view view() const { return shared ? std::string_view(shared->bytes) : std::string_view(own); }
  };
  void drop(size_t bytes);

  std::vector<Piece> pieces_;
  size_t first_ = 0;        // pieces before it are written and empty
  size_t offset_ = 0;       // written of pieces_[first_]
  size_t closed_size_ = 0;  // of all pieces but the last
};

}  // namespace http
