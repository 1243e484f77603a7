// JSON into protobuf messages as etcd's gateway reads it (Go's protojson with DiscardUnknown, behind encoding/json):
// names in snake or camel case, unknown fields skipped, null is unset, a field or oneof given twice is refused,
// integers as numbers or strings, enums by name or number (an unknown name is as if the field were not there), bytes in
// any base64.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace http::json {

// Reads the first JSON value of `text` into `message`, which must be empty; what follows the value is ignored. Nothing
// but blanks counts as {}. Fails with kInvalidArgument; `message` then holds what came before the fault.
Status parse(std::string_view text, google::protobuf::Message& message);

// Finds where a JSON object ends in text that arrives in pieces; it understands no more than brackets and strings.
class Scanner {
 public:
  enum class Found { kObject, kMore, kNotObject };
  // Looks at `text`, which starts where the previous object ended and has only grown since the last call that answered
  // kMore. kObject: the object is text.substr(begin(), size()). kNotObject: something else than an object begins here.
  Found scan(std::string_view text);
  size_t begin() const { return begin_; }
  size_t size() const { return at_ - begin_; }
  size_t end() const { return at_; }
  bool blank() const { return depth_ == 0; }  // after kMore: nothing has begun
  void reset() { *this = Scanner(); }

 private:
  size_t begin_ = 0;
  size_t at_ = 0;
  size_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace http::json
