#include "http/json_parse.h"

#include <cstring>
#include <string>

#include "base/check.h"
#include "http/base64.h"
#include "http/json_lexer.h"
#include "http/json_number.h"
#include "http/json_table.h"
#include "http/limits.h"

namespace http::json {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  Lexer& lexer() { return in_; }
  bool message(Message& message, const Table& table);

 private:
  bool members(Message& message, const Table& table);
  bool list(Message& message, const Table& table, const Field& field);
  // One value of `field`: sets it, or adds it when the field is repeated.
  bool value(Message& message, const Table& table, const Field& field);
  template <class Integer>
  bool integer(const Field& field, Integer& value);
  bool boolean(const Field& field, bool& value);
  bool enumeration(const Field& field, int& value, bool& known);
  bool text(const Field& field, std::string& value);
  bool bytes(const Field& field, std::string& value);
  bool unexpected_token();
  bool invalid_value(const Field& field, const char* from);

  Lexer in_;
  size_t depth_ = 0;
  std::string name_scratch_;
};

bool Parser::unexpected_token() {
  const char* from = in_.at();
  if (!in_.skip_value(depth_)) return false;
  const size_t length = *from == '[' || *from == '{' ? 1 : static_cast<size_t>(in_.at() - from);
  return in_.fail("proto: syntax error " + in_.place(from) + ": unexpected token " + std::string(from, length));
}

// A value that is not even JSON is reported as such: etcd looks at the syntax of the whole body first.
bool Parser::invalid_value(const Field& field, const char* from) {
  in_.move_to(from);
  if (!in_.skip_value(depth_)) return false;
  const size_t length = *from == '[' || *from == '{' ? 1 : static_cast<size_t>(in_.at() - from);
  return in_.fail("proto: " + in_.place(from) + ": invalid value for " + field.descriptor->type_name() + " field " +
                  field.descriptor->json_name() + ": " + std::string(from, length));
}

bool Parser::message(Message& message, const Table& table) {
  in_.skip_space();
  if (!in_.next_is('{')) return unexpected_token();
  if (++depth_ > kJsonMessageDepthMax) return in_.fail("exceeded max depth");
  in_.take('{');
  in_.skip_space();
  if (!in_.take('}') && !members(message, table)) return false;
  --depth_;
  return true;
}

bool Parser::members(Message& message, const Table& table) {
  uint64_t seen = 0;
  uint64_t seen_oneofs = 0;
  for (bool more = true; more;) {
    in_.skip_space();
    const char* from = in_.at();
    std::string_view name;
    if (!in_.name(name, name_scratch_)) return false;
    const Field* field = table.find(name);
    if (field == nullptr) {
      if (!in_.skip_value(depth_)) return false;
    } else if (seen >> field->index & 1) {
      return in_.fail("proto: " + in_.place(from) + ": duplicate field \"" + std::string(name) + "\"");
    } else {
      seen |= uint64_t{1} << field->index;
      if (in_.next_is('n')) {
        if (!in_.literal("null")) return false;
      } else {
        if (field->oneof >= 0) {
          if (seen_oneofs >> field->oneof & 1) {
            return in_.fail("proto: " + in_.place(from) + ": error parsing \"" + std::string(name) + "\", oneof " +
                            table.descriptor->oneof_decl(field->oneof)->full_name() + " is already set");
          }
          seen_oneofs |= uint64_t{1} << field->oneof;
        }
        if (field->repeated ? !list(message, table, *field) : !value(message, table, *field)) return false;
      }
    }
    if (!in_.comma_or_end('}', more)) return false;
  }
  return true;
}

bool Parser::list(Message& message, const Table& table, const Field& field) {
  if (!in_.next_is('[')) return unexpected_token();
  in_.take('[');
  in_.skip_space();
  if (in_.take(']')) return true;
  for (bool more = true; more;) {
    in_.skip_space();
    if (!value(message, table, field)) return false;
    if (!in_.comma_or_end(']', more)) return false;
  }
  return true;
}

bool Parser::value(Message& message, const Table& table, const Field& field) {
  const Reflection& r = *table.reflection;
  const FieldDescriptor* descriptor = field.descriptor;
  switch (field.kind) {
    case Kind::kInt32: {
      int32_t number = 0;
      if (!integer(field, number)) return false;
      field.repeated ? r.AddInt32(&message, descriptor, number) : r.SetInt32(&message, descriptor, number);
      return true;
    }
    case Kind::kInt64: {
      int64_t number = 0;
      if (!integer(field, number)) return false;
      field.repeated ? r.AddInt64(&message, descriptor, number) : r.SetInt64(&message, descriptor, number);
      return true;
    }
    case Kind::kUint32: {
      uint32_t number = 0;
      if (!integer(field, number)) return false;
      field.repeated ? r.AddUInt32(&message, descriptor, number) : r.SetUInt32(&message, descriptor, number);
      return true;
    }
    case Kind::kUint64: {
      uint64_t number = 0;
      if (!integer(field, number)) return false;
      field.repeated ? r.AddUInt64(&message, descriptor, number) : r.SetUInt64(&message, descriptor, number);
      return true;
    }
    case Kind::kBool: {
      bool truth = false;
      if (!boolean(field, truth)) return false;
      field.repeated ? r.AddBool(&message, descriptor, truth) : r.SetBool(&message, descriptor, truth);
      return true;
    }
    case Kind::kEnum: {
      int number = 0;
      bool known = false;
      if (!enumeration(field, number, known)) return false;
      if (!known) return true;
      field.repeated ? r.AddEnumValue(&message, descriptor, number) : r.SetEnumValue(&message, descriptor, number);
      return true;
    }
    case Kind::kString:
    case Kind::kBytes: {
      std::string content;
      if (field.kind == Kind::kString ? !text(field, content) : !bytes(field, content)) return false;
      field.repeated ? r.AddString(&message, descriptor, std::move(content))
                     : r.SetString(&message, descriptor, std::move(content));
      return true;
    }
    case Kind::kMessage:
      return this->message(
          field.repeated ? *r.AddMessage(&message, descriptor) : *r.MutableMessage(&message, descriptor),
          *field.message);
  }
  CHECK(false, field.name);
  return false;
}

template <class Integer>
bool Parser::integer(const Field& field, Integer& value) {
  const char* from = in_.at();
  const bool quoted = in_.next_is('"');
  std::string scratch;
  std::string_view content = in_.rest();
  if (quoted && !in_.string(content, scratch)) return false;
  const auto number = scan_number(content);
  // Blanks at either end of a string are refused, but "1 2" reads as 1, as in Go.
  const bool whole = number && (!quoted || (number->delimited && !is_space(content.back())));
  const auto result = whole ? to_integer<Integer>(*number) : std::nullopt;
  if (!result) return invalid_value(field, from);
  value = *result;
  if (!quoted) in_.move_to(from + number->text.size());
  return true;
}

bool Parser::boolean(const Field& field, bool& value) {
  value = in_.next_is('t');
  if (value) return in_.literal("true");
  if (in_.next_is('f')) return in_.literal("false");
  return invalid_value(field, in_.at());
}

bool Parser::enumeration(const Field& field, int& value, bool& known) {
  if (in_.next_is('"')) {
    std::string scratch;
    std::string_view name;
    if (!in_.string(name, scratch)) return false;
    const auto* found = field.descriptor->enum_type()->FindValueByName(std::string(name));
    known = found != nullptr;
    if (known) value = found->number();
    return true;
  }
  const auto number = scan_number(in_.rest());
  const auto result = number ? to_integer<int32_t>(*number) : std::nullopt;
  if (!result) return invalid_value(field, in_.at());
  known = true;
  value = *result;
  in_.move_to(in_.at() + number->text.size());
  return true;
}

bool Parser::text(const Field& field, std::string& value) {
  if (!in_.next_is('"')) return invalid_value(field, in_.at());
  std::string_view content;
  if (!in_.string(content, value)) return false;
  if (content.data() != value.data()) value.assign(content);
  return true;
}

bool Parser::bytes(const Field& field, std::string& value) {
  const char* from = in_.at();
  if (!in_.next_is('"')) return invalid_value(field, from);
  // Straight from the buffer: no character of base64 needs the checks or escapes of a string. Line breaks are base64's
  // to skip but may not stand in a string.
  const std::string_view rest = in_.rest().substr(1);
  if (const size_t size = rest.find('"'); size != std::string_view::npos) {
    const std::string_view content = rest.substr(0, size);
    if (decode_base64(content, value) && content.find('\n') == std::string_view::npos &&
        content.find('\r') == std::string_view::npos) {
      in_.move_to(from + size + 2);
      return true;
    }
  }
  std::string scratch;
  std::string_view content;
  if (!in_.string(content, scratch)) return false;
  return decode_base64(content, value) || invalid_value(field, from);
}

}  // namespace

Status parse(std::string_view text, Message& message) {
  Parser parser(text);
  parser.lexer().skip_space();
  if (parser.lexer().done()) return {};
  if (!parser.message(message, table_of(message))) {
    return fail(Code::kInvalidArgument, std::move(parser.lexer().error()));
  }
  return {};
}

Scanner::Found Scanner::scan(std::string_view text) {
  if (depth_ == 0) {
    while (at_ < text.size() && is_space(text[at_])) ++at_;
    if (at_ == text.size()) return Found::kMore;
    if (text[at_] != '{') return Found::kNotObject;
    begin_ = at_++;
    depth_ = 1;
  }
  for (; at_ < text.size(); ++at_) {
    const char c = text[at_];
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ == 0) {
      ++at_;
      return Found::kObject;
    }
  }
  return Found::kMore;
}

}  // namespace http::json
