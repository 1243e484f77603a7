// Clients of a simulated cluster, each with one request at a time, that write down what they asked and heard; and the
// checks of the whole record (tests/history).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "history/record_file.h"
#include "sim/cluster.h"
#include "sim/cluster_invariants.h"
#include "sim/records.h"

namespace sim {

class Clients {
 public:
  static constexpr size_t kClients = 6;
  static constexpr uint64_t kKeys = 8;
  static constexpr std::chrono::seconds kPatience{12};  // then a client takes its request for lost

  Clients(Cluster& cluster, Invariants& invariants, history::Record& record)
      : cluster_(cluster), invariants_(invariants), record_(record), clients_(kClients) {}

  bool compacts = true;

  // Perhaps a request of one idle client. Call it between steps.
  void act();
  // This member is going down: what it was asked is not answered any more.
  void member_down(size_t node);
  void give_up_the_late();
  bool is_idle() const { return waiting_.empty(); }
  // Reads the history that no member has compacted yet; at the end of a run and before each compaction. False: no
  // member is there to be asked.
  bool learn_events();
  const history::Events& events() const { return events_; }
  uint64_t acknowledged() const { return acknowledged_; }

 private:
  struct Client {
    bool busy = false;
    uint64_t id = 0;
    std::map<std::string, history::KeyValue> seen;
  };
  struct Waiting {
    size_t client = 0;
    size_t node = 0;
    size_t operation = 0;  // in the record
  };

  std::optional<size_t> some_member();
  void begin(size_t client, size_t node);
  void choose(size_t client, history::Operation& operation);
  void choose_old_read(history::Operation& operation);
  void send_write(uint64_t ticket, size_t node, const history::Operation& operation);
  void send_read(uint64_t ticket, size_t node, const history::Operation& operation);
  void read_now(uint64_t ticket, size_t node);
  void answered(uint64_t ticket, const google::protobuf::Message& response);
  void refused(uint64_t ticket, const Error& error);
  void finish(uint64_t ticket, history::Outcome outcome);
  void compact();

  Cluster& cluster_;
  Invariants& invariants_;
  history::Record& record_;
  std::vector<Client> clients_;
  std::map<uint64_t, Waiting> waiting_;  // by ticket
  uint64_t next_ticket_ = 1;
  uint64_t next_client_ = 1;
  uint64_t next_value_ = 1;
  uint64_t acknowledged_ = 0;
  history::Events events_;
  int64_t events_until_ = 1;
  int64_t compacted_ = 1;  // the highest that was asked for
  int64_t known_ = 1;      // the highest revision of an answer
};

}  // namespace sim
