// Raft's messages on their way to other members. Any thread; what cannot be sent is lost, which Raft copes with.
#pragma once

#include "base/network.h"
#include "raft/message.h"
#include "raft/wire.h"

namespace member {

// Entries and their acknowledgements have a lane of their own: votes and heartbeats never wait behind them.
inline Network::Lane lane_of(raft::MessageType type) {
  const bool bulk = type == raft::MessageType::kAppend || type == raft::MessageType::kAppendResponse;
  return bulk ? Network::Lane::kAppend : Network::Lane::kControl;
}

inline void send(Network* network, const raft::Message& message) {
  if (network == nullptr) return;
  Bytes frame;
  raft::encode(message, frame);
  (void)network->send(message.to, lane_of(message.type), std::move(frame));
}

}  // namespace member
