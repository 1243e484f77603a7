#!/usr/bin/env python3
"""SIGKILLs the server again and again under concurrent writers (default: 100 times).

Shows: no acknowledged write is lost; none is half visible (each write is a transaction over two keys); the revision never
goes back; a watcher that resumes by revision sees each event of the history exactly once, in order.
"""
import http.client, json, random, sys, threading, time

from server import Server, b64, unb64

WRITERS = 4


class Writer(threading.Thread):
    """Counts up its own pair of keys; remembers the last number acknowledged and the revisions it was told."""

    def __init__(self, server, index, stop):
        super().__init__()
        self.server, self.index, self.stop = server, index, stop
        self.acknowledged, self.sent, self.revision, self.fault = 0, 0, 0, None
        self.writes = {}  # number -> revision that acknowledged it

    def run(self):
        connection = None
        while not self.stop.is_set():
            number = self.sent + 1
            keys = [f"w{self.index}/a", f"w{self.index}/b"]
            body = {"success": [{"requestPut": {"key": b64(k), "value": b64(str(number))}} for k in keys]}
            try:
                connection = connection or self.server.connect(timeout=3)
                self.sent = number
                status, answer = self.server.post("/v3/kv/txn", body, connection=connection)
            except (OSError, ValueError, http.client.HTTPException):
                connection = None  # may have happened
                time.sleep(0.002)
                continue
            if status != 200:
                continue
            revision = int(answer["header"]["revision"])
            if revision <= self.revision:
                self.fault = f"writer {self.index}: revision {revision} after {self.revision}"
            self.revision, self.acknowledged = revision, number
            self.writes[number] = revision


class Watcher(threading.Thread):
    """Follows every key from revision 1 on and resumes after what it has seen whole."""

    def __init__(self, server, stop):
        super().__init__()
        self.server, self.stop, self.events, self.last, self.fault = server, stop, [], 0, None
        self.resumed = 0

    def run(self):
        while not self.stop.is_set():
            try:
                self.follow()
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.005)

    def follow(self):
        connection = self.server.connect(timeout=1)
        body = {"create_request": {"key": b64("\0"), "range_end": b64("\0"), "start_revision": str(self.last + 1)}}
        connection.request("POST", "/v3/watch", json.dumps(body))
        response = connection.getresponse()
        self.resumed += 1
        while not self.stop.is_set():
            line = response.readline()
            if not line:
                return
            result = json.loads(line)["result"]
            if result.get("canceled"):
                self.fault = f"watch canceled: {result}"
                return
            events = result.get("events", [])
            for event in events:
                revision = int(event["kv"]["mod_revision"])
                if revision <= self.last:
                    self.fault = f"event of revision {revision} after {self.last}"
                self.events.append((revision, unb64(event["kv"]["key"]), unb64(event["kv"]["value"])))
            if events:  # all events of a revision come in one response
                self.last = int(events[-1]["kv"]["mod_revision"])


def check_writers(server, writers):
    for writer in writers:
        status, answer = server.post("/v3/kv/range", {"key": b64(f"w{writer.index}/"), "range_end": b64(f"w{writer.index}0")})
        assert status == 200, answer
        acknowledged, sent = writer.acknowledged, writer.sent
        found = {unb64(kv["key"]): (int(unb64(kv["value"])), kv["mod_revision"]) for kv in answer.get("kvs", [])}
        if not found:
            assert acknowledged == 0, f"writer {writer.index}: {acknowledged} acknowledged, nothing there"
            continue
        (a, a_revision), (b, b_revision) = found[f"w{writer.index}/a"], found[f"w{writer.index}/b"]
        assert (a, a_revision) == (b, b_revision), f"half visible: {found}"
        # The writer may be at work: what is there is at least what was acknowledged before the read was sent.
        assert a >= acknowledged or a >= writer.acknowledged, f"lost: {a} there, {acknowledged} acknowledged"
        assert a <= writer.sent, f"never written: {a} there, {sent} sent"


def main():
    program, kills = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    choose, stop = random.Random(seed), threading.Event()
    with Server(program) as server:
        writers = [Writer(server, i, stop) for i in range(WRITERS)]
        watcher = Watcher(server, stop)
        for thread in [*writers, watcher]:
            thread.start()
        revision = 0
        try:
            for kill in range(kills):
                time.sleep(choose.uniform(0.05, 0.4))
                acknowledged = [w.acknowledged for w in writers]
                server.kill()
                server.start()
                status, answer = server.post("/v3/kv/range", {"key": b64("x"), "count_only": True})
                now = int(answer["header"]["revision"])
                assert status == 200 and now >= revision, f"revision went back from {revision} to {now}"
                revision = now
                for writer, before in zip(writers, acknowledged):
                    _, answer = server.post("/v3/kv/range", {"key": b64(f"w{writer.index}/a")})
                    there = int(unb64(answer["kvs"][0]["value"])) if "kvs" in answer else 0
                    assert there >= before, f"kill {kill}: writer {writer.index}: {before} acknowledged, {there} there"
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        check_writers(server, writers)
        # Let the watcher reach the end, then hold it against the history.
        status, answer = server.post("/v3/kv/range", {"key": b64("x"), "count_only": True})
        final = int(answer["header"]["revision"])
        stop.clear()
        if not watcher.is_alive():
            fresh = Watcher(server, stop)
            fresh.events, fresh.last, fresh.fault, fresh.resumed = watcher.events, watcher.last, watcher.fault, watcher.resumed
            watcher = fresh
            watcher.start()
        end = time.monotonic() + 30
        while watcher.last < final and not watcher.fault and time.monotonic() < end:
            time.sleep(0.01)
        stop.set()
        watcher.join()
        check_history(writers, watcher, final)
        total = sum(len(w.writes) for w in writers)
        print(f"{kills} kills, {total} acknowledged writes, {len(watcher.events)} events, watch resumed {watcher.resumed} times: ok")


def check_history(writers, watcher, final):
    for thread in [*writers, watcher]:
        assert thread.fault is None, thread.fault
    assert watcher.last == final, f"watcher ended at {watcher.last} of {final}"
    revisions = {}
    for revision, key, value in watcher.events:
        revisions.setdefault(revision, []).append((key, value))
    assert sorted(revisions) == list(range(2, final + 1)), "a revision is missing"
    for revision, events in revisions.items():
        index = events[0][0].split("/")[0]
        assert sorted(events) == [(f"{index}/a", events[0][1]), (f"{index}/b", events[0][1])], f"{revision}: {events}"
    for writer in writers:
        for number, revision in writer.writes.items():
            assert revisions[revision][0] == (f"w{writer.index}/a", str(number)), f"revision {revision} is not {number}"


if __name__ == "__main__":
    main()
