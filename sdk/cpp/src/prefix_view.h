// All keys below a prefix, as of one revision, kept up to date: a list, then a watch from the revision after it. When
// the watch tells a gap the list is read again. The base of views (ConfigReloader); nothing of the user's runs here.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "conclave/types.h"
#include "core.h"
#include "watch_core.h"

namespace conclave::inline v1::internal {

class PrefixView : public std::enable_shared_from_this<PrefixView> {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;  // by what follows the prefix
  struct State {
    Values values;
    Revision revision{};  // of the last change that is in
  };

  PrefixView(std::shared_ptr<Core> core, std::string prefix);

  // `on_news`: there is a first or a newer state. On a transport or timer thread; must not block.
  void start(std::function<void()> on_news);
  void end();
  std::optional<State> state() const;       // nothing before the first list
  std::optional<Error> last_error() const;  // why there is no list yet

 private:
  void list();
  void on_list(Result<Reply> reply);
  void list_later();
  void drain();

  const std::shared_ptr<Core> core_;
  const std::string prefix_;
  std::function<void()> on_news_;

  mutable std::mutex mutex_;
  std::optional<State> state_;
  std::optional<Error> error_;
  std::shared_ptr<Call> call_;
  std::shared_ptr<WatchCore> watch_;
  Backoff backoff_;
  bool ended_ = false;
};

}  // namespace conclave::inline v1::internal
