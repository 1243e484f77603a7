// How members reach each other: frames of bytes in a few lanes. `peer` carries them over TCP, the simulator over its
// own lossy network. A frame arrives whole, once and unchanged or not at all; within a lane of one peer frames that
// arrive do so in order, unless the connection was made anew between them (the simulator reorders and repeats at will:
// nobody may rely on order).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

class Network {
 public:
  // Each lane has a queue and a connection of its own, so that no lane waits behind another.
  enum class Lane : uint8_t {
    kControl = 0,   // votes, heartbeats and their answers: small, never behind bulk data
    kAppend = 1,    // entries and their answers
    kForward = 2,   // clients' requests that another member must answer, and the answers
    kSnapshot = 3,  // chunks of snapshots, asked for one by one by the member that needs them
  };
  static constexpr int kLanes = 4;
  static constexpr size_t kFrameBytesMax = 64 << 20;

  struct Peer {
    uint64_t id = 0;
    std::vector<std::string> urls = {};  // "http://host:port"; tried in turn. Names are resolved at each attempt.
    uint64_t folder_id = 0;              // of its data folder; one that comes with another is told so. 0: not known
    friend bool operator==(const Peer&, const Peer&) = default;
  };

  // Called on the network's threads; must not block. Nothing is called after stop() has returned.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    virtual void on_frame(uint64_t from, Lane lane, Bytes frame) = 0;
    // A send failed or a connection broke: what was sent since may be lost.
    virtual void on_unreachable(uint64_t peer) = 0;
    // Peers say that this member was removed from the cluster; it must not go on.
    virtual void on_removed() = 0;
    // Peers remember another data folder of this member: it has forgotten what it promised and must not go on.
    virtual void on_other_folder() = 0;
    // For a stranger that asks who the cluster is (a new member before it joins). `answer` is called at most once, now
    // or later, on any thread, with what is opaque here; empty: this member cannot tell.
    virtual void describe_cluster(std::function<void(Bytes)> answer) = 0;
  };

  virtual ~Network() = default;

  // Begins to listen and to serve `receiver`. kUnavailable: an address is in use.
  virtual Status start(Receiver& receiver) = 0;
  virtual void stop() = 0;

  // All other members, learners included; replaces the list before. Connections to those that are gone are closed.
  // `removed`: ids that once were members; they are told so when they come. A member of the same cluster that is in
  // neither list and comes by itself is a peer, too: this member may lag behind the change that added it, and it may
  // be the leader that has to tell.
  virtual void set_peers(std::vector<Peer> peers, std::vector<uint64_t> removed) = 0;

  // Any thread; never blocks. False: no connection, or the lane's queue is full; the frame is dropped.
  virtual bool send(uint64_t to, Lane lane, Bytes frame) = 0;
};
