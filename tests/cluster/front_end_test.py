#!/usr/bin/env python3
"""Clients that ask for much, beside clients that ask for little: the latter must not notice.

front_end_test.py PROGRAM        all of it
front_end_test.py read PORT      one range over everything, as a client of its own process
"""
import json, os, select, socket, statistics, subprocess, sys, threading, time

from server import Server, b64, unb64

MEGABYTE = 1_000_000
LATENCY_MAX = 0.5  # seconds; tens of milliseconds on a quiet machine, 3 to 5 seconds when an io thread is held up
EVERYTHING = json.dumps({"key": b64("r"), "range_end": b64("s")}).encode()


def raw_post(path, body, more=b""):
    return b"POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s" % (path.encode(), more, len(body), body)


def rss_mb(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS"))


def read_everything(port):
    """Prints how many bytes came. A process of its own: Python's lock would add to the latencies of the others."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(raw_post("/v3/kv/range", EVERYTHING, b"Connection: close\r\n"))
        total, buffer = 0, bytearray(1 << 20)
        while size := client.recv_into(buffer):
            total += size
        print(total)


class Small:
    """Keepalives of a lease of two seconds, puts and point reads, each on a connection of its own; notes how long they take."""

    def __init__(self, server):
        self.server, self.stopping, self.memory_max, self.lease_lost = server, threading.Event(), 0, False
        self.took = {"keepalive": [], "put": [], "get": []}
        self.failed = []
        server.post("/v3/lease/grant", {"ID": 5, "TTL": 2})
        server.post("/v3/kv/put", {"key": b64("lock"), "value": b64("mine"), "lease": 5})
        calls = {"keepalive": ("/v3/lease/keepalive", {"ID": 5}, 0.3), "put": ("/v3/kv/put", {"key": b64("x"), "value": b64("y")}, 0.01),
                 "get": ("/v3/kv/range", {"key": b64("lock")}, 0.01)}
        self.threads = [threading.Thread(target=self.loop, args=(name, *call)) for name, call in calls.items()]
        self.threads.append(threading.Thread(target=self.watch_memory))

    def loop(self, name, path, body, pause):
        connection = self.server.connect(timeout=30)
        try:
            while not self.stopping.wait(pause):
                begin = time.monotonic()
                status, answer = self.server.post(path, body, connection=connection)
                self.took[name].append(time.monotonic() - begin)
                if status != 200:
                    self.failed.append(answer)
                if name == "keepalive" and "TTL" not in answer["result"]:
                    self.lease_lost = True
        except Exception as error:
            self.failed.append(repr(error))

    def watch_memory(self):
        while not self.stopping.wait(0.01):
            self.memory_max = max(self.memory_max, rss_mb(self.server))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def check(self, median_max=LATENCY_MAX):
        assert not self.failed, self.failed[:3]
        assert not self.lease_lost, "the lease was lost"
        for name, took in self.took.items():
            assert max(took) < LATENCY_MAX, f"a {name} took {max(took):.2f} s"
            assert statistics.median(took) < median_max, f"a {name} took {statistics.median(took):.3f} s in the median"

    def text(self):
        return ", ".join(f"{name} {max(took) * 1000:.0f} ms" for name, took in self.took.items())


def fill(server, megabytes):
    connection = server.connect(timeout=30)
    for i in range(megabytes):
        status, answer = server.post("/v3/kv/put", {"key": b64(f"r{i:04}"), "value": b64(b"v" * MEGABYTE)}, connection=connection)
        assert status == 200, answer


def small_requests_go_on_beside_large_ranges(program):
    with Server(program) as server:
        fill(server, 120)
        before = rss_mb(server)
        with Small(server) as small:
            time.sleep(0.5)
            begin = time.monotonic()
            readers = [subprocess.Popen([sys.executable, __file__, "read", str(server.port)], stdout=subprocess.PIPE) for _ in range(6)]
            sizes = {int(reader.communicate()[0]) for reader in readers}
            took = time.monotonic() - begin
        assert len(sizes) == 1 and sizes.pop() > 120 * MEGABYTE * 4 // 3, "not everything came"
        small.check()
        assert small.memory_max < before + 350, f"{before} MB before, {small.memory_max} MB with six ranges of 120 MB"
        print(f"six ranges of 120 MB in {took:.1f} s; longest beside them: {small.text()}; memory {before} -> {small.memory_max} MB")


def readers_that_do_not_read_cost_little(program):
    with Server(program) as server:
        fill(server, 40)
        before = rss_mb(server)
        with Small(server) as small:
            idle = []
            for _ in range(60):
                idle.append(socket.create_connection(("127.0.0.1", server.port)))
                idle[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                idle[-1].sendall(raw_post("/v3/kv/range", EVERYTHING))
            time.sleep(3)  # nothing is to happen: the time is for the memory to grow in
        small.check()
        # 32 of them hold a part or some; the others wait, and so does everybody else who wants as much.
        assert small.memory_max < before + 350, f"{before} MB before, {small.memory_max} MB"
        for client in idle:
            client.close()
        reader = subprocess.run([sys.executable, __file__, "read", str(server.port)], stdout=subprocess.PIPE, timeout=30)
        assert int(reader.stdout) > 40 * MEGABYTE * 4 // 3, "when they are gone, the next one gets its range"
        print(f"60 who ask for 40 MB and do not read: longest beside them: {small.text()}; memory {before} -> {small.memory_max} MB")


def one_who_pipelines_does_not_hold_up_others(program):
    requests = 1000
    with Server(program) as server:
        fill(server, 1)
        with Small(server) as small:
            client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            request = raw_post("/v3/kv/range", json.dumps({"key": b64("r0000")}).encode())
            sender = threading.Thread(target=client.sendall, args=(request * requests,))
            sender.start()
            total, buffer, wanted = 0, bytearray(1 << 20), requests * MEGABYTE * 4 // 3
            while total < wanted:
                size = client.recv_into(buffer)
                assert size, "the connection ended"
                total += size
            sender.join()
            client.close()
        small.check(median_max=0.025)
        print(f"{requests} pipelined reads of a megabyte: longest beside them: {small.text()}")


def unfinished_requests_are_limited_together(program):
    body = raw_post("/v3/kv/put", b'{"key":"' + b"A" * 3_900_000)
    body = body.replace(b"Content-Length: 3900008", b"Content-Length: 4000000")
    with Server(program) as server:
        before = rss_mb(server)
        clients = []
        for _ in range(200):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            try:
                client.sendall(body)
            except OSError:
                pass  # it was refused meanwhile
            clients.append(client)
        # The kernel took what was sent; now the server reads it.
        most, refused, left, end = 0, 0, set(clients), time.monotonic() + 20
        while refused < 110 and time.monotonic() < end:
            most = max(most, rss_mb(server))
            for client in select.select(left, [], [], 0.05)[0]:
                left.remove(client)
                refused += 1
                try:
                    answer = client.recv(4096)
                except ConnectionError:
                    continue
                assert answer.startswith(b"HTTP/1.1 429 "), answer
                assert answer.endswith(b'{"code":8,"message":"etcdserver: too many requests"}'), answer
        assert refused >= 110, f"{refused} refused"
        assert most < before + 550, f"{most} MB for 200 unfinished requests of 3.9 MB"
        assert server.post("/v3/kv/put", {"key": b64("a"), "value": b64("small")})[0] == 200
        for client in clients:
            client.close()
        end = time.monotonic() + 10
        while server.post("/v3/kv/put", {"key": b64("a"), "value": b64("v" * MEGABYTE)})[0] != 200:
            assert time.monotonic() < end, "memory of requests that are gone is still counted"
        while rss_mb(server) > before + 50:
            assert time.monotonic() < end, f"{rss_mb(server)} MB are kept"
            time.sleep(0.1)
        print(f"200 unfinished requests of 3.9 MB: {refused} refused, memory {before} -> {most} MB, {rss_mb(server)} MB after")


def large_answers_of_every_kind_are_whole(program):
    everything = {"key": b64("r"), "range_end": b64("s")}
    with Server(program) as server:
        fill(server, 20)
        _, plain = server.post("/v3/kv/range", everything, timeout=30)
        assert plain["count"] == "20" and len(plain["kvs"]) == 20 and "more" not in plain
        for order in ({}, {"sort_target": "VALUE"}, {"sort_target": "MOD", "sort_order": "ASCEND"}, {"min_mod_revision": "1"}):
            _, answer = server.post("/v3/kv/range", {**everything, **order}, timeout=30)
            assert answer["kvs"] == plain["kvs"], order
        _, answer = server.post("/v3/kv/range", {**everything, "limit": 7, "sort_order": "DESCEND"}, timeout=30)
        assert answer["kvs"] == plain["kvs"][:-8:-1] and answer["more"] and answer["count"] == "20"
        _, answer = server.post("/v3/kv/txn", {"success": [{"request_range": everything}]}, timeout=30)
        assert answer["responses"][0]["response_range"]["kvs"] == plain["kvs"], "a transaction that only reads"
        _, answer = server.post("/v3/kv/txn", {"success": [{"request_range": everything}, {"request_put": {"key": b64("a")}}]}, timeout=30)
        assert answer["responses"][0]["response_range"]["kvs"] == plain["kvs"], "one that writes"
        _, answer = server.post("/v3/kv/deleterange", {**everything, "prev_kv": True}, timeout=30)
        assert answer["deleted"] == "20" and answer["prev_kvs"] == plain["kvs"]
        assert "kvs" not in server.post("/v3/kv/range", everything)[1]
        print("large ranges, sorted, filtered, limited, in transactions, and what a delete returns: all whole")


if __name__ == "__main__":
    if sys.argv[1] == "read":
        read_everything(int(sys.argv[2]))
    else:
        for check in (small_requests_go_on_beside_large_ranges, readers_that_do_not_read_cost_little,
                      one_who_pipelines_does_not_hold_up_others, unfinished_requests_are_limited_together,
                      large_answers_of_every_kind_are_whole):
            check(sys.argv[1])
