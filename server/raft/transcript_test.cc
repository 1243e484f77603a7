// Raft scenarios as text: each file in testdata/ holds commands, a line of dashes and what they print, again and again.
// testdata/node: one member, every hand-over by hand (below). testdata/cluster: several members (transcript_cluster.h).
// CONCLAVE_REWRITE=1 writes the files anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/memory_disk.h"  // SeededRandom
#include "raft/node.h"
#include "raft/transcript_cluster.h"

namespace raft {
namespace {

std::string text_of(const LogEntry& entry) {
  const std::string type = entry.type == EntryType::kMembership ? " membership" : "";
  return std::to_string(entry.term) + "/" + std::to_string(entry.index) + type + " \"" + *entry.data + "\"";
}

class Script {
 public:
  std::string run(const std::string& line) {
    std::istringstream in(line);
    std::string command;
    in >> command;
    std::ostringstream out;
    if (command == "start") {
      start(in);
      state(out);
    } else if (command == "tick") {
      uint64_t count = 1;
      in >> count;
      for (uint64_t i = 0; i < count; ++i) node_->tick();
      state(out);
    } else if (command == "propose") {
      std::vector<Proposal> proposals;
      for (std::string text; in >> text;) proposals.push_back({.data = std::make_shared<const Bytes>(text)});
      const auto result = node_->propose(proposals);
      if (result) {
        out << "term " << result->term << " at " << result->first_index << ".." << result->last_index << "\n";
      } else {
        out << "error: " << result.error().message << "\n";
      }
    } else if (command == "membership") {
      const Proposal proposal{EntryType::kMembership, std::make_shared<const Bytes>("1,2")};
      const auto result = node_->propose(std::span(&proposal, 1));
      out << (result ? "taken" : "error: " + result.error().message) << "\n";
    } else if (command == "read") {
      uint64_t context = 0;
      in >> context;
      const Status status = node_->read_index(context);
      out << (status ? "waits" : "error: " + status.error().message) << "\n";
    } else if (command == "ready") {
      ready(out);
    } else if (command == "persisted") {
      uint64_t batch = 0;
      in >> batch;
      node_->persisted(static_cast<BatchNumber>(batch));
      state(out);
    } else if (command == "applied") {
      uint64_t index = 0;
      in >> index;
      node_->applied(index);
      state(out);
    } else {
      out << "unknown command\n";
    }
    return out.str();
  }

 private:
  // start [term= vote= commit= applied=] [entries=term,term,...]: the sole voter 1, entries from index 1 on
  void start(std::istringstream& in) {
    Restored restored{.membership = {.voters = {1}}};
    for (std::string word; in >> word;) {
      const auto equals = word.find('=');
      const std::string key = word.substr(0, equals);
      const std::string value = word.substr(equals + 1);
      if (key == "entries") {
        std::istringstream terms(value);
        for (std::string term; std::getline(terms, term, ',');) {
          const uint64_t index = restored.entries.size() + 1;
          restored.entries.push_back({.index = index,
                                      .term = std::stoull(term),
                                      .data = std::make_shared<const Bytes>("old" + std::to_string(index))});
        }
      } else {
        uint64_t& field = key == "term"     ? restored.hard_state.term
                          : key == "vote"   ? restored.hard_state.vote
                          : key == "commit" ? restored.hard_state.commit
                                            : restored.applied;
        field = std::stoull(value);
      }
    }
    node_ = std::make_unique<Node>(Config{.id = 1}, std::move(restored), random_);
  }

  void state(std::ostringstream& out) const {
    out << name(node_->role()) << " term " << node_->term() << " commit " << node_->commit_index() << " durable "
        << node_->durable_index() << " last " << node_->last_index() << "\n";
  }

  void ready(std::ostringstream& out) {
    const auto ready = node_->take_ready();
    if (!ready) {
      out << "nothing\n";
      return;
    }
    if (ready->soft_state) {
      out << "now " << name(ready->soft_state->role) << ", leader " << ready->soft_state->leader << "\n";
    }
    if (ready->persists()) out << "batch " << static_cast<uint64_t>(ready->batch) << "\n";
    if (ready->hard_state) {
      out << "  hard state: term " << ready->hard_state->term << " vote " << ready->hard_state->vote << " commit "
          << ready->hard_state->commit << "\n";
    }
    for (const auto& entry : ready->entries) out << "  entry " << text_of(entry) << "\n";
    for (const auto& entry : ready->committed) out << "apply " << text_of(entry) << "\n";
    for (const auto& read : ready->read_states) out << "read " << read.context << " at " << read.index << "\n";
  }

  SeededRandom random_{1};
  std::unique_ptr<Node> node_;
};

template <class Script>
void check_files(const std::string& folder, int files_min) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::string(CONCLAVE_RAFT_TESTDATA) + "/" + folder)) {
    SCOPED_TRACE(file.path().filename());
    ++files;
    std::ifstream in(file.path());
    Script script;
    std::string expected;
    std::string actual;
    std::string output;
    bool in_output = false;
    for (std::string line; std::getline(in, line);) {
      expected += line + "\n";
      if (line == "----") {
        actual += line + "\n" + output;
        output.clear();
        in_output = true;
      } else if (line.empty()) {
        actual += "\n";
        in_output = false;
      } else if (!in_output) {
        actual += line + "\n";
        if (line[0] != '#') output += script.run(line);
      }
    }
    if (std::getenv("CONCLAVE_REWRITE")) {
      std::ofstream(file.path()) << actual;
    } else {
      EXPECT_EQ(actual, expected);
    }
  }
  EXPECT_GE(files, files_min);
}

TEST(Transcript, OfOneMemberMatchesTheFiles) { check_files<Script>("node", 2); }
TEST(Transcript, OfAClusterMatchesTheFiles) { check_files<ClusterScript>("cluster", 12); }

}  // namespace
}  // namespace raft
