// The Watch service: one client stream is one stream of the hub.
#pragma once

#include "http/handler.h"
#include "rpc/header.h"
#include "watch/hub.h"

namespace rpc {

// Both outlive the router, and the hub outlives the front end's streams. Before the first stream: it tells the hub how
// headers are filled.
void add_watch(http::Router& router, watch::Hub& hub, const HeaderSource& header);

}  // namespace rpc
