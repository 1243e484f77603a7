#include "raft/transcript_cluster.h"

namespace raft {
namespace {

std::vector<uint64_t> numbers_of(const std::string& list) {
  std::vector<uint64_t> numbers;
  std::istringstream in(list);
  for (std::string number; std::getline(in, number, ',');) numbers.push_back(std::stoull(number));
  return numbers;
}

// key=value; an empty key at the end of the line.
std::pair<std::string, std::string> next_option(std::istringstream& in) {
  std::string word;
  if (!(in >> word)) return {};
  const auto equals = word.find('=');
  if (equals == std::string::npos) return {"", word};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

}  // namespace

std::string ClusterScript::run(const std::string& line) {
  out_.str("");
  std::istringstream in(line);
  std::string command;
  in >> command;
  if (command == "cluster") {
    make(in);
  } else if (!cluster_) {
    out_ << "no cluster\n";
  } else if (command == "log") {
    restore(in);
  } else if (command == "deliver" || command == "settle") {
    loud_ = command == "deliver";
    cluster_->settle();
    loud_ = false;
  } else if (command == "run") {
    uint64_t ticks = 1;
    in >> ticks;
    cluster_->tick_all(ticks);
  } else if (command == "lose") {
    cluster_->network.clear();
  } else if (command == "state") {
    bool some = false;
    for (uint64_t id = 0; in >> id; some = true) print_state(id);
    if (some) return out_.str();
    for (const auto& [id, member] : cluster_->members) print_state(id);
  } else if (command == "reads") {
    for (const auto& [context, index] : cluster_->answered_reads) out_ << "read " << context << " at " << index << "\n";
    for (const uint64_t context : cluster_->dropped_reads) out_ << "read " << context << " dropped\n";
    cluster_->answered_reads.clear();
    cluster_->dropped_reads.clear();
  } else if (command == "cut" || command == "isolate" || command == "heal") {
    links(command, in);
  } else {
    uint64_t id = 0;
    in >> id;
    const bool known =
        cluster_->members.contains(id) && (change_member(command, id, in) || ask_member(command, id, in));
    if (!known) out_ << "unknown command\n";
  }
  return out_.str();
}

void ClusterScript::make(std::istringstream& in) {
  Membership membership;
  Config config = TestCluster::small();
  uint64_t size = 0;
  std::string members;
  for (auto option = next_option(in); !(option.first.empty() && option.second.empty()); option = next_option(in)) {
    const auto& [key, value] = option;
    if (key.empty()) members += (members.empty() ? "" : " ") + value;
    if (key == "members") size = std::stoull(value);
    if (key == "kept") config.kept.entries_max = std::stoull(value);
    if (key == "message-bytes") config.message_bytes_max = std::stoull(value);
    if (key == "pre-vote") config.pre_vote = value != "off";
  }
  membership = membership_of(members);
  size = std::max(size, membership.voters.size() + membership.learners.size());
  cluster_ = std::make_unique<TestCluster>(membership, size, 1, config);
  cluster_->on_delivery = [this](const Message& message, bool lost) {
    if (loud_) print_message(message, lost);
  };
}

void ClusterScript::restore(std::istringstream& in) {
  uint64_t id = 0;
  in >> id;
  TestDisk& disk = cluster_->members.at(id).disk;
  disk = {};
  for (auto option = next_option(in); !option.first.empty(); option = next_option(in)) {
    const auto& [key, value] = option;
    if (key == "term") disk.hard_state.term = std::stoull(value);
    if (key == "vote") disk.hard_state.vote = std::stoull(value);
    if (key == "commit") disk.hard_state.commit = std::stoull(value);
    if (key != "entries") continue;
    for (const uint64_t term : numbers_of(value)) {
      const uint64_t index = disk.entries.size() + 1;
      const std::string text = std::to_string(term) + "/" + std::to_string(index);
      disk.entries.push_back({.index = index, .term = term, .data = std::make_shared<const Bytes>(text)});
    }
  }
  cluster_->start(id);
  cluster_->network.clear();
}

void ClusterScript::links(const std::string& command, std::istringstream& in) {
  std::string first;
  in >> first;
  if (command == "heal") {
    cluster_->cut.clear();
  } else if (command == "isolate") {
    const uint64_t alone = std::stoull(first);
    for (const auto& [id, member] : cluster_->members) {
      cluster_->cut.insert({alone, id});
      cluster_->cut.insert({id, alone});
    }
  } else if (const auto arrow = first.find('>'); arrow != std::string::npos) {
    cluster_->cut.insert({std::stoull(first.substr(0, arrow)), std::stoull(first.substr(arrow + 1))});
  } else {
    uint64_t second = 0;
    in >> second;
    cluster_->cut.insert({std::stoull(first), second});
    cluster_->cut.insert({second, std::stoull(first)});
  }
}

// Commands about one member that happen to it.
bool ClusterScript::change_member(const std::string& command, uint64_t id, std::istringstream& in) {
  TestMember& member = cluster_->members.at(id);
  if (command == "elect") {
    cluster_->elect(id);
    cluster_->settle();
    print_state(id);
  } else if (command == "tick") {
    uint64_t count = 1;
    in >> count;
    for (uint64_t i = 0; i < count; ++i) cluster_->tick(id);
  } else if (command == "crash") {
    cluster_->crash(id);
  } else if (command == "start") {
    cluster_->start(id);
  } else if (command == "stall" || command == "unstall") {
    member.disk_stands_still = command == "stall";
  } else if (command == "hold" || command == "release") {
    member.apply_stands_still = command == "hold";
  } else {
    return false;
  }
  return true;
}

// Commands about one member that ask it for something.
bool ClusterScript::ask_member(const std::string& command, uint64_t id, std::istringstream& in) {
  uint64_t number = 0;
  if (command == "propose" || command == "propose-many" || command == "membership") {
    std::vector<std::string> texts;
    for (std::string text; in >> text;) texts.push_back(text);
    if (command == "propose-many") {
      const uint64_t count = std::stoull(texts.at(0));
      texts.clear();
      for (uint64_t i = 1; i <= count; ++i) texts.push_back("many" + std::to_string(i));
    }
    const auto result =
        command == "membership"
            ? cluster_->propose(id, membership_of(texts.at(0) + (texts.size() > 1 ? " " + texts[1] : "")))
            : cluster_->propose(id, texts);
    if (result) {
      out_ << "term " << result->term << " at " << result->first_index << ".." << result->last_index << "\n";
    } else {
      out_ << "error: " << result.error().message << "\n";
    }
  } else if (command == "transfer") {
    in >> number;
    print_status(cluster_->transfer(id, number));
  } else if (command == "read") {
    std::vector<uint64_t> contexts;
    while (in >> number) contexts.push_back(number);
    print_status(cluster_->read(id, contexts));
  } else if (command == "progress") {
    print_progress(id);
  } else {
    return false;
  }
  return true;
}

void ClusterScript::print_status(const Status& status) {
  if (!status) out_ << "error: " << status.error().message << "\n";
}

void ClusterScript::print_message(const Message& message, bool lost) {
  out_ << message.from << ">" << message.to << " " << name(message.type) << " term " << message.term;
  switch (message.type) {
    case MessageType::kVote:
    case MessageType::kPreVote:
      out_ << " log " << message.log_term << "/" << message.log_index << (message.forced ? " forced" : "");
      break;
    case MessageType::kAppend:
      out_ << " after " << message.log_term << "/" << message.log_index << " commit " << message.commit;
      if (message.entries.size() > 3) {
        out_ << " " << message.entries.size() << " entries";
      } else {
        for (const LogEntry& entry : message.entries) {
          out_ << (entry.type == EntryType::kMembership ? " membership " : " ") << entry.term << "/" << entry.index
               << " \"" << *entry.data << "\"";
        }
      }
      break;
    case MessageType::kAppendResponse:
      out_ << " at " << message.log_index;
      if (message.reject) out_ << " rejected, try " << message.hint_term << "/" << message.hint_index;
      break;
    case MessageType::kHeartbeat:
      out_ << " commit " << message.commit << " round " << message.read_round;
      break;
    case MessageType::kHeartbeatResponse:
      out_ << " round " << message.read_round;
      break;
    case MessageType::kVoteResponse:
    case MessageType::kPreVoteResponse:
      out_ << (message.reject ? " rejected" : " granted");
      break;
    case MessageType::kReadIndexResponse:
      out_ << " at " << message.log_index;
      break;
    case MessageType::kSnapshot:
      out_ << " " << message.log_term << "/" << message.log_index;
      break;
    case MessageType::kTimeoutNow:
    case MessageType::kReadIndex:
      break;
  }
  out_ << (lost ? " (lost)\n" : "\n");
}

void ClusterScript::print_state(uint64_t id) {
  if (!cluster_->is_up(id)) {
    out_ << id << " down\n";
    return;
  }
  const Node& node = cluster_->node(id);
  out_ << id << " " << name(node.role()) << " term " << node.term() << " leader " << node.leader() << " commit "
       << node.commit_index() << " durable " << node.durable_index() << " applied " << node.applied_index();
  if (node.transfer_target() != kNobody) out_ << " hands over to " << node.transfer_target();
  if (node.membership() != cluster_->membership_at(0)) out_ << " members " << text_of(node.membership());
  out_ << " log";
  const Log& log = node.log();
  if (log.base_index() > 0) out_ << " .." << log.base_index();
  // Runs of a term as term*count.
  for (uint64_t index = log.first_index(); index <= log.last_index();) {
    const uint64_t term = log.at(index).term;
    uint64_t count = 0;
    while (index <= log.last_index() && log.at(index).term == term) ++index, ++count;
    out_ << " " << term;
    if (count > 1) out_ << "*" << count;
  }
  out_ << "\n";
}

void ClusterScript::print_progress(uint64_t id) {
  for (const MemberProgress& member : cluster_->node(id).member_progress()) {
    out_ << "  " << member.id << (member.learner ? " learner " : " ") << name(member.state) << " match " << member.match
         << (member.recently_active ? " active" : " silent") << "\n";
  }
}

}  // namespace raft
