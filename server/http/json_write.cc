#include "http/json_write.h"

#include <charconv>
#include <cstring>

#include "base/check.h"
#include "http/base64.h"
#include "http/json_table.h"
#include "http/json_text.h"

namespace http::json {
namespace {

using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kNeverEmpty = static_cast<size_t>(-1);  // as the size of an object that has a field already
constexpr int kSampled = 64;                             // elements of a list that tell how long the others will be

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void message(const Message& message, const Table& table) {
    out_ += '{';
    const size_t empty = out_.size();
    for (const Field& field : table.fields) {
      if (field.repeated) {
        repeated(message, *table.reflection, field, empty);
      } else {
        singular(message, *table.reflection, field, empty);
      }
    }
    out_ += '}';
  }

  // A field on its own, behind what `out` may hold of its object already (`empty`: its size without any).
  void singular_of(const Message& message, const Table& table, const Field& field, size_t empty) {
    singular(message, *table.reflection, field, empty);
  }
  void list_begin(const Field& field, size_t empty) { key(field, empty); }
  void list_items(const Message& message, const Table& table, const Field& field, bool first) {
    items(message, *table.reflection, field, table.reflection->FieldSize(message, field.descriptor), first);
  }

 private:
  // Every key begins with a comma; the first one of an object leaves it out.
  void key(const Field& field, size_t empty) {
    std::string_view text = field.key;
    if (out_.size() == empty) text.remove_prefix(1);
    out_.append(text);
  }

  // Key, number and closing quote in one piece: these are most of what a key-value pair consists of.
  template <class Integer>
  void quoted_number(const Field& field, Integer value, size_t empty) {
    char piece[96];
    std::string_view text = field.key;
    if (out_.size() == empty) text.remove_prefix(1);
    if (text.size() > sizeof(piece) - 24) {
      out_.append(text);
      text = {};
    }
    std::memcpy(piece, text.data(), text.size());
    char* end = std::to_chars(piece + text.size(), piece + sizeof(piece), value).ptr;
    *end++ = '"';
    out_.append(piece, static_cast<size_t>(end - piece));
  }

  template <class Integer>
  void number(Integer value) {
    char piece[24];
    out_.append(piece, static_cast<size_t>(std::to_chars(piece, piece + sizeof(piece), value).ptr - piece));
  }

  void enumeration(const Field& field, int value) {
    if (const auto* name = field.descriptor->enum_type()->FindValueByNumber(value)) {
      out_ += '"';
      out_ += name->name();
      out_ += '"';
    } else {
      number(value);
    }
  }

  void singular(const Message& message, const Reflection& reflection, const Field& field, size_t empty) {
    const auto* descriptor = field.descriptor;
    // A member of a oneof that is set is there, whatever its value; any other scalar is there when it is not zero.
    const bool there = field.oneof >= 0 && reflection.HasField(message, descriptor);
    if (field.oneof >= 0 && !there) return;
    switch (field.kind) {
      case Kind::kInt64:
        if (const int64_t value = reflection.GetInt64(message, descriptor); value != 0 || there) {
          quoted_number(field, value, empty);
        }
        return;
      case Kind::kUint64:
        if (const uint64_t value = reflection.GetUInt64(message, descriptor); value != 0 || there) {
          quoted_number(field, value, empty);
        }
        return;
      case Kind::kInt32:
        if (const int32_t value = reflection.GetInt32(message, descriptor); value != 0 || there) {
          key(field, empty);
          number(value);
        }
        return;
      case Kind::kUint32:
        if (const uint32_t value = reflection.GetUInt32(message, descriptor); value != 0 || there) {
          key(field, empty);
          number(value);
        }
        return;
      case Kind::kBool:
        if (const bool value = reflection.GetBool(message, descriptor); value || there) {
          key(field, empty);
          out_.append(value ? "true" : "false");
        }
        return;
      case Kind::kEnum:
        if (const int value = reflection.GetEnumValue(message, descriptor); value != 0 || there) {
          key(field, empty);
          enumeration(field, value);
        }
        return;
      case Kind::kString:
      case Kind::kBytes: {
        std::string scratch;
        const std::string& value = reflection.GetStringReference(message, descriptor, &scratch);
        if (value.empty() && !there) return;
        key(field, empty);
        if (field.kind == Kind::kString) {
          append_string(out_, value);
        } else {
          bytes(value);
        }
        return;
      }
      case Kind::kMessage:
        if (there || reflection.HasField(message, descriptor)) {
          key(field, empty);
          this->message(reflection.GetMessage(message, descriptor), *field.message);
        }
        return;
    }
  }

  // After the opening quote, with the closing one.
  void bytes(std::string_view value) {
    const size_t before = out_.size();
    out_.resize(before + base64_size(value.size()) + 1);
    *write_base64(out_.data() + before, value) = '"';
  }

  void repeated(const Message& message, const Reflection& reflection, const Field& field, size_t empty) {
    const auto* descriptor = field.descriptor;
    const int size = reflection.FieldSize(message, descriptor);
    if (size == 0) return;
    key(field, empty);
    items(message, reflection, field, size, /*first=*/true);
    out_ += ']';
  }

  void items(const Message& message, const Reflection& reflection, const Field& field, int size, bool first) {
    if (field.kind == Kind::kMessage) {
      const size_t before = out_.size();
      for (int i = 0; i < size; ++i) {
        if (i == kSampled) {
          // The rest will be much like these: growing by doubling would copy a long list several times.
          const size_t each = (out_.size() - before) / kSampled + 1;
          out_.reserve(out_.size() + each * static_cast<size_t>(size - i) * 17 / 16);
        }
        if (i > 0 || !first) out_ += ',';
        this->message(reflection.GetRepeatedMessage(message, field.descriptor, i), *field.message);
      }
    } else {
      for (int i = 0; i < size; ++i) {
        if (i > 0 || !first) out_ += ',';
        element(message, reflection, field, i);
      }
    }
  }

  void element(const Message& message, const Reflection& reflection, const Field& field, int i) {
    const auto* descriptor = field.descriptor;
    std::string scratch;
    switch (field.kind) {
      case Kind::kInt32:
        return number(reflection.GetRepeatedInt32(message, descriptor, i));
      case Kind::kUint32:
        return number(reflection.GetRepeatedUInt32(message, descriptor, i));
      case Kind::kInt64:
        out_ += '"';
        number(reflection.GetRepeatedInt64(message, descriptor, i));
        out_ += '"';
        return;
      case Kind::kUint64:
        out_ += '"';
        number(reflection.GetRepeatedUInt64(message, descriptor, i));
        out_ += '"';
        return;
      case Kind::kBool:
        out_.append(reflection.GetRepeatedBool(message, descriptor, i) ? "true" : "false");
        return;
      case Kind::kEnum:
        return enumeration(field, reflection.GetRepeatedEnumValue(message, descriptor, i));
      case Kind::kString:
        return append_string(out_, reflection.GetRepeatedStringReference(message, descriptor, i, &scratch));
      case Kind::kBytes:
        out_ += '"';
        return bytes(reflection.GetRepeatedStringReference(message, descriptor, i, &scratch));
      case Kind::kMessage:
        break;
    }
    CHECK(false, field.name);
  }

  std::string& out_;
};

}  // namespace

void append(std::string& out, const Message& message) { Writer(out).message(message, table_of(message)); }

void PartsWriter::add(std::string& out, const Message& part) {
  const Table& table = table_of(part);
  Writer writer(out);
  if (!begun_) out += '{';
  begun_ = true;
  for (const Field& field : table.fields) {
    if (field.repeated) {
      if (table.reflection->FieldSize(part, field.descriptor) == 0) continue;
      const bool goes_on = list_ == &field;
      if (!goes_on) {
        if (list_ != nullptr) out += ']';
        writer.list_begin(field, any_ ? kNeverEmpty : out.size());
      }
      writer.list_items(part, table, field, !goes_on);
      list_ = &field;
      any_ = true;
    } else {
      const size_t before = out.size();
      if (list_ != nullptr) out += ']';
      const size_t after = out.size();
      writer.singular_of(part, table, field, any_ ? kNeverEmpty : after);
      if (out.size() == after) {
        out.resize(before);  // the field is not there
        continue;
      }
      list_ = nullptr;
      any_ = true;
    }
  }
}

void PartsWriter::close(std::string& out) {
  if (!begun_) out += '{';
  if (list_ != nullptr) out += ']';
  out += '}';
  *this = PartsWriter();
}

void append_string(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  size_t plain = 0;  // start of what has not been copied yet
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
      ++i;
      continue;
    }
    if (c >= 0x80) {
      if (const size_t length = utf8_sequence(text.substr(i)); length > 0) {
        i += length;
        continue;
      }
    }
    out.append(text.substr(plain, i - plain));
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c >= 0x80) {
          out += "\xef\xbf\xbd";
        } else {
          out += "\\u00";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        }
    }
    plain = ++i;
  }
  out.append(text.substr(plain));
  out += '"';
}

void append_result(std::string& out, const Message& message) {
  out += "{\"result\":";
  append(out, message);
  out += "}\n";
}

void append_error(std::string& out, const Error& error) {
  out += "{\"code\":";
  out += std::to_string(static_cast<int>(error.code));
  out += ",\"message\":";
  append_string(out, error.message);
  out += '}';
}

}  // namespace http::json
