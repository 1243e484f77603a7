#include "base/memory_disk_state.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace memory_disk {

namespace {

constexpr uint64_t kSectorBytes = 512;

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

// Draws the fate of single changes of one crash. A crash has a leaning of its own, so that "nearly all kept" and
// "nearly nothing kept" come up and not only the middle.
class Fate {
 public:
  Fate(Random& random, Loss loss)
      : random_(random), loss_(loss), kept_of_eight_(loss == Loss::kRandom ? below(9) : 0) {}

  uint64_t below(uint64_t limit) { return random_.next() % limit; }
  bool kept() {
    if (loss_ == Loss::kNothing) return true;
    if (loss_ == Loss::kEverything) return false;
    return below(8) < kept_of_eight_;
  }
  bool torn() { return loss_ == Loss::kRandom && below(3) == 0; }

 private:
  Random& random_;
  const Loss loss_;
  const uint64_t kept_of_eight_;
};

// What of a write reached the medium: a prefix cut at any byte, a prefix of whole sectors, any of its sectors, or only
// the new size (zeros where there was nothing before).
std::vector<Change> tear(const Change& write, uint64_t size_before, Fate& fate) {
  const uint64_t size = write.data.size();
  std::vector<Change> parts;
  const auto keep = [&](uint64_t from, uint64_t to) {
    if (from < to) parts.push_back({Change::Kind::kWrite, write.offset + from, write.data.substr(from, to - from)});
  };
  const auto next_sector = [&](uint64_t from) {
    return std::min(size, kSectorBytes - (write.offset + from) % kSectorBytes + from);
  };
  switch (fate.below(4)) {
    case 0:
      keep(0, fate.below(size + 1));
      break;
    case 1: {
      uint64_t end = 0;
      for (uint64_t limit = fate.below(size + 1); next_sector(end) <= limit && end < size;) end = next_sector(end);
      keep(0, end);
      break;
    }
    case 2:
      for (uint64_t from = 0; from < size; from = next_sector(from)) {
        if (fate.below(2) == 0) keep(from, next_sector(from));
      }
      break;
    default:
      if (write.offset + size > size_before) parts.push_back({Change::Kind::kAllocate, write.offset + size, {}});
  }
  return parts;
}

void visit_files(const Node& directory, const std::function<void(const Node&)>& visit) {
  for (const auto& [name, node] : directory.entries) {
    if (node->directory) {
      visit_files(*node, visit);
    } else {
      visit(*node);
    }
  }
}

}  // namespace

State::Place State::find(std::string_view path) const {
  const auto parts = split(path);
  if (parts.empty()) return {root_, "", root_};
  NodePointer directory = root_;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto found = directory->entries.find(parts[i]);
    if (found == directory->entries.end() || !found->second->directory) return {};
    directory = found->second;
  }
  const auto found = directory->entries.find(parts.back());
  return {directory, parts.back(), found == directory->entries.end() ? nullptr : found->second};
}

NodePointer State::link(const Place& place, bool directory) {
  CHECK(place.directory && !place.node, place.name);
  auto node = std::make_shared<Node>(directory);
  place.directory->entries[place.name] = node;
  unsynced_names_.push_back({NameChange::Kind::kLink, place.directory, place.name, node, nullptr, ""});
  return node;
}

void State::unlink(const Place& place) {
  if (place.node->directory) {
    const auto entries = place.node->entries;
    for (const auto& [name, node] : entries) unlink({place.node, name, node});
  }
  place.directory->entries.erase(place.name);
  unsynced_names_.push_back({NameChange::Kind::kUnlink, place.directory, place.name, place.node, nullptr, ""});
}

void State::move(const Place& from, const Place& to) {
  from.directory->entries.erase(from.name);
  to.directory->entries[to.name] = from.node;
  unsynced_names_.push_back({NameChange::Kind::kMove, from.directory, from.name, from.node, to.directory, to.name});
}

void State::apply(Bytes& content, const Change& change) {
  switch (change.kind) {
    case Change::Kind::kWrite:
      if (content.size() < change.offset + change.data.size()) content.resize(change.offset + change.data.size());
      content.replace(change.offset, change.data.size(), change.data);
      break;
    case Change::Kind::kTruncate:
      content.resize(change.offset);
      break;
    case Change::Kind::kAllocate:
      if (content.size() < change.offset) content.resize(change.offset);
  }
}

void State::apply(const NameChange& change) {
  Node::Entries& entries = change.directory->durable_entries;
  if (change.kind == NameChange::Kind::kLink) {
    entries[change.name] = change.node;
    return;
  }
  const auto found = entries.find(change.name);
  if (found != entries.end() && found->second == change.node) entries.erase(found);
  if (change.kind == NameChange::Kind::kMove) change.to_directory->durable_entries[change.to_name] = change.node;
}

void State::change(Node& file, Change change, bool in_flight) {
  if (!in_flight) apply(file.now, change);
  file.unsynced.push_back(std::move(change));
}

void State::sync(Node& file) {
  for (const Change& change : file.unsynced) apply(file.durable, change);
  file.unsynced.clear();
}

void State::sync_directory(const NodePointer& directory) {
  std::vector<NameChange> left;
  for (const NameChange& change : unsynced_names_) {
    if (change.directory != directory && change.to_directory != directory) {
      left.push_back(change);
      continue;
    }
    apply(change);
    if (change.kind != NameChange::Kind::kMove) continue;
    // The old name, if it was given in a directory that is not synced yet, must not come back beside the new one.
    std::erase_if(left, [&](const NameChange& earlier) {
      return earlier.kind != NameChange::Kind::kUnlink && earlier.node == change.node;
    });
  }
  unsynced_names_ = std::move(left);
}

uint64_t State::used_bytes() const {
  uint64_t used = 0;
  visit_files(*root_, [&](const Node& file) { used += file.now.size(); });
  return used;
}

void State::crash(Random& random, Loss loss) {
  Fate fate(random, loss);
  for (const NameChange& change : unsynced_names_) {
    if (fate.kept()) apply(change);
  }
  unsynced_names_.clear();
  const std::function<void(Node&)> settle = [&](Node& node) {
    if (node.directory) {
      node.entries = node.durable_entries;
      for (const auto& [name, child] : node.entries) settle(*child);
      return;
    }
    for (const Change& change : node.unsynced) {
      if (fate.kept()) {
        apply(node.durable, change);
      } else if (change.kind == Change::Kind::kWrite && fate.torn()) {
        for (const Change& part : tear(change, node.durable.size(), fate)) apply(node.durable, part);
      }
    }
    node.unsynced.clear();
    node.now = node.durable;
  };
  settle(*root_);
}

State State::clone() const {
  std::map<const Node*, NodePointer> copies;
  const std::function<NodePointer(const NodePointer&)> copy = [&](const NodePointer& node) -> NodePointer {
    if (!node) return nullptr;
    NodePointer& known = copies[node.get()];
    if (known) return known;
    NodePointer made = known = std::make_shared<Node>(node->directory);
    made->now = node->now;
    made->durable = node->durable;
    made->unsynced = node->unsynced;
    for (const auto& [name, child] : node->entries) made->entries[name] = copy(child);
    for (const auto& [name, child] : node->durable_entries) made->durable_entries[name] = copy(child);
    return made;
  };
  State state;
  state.root_ = copy(root_);
  for (NameChange change : unsynced_names_) {
    change.directory = copy(change.directory);
    change.node = copy(change.node);
    change.to_directory = copy(change.to_directory);
    state.unsynced_names_.push_back(std::move(change));
  }
  return state;
}

}  // namespace memory_disk
