// What a MemoryDisk remembers: a tree of nodes, each as the running program sees it and as it is on stable storage,
// with the changes between the two in their order. Knows nothing of calls, faults or threads; its owner holds the lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/world.h"

namespace memory_disk {

// A change of a file that was not synced yet.
struct Change {
  enum class Kind { kWrite, kTruncate, kAllocate };
  Kind kind = Kind::kWrite;
  uint64_t offset = 0;  // of a write; else the size
  Bytes data;
};

struct Node {
  explicit Node(bool is_directory) : directory(is_directory) {}
  const bool directory;
  // A file.
  Bytes now;
  Bytes durable;
  std::vector<Change> unsynced;
  // A directory.
  using Entries = std::map<std::string, std::shared_ptr<Node>>;
  Entries entries;
  Entries durable_entries;
};
using NodePointer = std::shared_ptr<Node>;

// A name that was given, taken away or moved, in a directory that was not synced since.
struct NameChange {
  enum class Kind { kLink, kUnlink, kMove };
  Kind kind = Kind::kLink;
  NodePointer directory;
  std::string name;
  NodePointer node;
  NodePointer to_directory;  // of a move
  std::string to_name;
};

// How much of what was not synced a power cut leaves.
enum class Loss {
  kRandom,      // each change kept, dropped or torn
  kEverything,  // as if each was dropped
  kNothing,     // as if everything had been synced in the last moment
};

class State {
 public:
  State() : root_(std::make_shared<Node>(true)) {}
  State(State&&) = default;
  State& operator=(State&&) = default;

  struct Place {
    NodePointer directory;  // null: the folder is not there
    std::string name;       // empty: the root itself
    NodePointer node;       // null: not there
  };
  Place find(std::string_view path) const;

  NodePointer link(const Place& place, bool directory);
  void unlink(const Place& place);  // with what is in it
  void move(const Place& from, const Place& to);

  static void change(Node& file, Change change, bool in_flight = false);
  static void sync(Node& file);
  void sync_directory(const NodePointer& directory);

  uint64_t used_bytes() const;
  void crash(Random& random, Loss loss);
  State clone() const;

 private:
  static void apply(Bytes& content, const Change& change);
  static void apply(const NameChange& change);
  NodePointer root_;
  std::vector<NameChange> unsynced_names_;
};

}  // namespace memory_disk
