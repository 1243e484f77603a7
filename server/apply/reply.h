// What executing one request gives: an answer or a refusal (both are results that every member reaches alike), or, as
// the error of the Result around it, a fault of this member that stops the batch.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <utility>

#include "base/result.h"

namespace apply {

using Message = std::unique_ptr<google::protobuf::Message>;

struct Reply {
  Result<Message> response = Message{};
  int64_t when_compacted = -1;  // it has to wait until the compaction of this revision is finished; -1: it has not
};

inline Reply refuse(Error error) { return Reply{.response = ::fail(std::move(error)), .when_compacted = -1}; }
inline Reply refuse(Code code, std::string message) { return refuse(Error{code, std::move(message)}); }

}  // namespace apply
