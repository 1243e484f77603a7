// All of the SDK.
#pragma once

#include "conclave/call.h"
#include "conclave/candidate.h"
#include "conclave/client.h"
#include "conclave/config.h"
#include "conclave/discovery.h"
#include "conclave/election.h"
#include "conclave/kv.h"
#include "conclave/leader_view.h"
#include "conclave/mutex.h"
#include "conclave/registry.h"
#include "conclave/result.h"
#include "conclave/session.h"
#include "conclave/shutdown.h"
#include "conclave/txn.h"
#include "conclave/types.h"
#include "conclave/watch.h"
