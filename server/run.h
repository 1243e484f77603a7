// The server behind main(): opens the member, listens, waits for a signal, closes in order.
#pragma once

#include <csignal>

#include "config/options.h"
#include "descriptors.h"

sigset_t stop_signals();  // blocked in every thread; run() waits for them

// The exit code: 0 asked to stop, 1 a start that failed, a disk that failed, or a member that was removed.
int run(const config::Options& options, const Descriptors& descriptors);
