// A second look at a history, through its revisions, in near-linear time: an answer's header says after which revision
// it stands, and a write's revision is its own. That orders everything, over all keys, and catches what no single key
// shows: half a transaction, a range that mixes two moments, an old read on another key.
//
//   Real time: what began after another operation had ended never has a lower revision, a write has a higher one.
//   State: an answer is the state as of its header's revision (a read of an old revision: as of that).
//   Serializable reads: the state as of their revision, which never goes back on one member.
//   Operations without an answer: whole or not at all, once, and not before they were called.
//
// Operations without a revision are not looked at here.
#pragma once

#include <vector>

#include "history/history.h"

namespace history {

// `events`: everything that ever happened, from the first revision on, if somebody knows (then nothing is left open);
// else what the answers tell, where keys with a lease and operations without an answer leave some room.
Verdict check_revisions(const std::vector<Operation>& operations, const Events* events = nullptr);

}  // namespace history
