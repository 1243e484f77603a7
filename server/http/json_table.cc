#include "http/json_table.h"

#include <deque>
#include <unordered_map>

#include "base/check.h"
#include "base/thread.h"

namespace http::json {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::MessageFactory;

Kind kind_of(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_SINT32:
    case FieldDescriptor::TYPE_SFIXED32:
      return Kind::kInt32;
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_SINT64:
    case FieldDescriptor::TYPE_SFIXED64:
      return Kind::kInt64;
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_FIXED32:
      return Kind::kUint32;
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_FIXED64:
      return Kind::kUint64;
    case FieldDescriptor::TYPE_BOOL:
      return Kind::kBool;
    case FieldDescriptor::TYPE_ENUM:
      return Kind::kEnum;
    case FieldDescriptor::TYPE_STRING:
      return Kind::kString;
    case FieldDescriptor::TYPE_BYTES:
      return Kind::kBytes;
    case FieldDescriptor::TYPE_MESSAGE:
      return Kind::kMessage;
    default:
      break;
  }
  CHECK(false, "no JSON form for the type of field", field.full_name());
  return Kind::kInt64;
}

bool quoted(Kind kind) { return kind == Kind::kInt64 || kind == Kind::kUint64 || kind == Kind::kBytes; }

// Tables refer to each other (a txn holds txns), so each enters the map before its fields are filled in.
class Tables {
 public:
  const Table& get(const Descriptor* descriptor) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return make(descriptor);
  }

 private:
  const Table& make(const Descriptor* descriptor) REQUIRES(mutex_) {
    auto [at, added] = by_type_.try_emplace(descriptor, nullptr);
    if (!added) return *at->second;
    Table& table = storage_.emplace_back();
    at->second = &table;
    table.descriptor = descriptor;
    table.prototype = MessageFactory::generated_factory()->GetPrototype(descriptor);
    CHECK(table.prototype != nullptr, descriptor->full_name());
    table.reflection = table.prototype->GetReflection();
    CHECK(descriptor->field_count() <= kFieldsMax, descriptor->full_name());
    for (int i = 0; i < descriptor->field_count(); ++i) add(table, *descriptor->field(i));
    return table;
  }

  void add(Table& table, const FieldDescriptor& descriptor) REQUIRES(mutex_) {
    CHECK(!descriptor.is_map(), descriptor.full_name());
    // An `optional` scalar has presence without a value of its own kind; none of etcd's messages has one.
    CHECK(!descriptor.has_optional_keyword(), descriptor.full_name());
    Field field;
    field.descriptor = &descriptor;
    field.kind = kind_of(descriptor);
    field.repeated = descriptor.is_repeated();
    field.index = descriptor.index();
    field.oneof = descriptor.containing_oneof() != nullptr ? descriptor.containing_oneof()->index() : -1;
    field.name = descriptor.name();
    field.key = ",\"" + field.name + "\":" + (field.repeated ? "[" : quoted(field.kind) ? "\"" : "");
    if (field.kind == Kind::kMessage) field.message = &make(descriptor.message_type());
    const auto index = static_cast<uint16_t>(table.fields.size());
    table.names.push_back({descriptor.json_name(), index});
    if (descriptor.json_name() != descriptor.name()) table.names.push_back({descriptor.name(), index});
    table.fields.push_back(std::move(field));
  }

  Mutex mutex_;
  std::unordered_map<const Descriptor*, const Table*> by_type_ GUARDED_BY(mutex_);
  std::deque<Table> storage_ GUARDED_BY(mutex_);
};

}  // namespace

const Table& table_of(const google::protobuf::Message& message) {
  static Tables& all = *new Tables;  // never destroyed: threads may still encode while the process exits
  thread_local std::unordered_map<const Descriptor*, const Table*> mine;
  const Descriptor* descriptor = message.GetDescriptor();
  auto at = mine.find(descriptor);
  if (at == mine.end()) at = mine.emplace(descriptor, &all.get(descriptor)).first;
  return *at->second;
}

}  // namespace http::json
