// JSON's tokens in a buffer that is complete: white space, strings, literals, values to be skipped. Error texts are
// those of Go's encoding/json and protojson, which etcd's gateway passes on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace http::json {

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Every function that answers bool answers false for an error, which error() then describes.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text), at_(text.data()), end_(text.data() + text.size()) {}

  const char* at() const { return at_; }
  void move_to(const char* at) { at_ = at; }
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }
  bool done() const { return at_ == end_; }
  bool next_is(char c) const { return at_ != end_ && *at_ == c; }

  void skip_space() {
    while (at_ != end_ && is_space(*at_)) ++at_;
  }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  bool literal(std::string_view word);
  // The next character must be the opening quote. `value` points into the buffer, or into `scratch` if there were
  // escapes.
  bool string(std::string_view& value, std::string& scratch);
  // Behind an element: a comma, or the end of the list or object that `close` closes.
  bool comma_or_end(char close, bool& more);
  // The name of the next member of an object with its colon.
  bool name(std::string_view& value, std::string& scratch);
  // Any well-formed value, within an object or list `depth` levels deep.
  bool skip_value(size_t depth);

  bool fail(std::string what) {
    error_ = std::move(what);
    return false;
  }
  // About the next character, or the end of the buffer.
  bool syntax(std::string_view where);
  // "(line 1:8)"
  std::string place(const char* at) const;
  std::string& error() { return error_; }

 private:
  bool string_with_escapes(std::string_view& value, std::string& scratch);
  bool escape(std::string& out);
  bool utf16_unit(uint32_t& value);
  bool scalar();

  std::string_view text_;
  const char* at_;
  const char* end_;
  std::string error_;
};

}  // namespace http::json
