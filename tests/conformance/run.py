#!/usr/bin/env python3
"""Runs the conformance cases of some topics against a server program, on ports that are free.

    run.py --runner CONFORMANCE.PY --server PROGRAM TOPIC...
"""

import argparse
import random
import shlex
import socket
import subprocess
import sys

PORTS = 80  # conformance.py's need, from its --port-base up
TRIES = 100


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port in TIME_WAIT is fine: the server does the same
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_block():
    # Below the range from which the kernel takes ports for outgoing connections.
    for _ in range(TRIES):
        base = random.randrange(10000, 32000 - PORTS)
        if all(is_free(port) for port in range(base, base + PORTS)):
            return base
    sys.exit("found no %d free ports in a row" % PORTS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("topics", nargs="+")
    args = parser.parse_args()
    server = shlex.quote(args.server) + (
        " --data-dir {data_dir} --listen-client-urls {client_url} --advertise-client-urls {client_url}"
        " --listen-peer-urls {peer_url} --initial-advertise-peer-urls {peer_url} --initial-cluster default={peer_url}")
    only = [word for topic in args.topics for word in ("--only", topic + "/*")]
    listed = subprocess.run([sys.executable, args.runner, "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    expected = sum(line.split("/")[0] in args.topics for line in listed.splitlines())
    command = [sys.executable, args.runner, "run", "--port-base", str(free_block()), "--server-cmd", server, *only]
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    print(ran.stdout)
    if ran.returncode == 0 and not ran.stdout.rstrip().endswith("%d passed, 0 failed" % expected):
        sys.exit("expected %d cases to pass" % expected)
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
