// A folder that agrees with the cluster: one file for each key below "sites/", whatever happens to either of them.
//
//   reconcile FOLDER                endpoints from CONCLAVE_ENDPOINTS, else http://127.0.0.1:2379
//
// sites/shop = "listen 8080" becomes FOLDER/shop.conf. Deleting the key deletes the file; a file that somebody changed
// by hand is put right within ten seconds.
#include <conclave/conclave.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>

using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

const std::string kPrefix = "sites/";
const std::string kSuffix = ".conf";

struct Site {
  std::string text;
};

// A name becomes part of a path: only what can do no harm there.
bool valid_name(const std::string& name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

conclave::Result<Site> decode(const conclave::KeyValue& kv) {
  if (!valid_name(kv.key.substr(kPrefix.size())))
    return conclave::fail(conclave::Code::kInvalidArgument, "a name has a-z, 0-9 and - only");
  if (kv.value.empty()) return conclave::fail(conclave::Code::kInvalidArgument, "a site is not empty");
  return Site{kv.value};
}

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Written beside and renamed: nobody reads half of it.
conclave::Status write_file(const fs::path& path, const std::string& text) {
  const fs::path fresh = path.string() + ".new";
  std::ofstream file(fresh, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file) fs::rename(fresh, path, error);
  if (!file || error) return conclave::fail(conclave::Code::kUnavailable, path.string() + ": cannot be written");
  return {};
}

// Looks at what there is and does what is missing; it may run at any time and as often as one likes.
conclave::Result<conclave::Requeue> make_agree(const fs::path& path, const conclave::Informed<Site>* site) {
  const auto there = read_file(path);
  if (site == nullptr) {
    std::error_code error;
    if (fs::remove(path, error)) std::cout << path.string() << ": removed" << std::endl;
    if (error) return conclave::fail(conclave::Code::kUnavailable, path.string() + ": " + error.message());
    return conclave::Requeue::done();
  }
  if (there != site->value.text) {
    if (auto written = write_file(path, site->value.text); !written) return conclave::fail(written.error());
    std::cout << path.string() << ": " << (there ? "changed" : "created") << " (revision " << number(site->mod_revision)
              << ")" << std::endl;
  }
  return conclave::Requeue::done();
}

// Files of keys that were deleted while nobody was looking. While a key cannot be read no file is taken for such a one.
void remove_what_is_left_over(const fs::path& folder, const conclave::Informer<Site>& sites) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    const auto now = sites.snapshot();  // after the file was seen: the workers write what is in it already
    if (now.refused() > 0) return;
    if (path.extension() != kSuffix || now.find(kPrefix + path.stem().string())) continue;
    if (auto removed = make_agree(path, nullptr); !removed) std::cerr << to_string(removed.error()) << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) try {
  conclave::ShutdownSignal shutdown;  // first: SIGINT and SIGTERM become a stop token
  if (argc != 2 || !fs::is_directory(argv[1])) {
    std::cerr << "usage: reconcile FOLDER (one that exists)\n";
    return 2;
  }
  const fs::path folder = argv[1];
  auto client = conclave::Client::open(conclave::ClientOptions::from_environment().or_throw()).or_throw();
  auto sites =
      conclave::Informer<Site>::open(
          client,
          {
              .prefix = kPrefix,
              .decode = decode,
              .workers = 2,
              .resync = 10s,
              .reconcile = [&](const std::string& key, const auto& now) -> conclave::Result<conclave::Requeue> {
                const std::string name = key.substr(kPrefix.size());
                if (!valid_name(name)) return conclave::Requeue::done();  // never was a file
                return make_agree(folder / (name + kSuffix), now.get());
              },
              .on_error = [](const std::string& key,
                             const conclave::Error& why) { std::cerr << key << ": " << to_string(why) << '\n'; },
          })
          .or_throw();
  if (!sites.wait_ready({.stop = shutdown.token()})) return 0;  // stopped before any server answered
  remove_what_is_left_over(folder, sites);
  shutdown.wait();
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
