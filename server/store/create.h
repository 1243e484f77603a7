// The database before its first use: making it, and looking at one that is there before SQLite does.
#pragma once

#include <optional>

#include "base/result.h"
#include "store/vfs.h"
#include "store/wal_scan.h"

namespace store {

// Makes kDatabaseName, complete and durable: it is made under another name and renamed.
Status create_database(Vfs& vfs);

// Refuses what is not ours (kDataLoss) or of a newer format (kFailedPrecondition), without a change to any file. The
// answer is page 1 as SQLite will see it.
Result<Bytes> inspect_first_page(Vfs& vfs, const WalScan& scan);

}  // namespace store
