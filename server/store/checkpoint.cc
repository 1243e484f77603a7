// The checkpoint of a SqliteStore. SQLite's own rules carry it: a passive checkpoint copies nothing beyond the oldest
// read mark that is in use, and a commit starts the -wal anew only when everything is copied and no read mark but 0 is
// in use (https://sqlite.org/walformat.html, 2.3). So a reader at the last commit is a pin for both.
#include "base/check.h"
#include "store/format.h"
#include "store/sqlite_store.h"

namespace store {

namespace {

constexpr int kPinAttempts = 50;
constexpr int kCopyAttempts = 8;
// How long one attempt waits for ReadTxns that began before the pin; they last some milliseconds.
constexpr std::chrono::milliseconds kReaderWait{20};
// How long the end of a checkpoint keeps apply waiting for them, so that the next commit can start the -wal anew.
constexpr std::chrono::milliseconds kRestartWait{20};

int read_mark_of(const SharedMemory::Held& held) {
  for (int mark = 0; mark < SharedMemory::kReadMarks; ++mark) {
    if ((held.shared >> (SharedMemory::kReadLockFirst + mark)) & 1) return mark;
  }
  return -1;
}

}  // namespace

// True: the view stands and its frame is known exactly. False: there is nothing to copy, or all read marks are taken by
// others and SQLite gave this view an older one, beyond which a checkpoint would not go.
Result<bool> SqliteStore::pin() {
  SharedMemory& memory = vfs_->shared_memory();
  for (int attempt = 0; attempt < kPinAttempts; ++attempt) {
    {
      MutexLock lock(commit_mutex_);
      const auto meta = pin_->begin_view();
      if (!meta && meta.error().code != Code::kUnavailable) return fail(meta.error());
      const SharedMemory::Index index = memory.index();
      const int read_mark = read_mark_of(pin_->shared_locks());
      if (meta && index.copied >= index.frames) break;
      if (meta && read_mark > 0 && memory.read_mark(read_mark) == index.frames) {
        pinned_read_mark_ = read_mark;
        mark_ = {.applied = meta->applied_index,
                 .salt1 = index.salt1,
                 .salt2 = index.salt2,
                 .frames = index.frames,
                 .done = false};
        return true;
      }
      pin_->end_view();
    }
    memory.wait_for_unlock(std::chrono::milliseconds(1));
  }
  pin_->end_view();
  return false;
}

Result<std::optional<Mark>> SqliteStore::begin_checkpoint() {
  CHECK(!mark_);
  TRY(vfs_->failure().check());
  TRY_ASSIGN(const bool pinned, pin());
  if (!pinned) return std::optional<Mark>();
  const Status synced = make_wal_durable();
  if (!synced) {
    end_checkpoint();
    return fail(synced.error());
  }
  return mark_;
}

// The process before this one may have died of a failed sync. Then the system's cache has what it wrote, clean, and no
// sync brings that to the disk any more. While the pin stands the -wal does not begin anew.
Status SqliteStore::make_wal_durable() {
  if (distrusted_wal_bytes_ > 0) TRY(vfs_->write_wal_again(distrusted_wal_bytes_));
  distrusted_wal_bytes_ = 0;
  return vfs_->sync_wal();
}

bool SqliteStore::copied_up_to_the_pin(int frames_copied) {
  CHECK(frames_copied <= static_cast<int>(mark_->frames), frames_copied, mark_->frames);
  return frames_copied == static_cast<int>(mark_->frames);
}

Result<Mark> SqliteStore::run_checkpoint() {
  CHECK(mark_ && !mark_->done);
  TRY(vfs_->failure().check());
  SharedMemory& memory = vfs_->shared_memory();
  for (int attempt = 0; attempt < kCopyAttempts; ++attempt) {
    int frames = 0;
    int copied = 0;
    const int code = sqlite3_wal_checkpoint_v2(copier_->handle(), "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
    if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY) return fail(copier_->error_of(code));
    if (code == SQLITE_OK && copied_up_to_the_pin(copied)) {
      // SQLite has synced if it copied the whole -wal. Else it is done here, beside the traffic, so that the checkpoint
      // in a pause finds little to sync.
      TRY(vfs_->sync_database());
      // Of a page that was committed again behind the pin SQLite copies nothing, as the frame that counts is in the
      // -wal anyway. So the database stands for itself only when the pin was at the end of the log.
      mark_->done = frames == copied;
      MutexLock lock(commit_mutex_);
      note_index();
      return *mark_;
    }
    for (int mark = 0; mark < SharedMemory::kReadMarks; ++mark) {
      const bool older = mark == 0 || memory.read_mark(mark) < mark_->frames;
      if (mark != pinned_read_mark_ && older) memory.wait_until_unread(mark, mark, {}, kReaderWait);
    }
  }
  return *mark_;
}

void SqliteStore::end_checkpoint() {
  if (!mark_) return;
  pin_->end_view();
  const bool all_copied = mark_->done && mark_->frames == frames_.load();
  mark_.reset();
  if (all_copied) vfs_->shared_memory().wait_until_unread(1, SharedMemory::kReadMarks - 1, {}, kRestartWait);
}

}  // namespace store
