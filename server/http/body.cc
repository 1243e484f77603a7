#include "http/body.h"

#include <algorithm>

#include "http/limits.h"

namespace http {
namespace {

constexpr size_t kChunkSizeDigitsMax = 16;  // as Go: zeros before the size count

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

BodyReader BodyReader::of_length(uint64_t length) {
  BodyReader reader;
  reader.left_ = length;
  reader.state_ = length == 0 ? State::kDone : State::kData;
  return reader;
}

BodyReader BodyReader::of_chunks() {
  BodyReader reader;
  reader.state_ = State::kSize;
  return reader;
}

BodyReader::Result BodyReader::read(std::string_view& in, std::string* body, size_t limit) {
  while (!done()) {
    if (in.empty()) return Result::kMore;
    if (state_ != State::kData && state_ != State::kChunk) {
      if (!step(in.front())) return Result::kBad;
      in.remove_prefix(1);
      continue;
    }
    uint64_t size = std::min<uint64_t>(left_, in.size());
    if (body != nullptr) {
      if (body->size() >= limit) return Result::kMore;
      size = std::min<uint64_t>(size, limit - body->size());
      body->append(in.substr(0, size));
    }
    in.remove_prefix(size);
    left_ -= size;
    if (left_ == 0) state_ = state_ == State::kData ? State::kDone : State::kChunkCr;
  }
  return Result::kDone;
}

bool BodyReader::step(char c) {
  const auto expect = [&](char wanted, State next) {
    state_ = next;
    return c == wanted;
  };
  switch (state_) {
    case State::kSize:
      left_ = 0;
      line_bytes_ = 0;
      state_ = State::kSizeMore;
      if (hex_digit(c) < 0) return false;
      [[fallthrough]];
    case State::kSizeMore:
      if (const int digit = hex_digit(c); digit >= 0) {
        if (left_ >> 56 != 0 || ++line_bytes_ > kChunkSizeDigitsMax) return false;
        left_ = left_ << 4 | static_cast<uint64_t>(digit);
        return true;
      }
      if (c == '\r') return expect('\r', State::kSizeLf);
      state_ = State::kExtension;
      return c == ';' || c == ' ' || c == '\t';
    case State::kExtension:
      if (c == '\r') return expect('\r', State::kSizeLf);
      return c != '\n' && ++line_bytes_ <= kHeadBytesMax;
    case State::kSizeLf:
      return expect('\n', left_ == 0 ? State::kTrailer : State::kChunk);
    case State::kChunkCr:
      return expect('\r', State::kChunkLf);
    case State::kChunkLf:
      return expect('\n', State::kSize);
    case State::kTrailer:
      if (c == '\r') return expect('\r', State::kLastLf);
      state_ = State::kTrailerMore;
      [[fallthrough]];
    case State::kTrailerMore:
      if (c == '\r') return expect('\r', State::kTrailerLf);
      return c != '\n' && ++line_bytes_ <= kHeadBytesMax;
    case State::kTrailerLf:
      return expect('\n', State::kTrailer);
    case State::kLastLf:
      return expect('\n', State::kDone);
    case State::kData:
    case State::kChunk:
    case State::kDone:
      break;
  }
  return false;
}

}  // namespace http
