// All of the C interface. types.h has its conventions.
#ifndef CONCLAVE_C_CONCLAVE_H
#define CONCLAVE_C_CONCLAVE_H

#include "conclave_c/client.h"
#include "conclave_c/config.h"
#include "conclave_c/discovery.h"
#include "conclave_c/kv.h"
#include "conclave_c/mutex.h"
#include "conclave_c/registry.h"
#include "conclave_c/session.h"
#include "conclave_c/txn.h"
#include "conclave_c/types.h"
#include "conclave_c/watch.h"

#endif
