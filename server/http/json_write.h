// Protobuf messages as the gateway's JSON: snake_case names in declared order, nothing that has its default, 64-bit
// integers as strings, bytes in base64, enums by name. No white space.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace http::json {

void append(std::string& out, const google::protobuf::Message& message);
// With quotes. What is not UTF-8 becomes U+FFFD: JSON has no other way to carry it.
void append_string(std::string& out, std::string_view text);
// {"result":{...}} and a newline: one message of a stream.
void append_result(std::string& out, const google::protobuf::Message& message);
// {"code":5,"message":"..."}
void append_error(std::string& out, const Error& error);

struct Field;

// One message that comes in parts (see http::PartsEncoder), into any number of strings.
class PartsWriter {
 public:
  void add(std::string& out, const google::protobuf::Message& part);
  void close(std::string& out);  // the end of the message

 private:
  const Field* list_ = nullptr;  // still open: the next part may go on with it
  bool begun_ = false;
  bool any_ = false;  // a field is there
};

}  // namespace http::json
