// What the JSON transcoder must know of a message type, looked up once for the life of the process: names, kinds and
// ready-made keys of its fields. Every kind of field that etcd's messages use; maps, groups, floating point and
// extensions are refused when the table is made, which happens when a method is registered.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace http::json {

enum class Kind : uint8_t { kInt32, kInt64, kUint32, kUint64, kBool, kEnum, kString, kBytes, kMessage };

struct Table;

struct Field {
  const google::protobuf::FieldDescriptor* descriptor = nullptr;
  const Table* message = nullptr;  // of a message field
  Kind kind = Kind::kInt64;
  bool repeated = false;
  int index = 0;     // in the message
  int oneof = -1;    // of the message; -1: in none
  std::string name;  // "prev_kv"
  std::string key;   // ",\"prev_kv\":", for a 64-bit integer and bytes with the opening quote of the value
};

struct Table {
  const google::protobuf::Descriptor* descriptor = nullptr;
  const google::protobuf::Reflection* reflection = nullptr;
  const google::protobuf::Message* prototype = nullptr;
  std::vector<Field> fields;  // as declared
  // Input names: snake and camel case, each with its index in `fields`.
  struct Name {
    std::string text;
    uint16_t field;
  };
  std::vector<Name> names;

  const Field* find(std::string_view name) const {
    for (const Name& candidate : names) {
      if (candidate.text == name) return &fields[candidate.field];
    }
    return nullptr;
  }
};

inline constexpr int kFieldsMax = 64;  // of one message: what was seen is a bit set

// The table of a generated message type; made with those of all types below it at the first call. Any thread.
const Table& table_of(const google::protobuf::Message& message);

}  // namespace http::json
