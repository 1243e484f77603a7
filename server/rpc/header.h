// What every response says about the member that answers.
#pragma once

#include "api/rpc.pb.h"

namespace rpc {

struct HeaderSource {
  virtual ~HeaderSource() = default;
  // Sets cluster_id, member_id and raft_term; leaves revision alone. Any thread, cheap.
  virtual void fill(etcdserverpb::ResponseHeader* header) const = 0;
};

}  // namespace rpc
