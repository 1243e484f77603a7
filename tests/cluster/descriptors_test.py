#!/usr/bin/env python3
"""A limit of open files: too low to work, raised as far as it may be, and used up by clients.

descriptors_test.py PROGRAM
"""
import os, select, socket, sys, time

from server import Server, b64


class Limited(Server):
    """Started with a soft and a hard limit of open files."""

    def __init__(self, program, soft, hard, flags=()):
        super().__init__(program, flags)
        self.soft, self.hard = soft, hard

    def command(self):
        return ["sh", "-c", f'ulimit -S -n {self.soft} && ulimit -H -n {self.hard} && exec "$@"', "sh", *super().command()]

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def limits(self):
        with open(f"/proc/{self.process.pid}/limits") as limits:
            return next(line.split()[3:5] for line in limits if line.startswith("Max open files"))


def too_low_a_limit_is_refused(program):
    for limit in (8, 40, 200):
        server = Limited(program, limit, limit)
        try:
            server.start(wait=False)
            assert server.process.wait(timeout=10) == 1, server.fate()
            for words in (f"limit of open files is {limit}, but at least", "ulimit -n", "LimitNOFILE="):
                assert words in server.log(), server.log()
            assert not os.path.exists(os.path.join(server.folder, "data")), "the data folder was touched"
        finally:
            server.__exit__()
    print("a limit that is too low is refused, with how to raise it")


def the_soft_limit_is_raised(program):
    with Limited(program, 100, 2000) as server:
        assert server.limits() == ["2000", "2000"], server.limits()
        print("the soft limit is raised to the hard one")


def is_closed(client):
    """By the server, at once."""
    if not select.select([client], [], [], 5)[0]:
        return False
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def clients_leave_the_log_its_files(program):
    limit = 400
    with Limited(program, limit, limit, ["--snapshot-count", "100"]) as server:
        writer = server.connect(20)
        put = lambda i: server.post("/v3/kv/put", {"key": b64(f"k{i % 50}"), "value": b64("x" * 20_000)}, connection=writer)
        assert put(0)[0] == 200
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(limit + 100)]
        assert is_closed(clients[-1]), "one too many waits"
        most = 0
        for i in range(2500):  # some segments of the log
            status, answer = put(i)
            assert status == 200, (i, answer, server.fate())
            most = max(most, server.open_files()) if i % 50 == 0 else most
        segments = os.listdir(os.path.join(server.folder, "data/wal"))
        assert max(name for name in segments if name.endswith(".wal")) >= "0000000000000003", f"the log needed no new files: {segments}"
        assert most < limit - 100, f"{most} files are open of {limit}"
        assert server.log().count("closed at once") == 1, "told of once in a while"
        assert "cannot accept" not in server.log(), server.log()[-2000:]
        for client in clients:
            client.close()
        end = time.monotonic() + 10
        while True:
            try:
                assert server.post("/v3/kv/put", {"key": b64("a"), "value": b64("after")})[0] == 200
                break
            except (OSError, ValueError):
                assert time.monotonic() < end, "connections that are gone are still counted"
        print(f"{limit + 100} idle connections with a limit of {limit}: {most} files open at most, writes go on")


if __name__ == "__main__":
    for check in (too_low_a_limit_is_refused, the_soft_limit_is_raised, clients_leave_the_log_its_files):
        check(sys.argv[1])
