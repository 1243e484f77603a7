#!/bin/sh
# Requests a second of the front end alone: bench/http/run.sh [BUILD_FOLDER]. Needs wrk.
set -eu
build=${1:-build}
folder=$(mktemp -d)
trap 'kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT
"$build/bench/http_bench_server" http://127.0.0.1:0 1 >"$folder/url" &
server=$!
while [ ! -s "$folder/url" ]; do
  kill -0 "$server" 2>/dev/null || { echo "$build/bench/http_bench_server does not run: build it first" >&2; exit 1; }
  sleep 0.1
done
url=$(cat "$folder/url")

# NAME PATH BODY CONNECTIONS
measure() {
  printf 'wrk.method = "POST"\nwrk.body = [[%s]]\n' "$3" >"$folder/request.lua"
  printf '%-24s' "$1"
  wrk -t1 -c"$4" -d3s -s "$folder/request.lua" "$url$2" | awk '
    /Requests\/sec/ { rate = $2 } /Transfer\/sec/ { bytes = $2 } /Non-2xx/ { bad = $0 }
    END { print rate " requests/s", bytes "/s", bad }'
}
value=$(head -c 256 /dev/zero | base64 -w0)
measure "put, 64 clients" /v3/kv/put "{\"key\":\"YmVuY2gva2V5LzEyMzQ1\",\"value\":\"$value\"}" 64
measure "range, 64 clients" /v3/kv/range '{"key":"YmVuY2gva2V5LzEyMzQ1"}' 64
measure "empty answer, 64" /v3/lease/grant '{}' 64
measure "other thread, 64" /v3/kv/txn '{"success":[{"requestPut":{"key":"YQ==","value":"YQ=="}}]}' 64
measure "range of 10,000, 4" /v3/kv/range '{"key":"YQ==","range_end":"AA==","limit":"10000"}' 4
measure "put, 1 client" /v3/kv/put "{\"key\":\"YmVuY2gva2V5LzEyMzQ1\",\"value\":\"$value\"}" 1
