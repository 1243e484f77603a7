// The body of an HTTP/1.1 request, by length or in chunks, from input in any pieces. It keeps no input: what does not
// belong to the body has been understood when read() returns. (Beast's own chunk parser wants framing in one piece, and
// trips over an assertion of its own when a last chunk arrives byte by byte.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace http {

class BodyReader {
 public:
  static BodyReader of_length(uint64_t length);
  static BodyReader of_chunks();
  BodyReader() = default;  // of no body

  enum class Result { kDone, kMore, kBad };
  // Eats from `in`, appending the body's bytes to `body`, or dropping them when it is null. Stops with kMore when
  // `body` has reached `limit` bytes.
  Result read(std::string_view& in, std::string* body, size_t limit);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State {
    kData,       // of a length
    kSize,       // of a chunk: its first digit
    kSizeMore,   // further digits: 16 in all
    kExtension,  // skipped
    kSizeLf,
    kChunk,
    kChunkCr,
    kChunkLf,
    kTrailer,      // a line's first character
    kTrailerMore,  // the rest of the line, skipped
    kTrailerLf,
    kLastLf,
    kDone,
  };
  // One byte that is not data; false: it may not stand here.
  bool step(char c);

  State state_ = State::kDone;
  uint64_t left_ = 0;      // of the data, or of the chunk
  size_t line_bytes_ = 0;  // of a chunk's size with its extension, or of trailers, so far
};

}  // namespace http
