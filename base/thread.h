// std::mutex and friends with clang's thread-safety annotations (-Wthread-safety), and a reader-writer lock that
// prefers its writer. A mutex is the exception here: most objects belong to one thread, named in their header.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#if defined(__clang__)
#define CONCLAVE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define CONCLAVE_THREAD_ATTRIBUTE(x)
#endif
#define CAPABILITY(x) CONCLAVE_THREAD_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY CONCLAVE_THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(x) CONCLAVE_THREAD_ATTRIBUTE(guarded_by(x))
#define PT_GUARDED_BY(x) CONCLAVE_THREAD_ATTRIBUTE(pt_guarded_by(x))
#define REQUIRES(...) CONCLAVE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) CONCLAVE_THREAD_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
#define ACQUIRE(...) CONCLAVE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) CONCLAVE_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) CONCLAVE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) CONCLAVE_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define EXCLUDES(...) CONCLAVE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS CONCLAVE_THREAD_ATTRIBUTE(no_thread_safety_analysis)

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// std::condition_variable for a Mutex that the caller holds.
class Condition {
 public:
  void wait(Mutex& mutex) REQUIRES(mutex) { condition_.wait(mutex); }
  template <class Duration>
  void wait_for(Mutex& mutex, Duration duration) REQUIRES(mutex) {
    condition_.wait_for(mutex, duration);
  }
  // True once `done()` (called with the mutex held) is; false when it still is not after `duration`.
  template <class Duration, class Predicate>
  bool wait_for(Mutex& mutex, Duration duration, Predicate done) REQUIRES(mutex) {
    return condition_.wait_for(mutex, duration, std::move(done));
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

// Readers in parallel; a waiting writer goes before readers that come after it (std::shared_mutex let a writer wait for
// over a second beside two busy readers). Not recursive, on either side.
class CAPABILITY("mutex") RwLock {
 public:
  RwLock() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
  ~RwLock() { pthread_rwlock_destroy(&lock_); }
  RwLock(const RwLock&) = delete;
  RwLock& operator=(const RwLock&) = delete;
  void lock() ACQUIRE() { pthread_rwlock_wrlock(&lock_); }
  void unlock() RELEASE() { pthread_rwlock_unlock(&lock_); }
  void lock_shared() ACQUIRE_SHARED() { pthread_rwlock_rdlock(&lock_); }
  void unlock_shared() RELEASE_SHARED() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

class SCOPED_CAPABILITY WriteLock {
 public:
  explicit WriteLock(RwLock& lock) ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~WriteLock() RELEASE() { lock_.unlock(); }
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  RwLock& lock_;
};

class SCOPED_CAPABILITY ReadLock {
 public:
  explicit ReadLock(RwLock& lock) ACQUIRE_SHARED(lock) : lock_(lock) { lock_.lock_shared(); }
  ~ReadLock() RELEASE() { lock_.unlock_shared(); }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

 private:
  RwLock& lock_;
};

// Names the calling thread (15 characters at most) and blocks all signals in it: main handles them.
void begin_thread(const char* name);

// Asks that the calling thread goes before the process's others: commits or heartbeats wait for it. A better niceness
// and a short slice, each as far as it is granted: niceness needs CAP_SYS_NICE or a limit, the slice Linux 6.12.
void hurry_thread();
