"""Writers, readers and a watcher that work through all members of a cluster, and hold what they are told against what
must be true.

Nobody repeats a request whose outcome is unknown; every write is bound to the revision it was based on, so that one
which was given up cannot happen behind a later one's back.
"""
import http.client, json, os, random, threading, time

from cluster import EVERYTHING
from history import History, checker_of
from server import b64, unb64

TIMEOUT = 3
REST = 0.004  # between two requests: the load is there to be in the way, not to be high


class Worker(threading.Thread):
    """Stays with a member until it fails, or now and then for no reason."""

    def __init__(self, load):
        super().__init__(daemon=True)
        self.load, self.choose = load, random.Random(load.choose.random())
        self.member, self.connections, self.fault, self.timeout = None, {}, None, TIMEOUT
        self.client = load.history.client()

    def run(self):
        try:
            while not self.load.stop.is_set():
                self.step()
                self.load.stop.wait(REST)
        except Exception as error:  # the test's own thread tells it
            self.fault = self.fault or f"{type(error).__name__}: {error}"

    def check(self, condition, text):
        if not condition:
            self.fault = self.fault or text

    def change(self):
        self.member = None

    def post(self, path, body):
        """(code, answer), or None: not answered, anything may have happened."""
        members = list(self.load.cluster)
        if self.member not in members or self.choose.random() < 0.02:
            self.member = self.choose.choice(members)
        member, connection = self.member, self.connections.pop(self.member, None)
        try:
            connection = connection or member.connect(self.timeout)
            answer = self.load.history.post(self.client, member, path, body, connection=connection)
            self.connections[member] = connection
            if answer[0] != 200:
                self.change()
            return answer
        except (OSError, ValueError, http.client.HTTPException):
            if connection:
                connection.close()
            self.change()
            return None


class PairWriter(Worker):
    """Counts up its own pair of keys in one transaction each."""

    def __init__(self, load, index):
        super().__init__(load)
        self.index, self.keys = index, [f"w{index}/a", f"w{index}/b"]
        self.sent, self.acknowledged, self.base = 0, 0, None
        self.writes, self.refused = {}, set()  # number -> revision; surely not written

    def step(self):
        if self.base is None:
            before = self.acknowledged
            answer = self.post("/v3/kv/range", {"key": b64(self.keys[0])})
            if not answer or answer[0] != 200:
                return
            kv = answer[1].get("kvs", [{}])[0]
            self.base, there = kv.get("mod_revision", "0"), int(unb64(kv["value"])) if kv else 0
            self.check(there >= before, f"writer {self.index}: {before} acknowledged, then read {there}")
        number = self.sent = self.sent + 1
        answer = self.post("/v3/kv/txn", {
            "compare": [{"key": b64(self.keys[0]), "target": "MOD", "result": "EQUAL", "mod_revision": self.base}],
            "success": [{"requestPut": {"key": b64(key), "value": b64(str(number))}} for key in self.keys]})
        self.base = None
        if answer and answer[0] == 200:
            if answer[1].get("succeeded"):
                revision = int(answer[1]["header"]["revision"])
                self.base, self.writes[number] = str(revision), revision
                self.acknowledged = number
                self.load.told(revision)
            else:
                self.refused.add(number)


class Incrementer(Worker):
    """Adds one to counters that it shares with others, by compare and swap. A value is "number:who:attempt"."""

    def __init__(self, load, index):
        super().__init__(load)
        self.index, self.attempts, self.writes, self.refused = index, 0, {}, set()

    def step(self):
        key = f"c/{self.choose.randrange(self.load.counters)}"
        answer = self.post("/v3/kv/range", {"key": b64(key), "serializable": self.choose.random() < 0.5})
        if not answer or answer[0] != 200:
            return
        kv = answer[1].get("kvs", [{}])[0]
        number = int(unb64(kv["value"]).split(":")[0]) if kv else 0
        base = kv.get("mod_revision", "0")
        self.attempts += 1
        token = f"{self.index}:{self.attempts}"
        answer = self.post("/v3/kv/txn", {
            "compare": [{"key": b64(key), "target": "MOD", "result": "EQUAL", "mod_revision": base}],
            "success": [{"requestPut": {"key": b64(key), "value": b64(f"{number + 1}:{token}")}}]})
        if answer and answer[0] == 200:
            if answer[1].get("succeeded"):
                revision = int(answer[1]["header"]["revision"])
                self.writes[token] = revision
                self.load.told(revision)
            else:
                self.refused.add(token)


class Reader(Worker):
    """A linearizable read shows at least what was acknowledged, or shown, before it was sent."""

    def __init__(self, load):
        super().__init__(load)
        self.linearizable = self.serializable = 0

    def step(self):
        load, writer = self.load, self.choose.choice(self.load.writers)
        serializable = self.choose.random() < 0.3
        if self.member is None:
            self.member = self.choose.choice(list(load.cluster))
        life = (self.member, self.member.lives, serializable)
        floor = max(writer.acknowledged, load.seen.get(writer, 0))
        revision_floor = load.revisions.get(life, 0) if serializable else load.revision
        answer = self.post("/v3/kv/range", {"key": b64(f"w{writer.index}/"), "range_end": b64(f"w{writer.index}0"),
                                            "serializable": serializable})
        if not answer or answer[0] != 200:
            return
        member, revision = self.member, int(answer[1]["header"]["revision"])
        found = {unb64(kv["key"]): (int(unb64(kv["value"])), kv["mod_revision"]) for kv in answer[1].get("kvs", [])}
        self.check(len(found) in (0, 2) and len(set(found.values())) <= 1, f"half visible on {member.name}: {found}")
        value = next(iter(found.values()))[0] if found else 0
        self.check(value <= writer.sent, f"{member.name}: {value} read, {writer.sent} sent")
        if serializable:
            self.serializable += 1
            if (member, member.lives, True) == life:
                self.check(revision >= revision_floor, f"{member.name}: revision {revision} after {revision_floor}")
                with load.mutex:
                    load.revisions[life] = max(load.revisions.get(life, 0), revision)
            return
        self.linearizable += 1
        self.check(value >= floor, f"stale read on {member.name}: {value}, {floor} was known before it was sent")
        self.check(revision >= revision_floor, f"stale revision on {member.name}: {revision} after {revision_floor}")
        with load.mutex:
            load.seen[writer] = max(load.seen.get(writer, 0), value)
        load.told(revision)


class Watcher(Worker):
    """Follows every key from revision 1 on, from member to member, and resumes after what it has seen whole."""

    def __init__(self, load):
        super().__init__(load)
        self.events, self.last, self.resumed = [], 0, 0

    def step(self):
        self.member = self.choose.choice(list(self.load.cluster))
        end = time.monotonic() + self.choose.uniform(0.5, 4)
        try:
            connection = self.member.connect(timeout=1)
            try:
                self.follow(connection, end)
            finally:
                connection.close()
        except (OSError, ValueError, http.client.HTTPException):
            pass

    def follow(self, connection, end):
        body = {"create_request": {**EVERYTHING, "start_revision": str(self.last + 1)}}
        history = self.load.history
        history.watch("all", EVERYTHING, self.last + 1)
        connection.request("POST", "/v3/watch", json.dumps(body))
        response = connection.getresponse()
        self.resumed += 1
        while time.monotonic() < end and not self.load.stop_watching.is_set():
            line = response.readline()
            if not line:
                return
            result = json.loads(line).get("result")
            if result is None:
                return  # the stream failed and says why
            self.check(not result.get("canceled"), f"watch canceled by {self.member.name}: {result}")
            events = result.get("events", [])
            for event in events:
                revision = int(event["kv"]["mod_revision"])
                self.check(revision > self.last, f"{self.member.name}: event of revision {revision} after {self.last}")
                self.events.append((revision, unb64(event["kv"]["key"]), unb64(event["kv"].get("value", ""))))
            if events:  # all events of a revision come in one response
                self.last = int(events[-1]["kv"]["mod_revision"])
            if events:
                history.events("all", result)

    def run(self):
        try:
            while not self.load.stop_watching.is_set():
                self.step()
        except Exception as error:
            self.fault = self.fault or f"{type(error).__name__}: {error}"


class Load:
    """As a context: works inside, and is checked at its end (unless that is by an exception). Everything is written
    down in a history (history.py): in `history`, to be checked by who gave it, or in one of its own."""

    def __init__(self, cluster, choose, writers=3, incrementers=2, readers=3, counters=2, history=None):
        self.cluster, self.choose, self.counters = cluster, choose, counters
        self.history, self.verdict = history, None
        if not history:
            self.history = History(os.path.join(cluster.folder, "history.jsonl"), checker_of(cluster.program),
                                   [("c/", "c0"), ("w", "x")])
        self.has_own = not history
        self.stop, self.stop_watching, self.mutex = threading.Event(), threading.Event(), threading.Lock()
        self.seen, self.revisions, self.revision = {}, {}, 0
        self.writers = [PairWriter(self, i) for i in range(writers)]
        self.incrementers = [Incrementer(self, i) for i in range(incrementers)]
        self.readers = [Reader(self) for _ in range(readers)]
        self.watcher = Watcher(self)
        self.workers = [*self.writers, *self.incrementers, *self.readers, self.watcher]

    def told(self, revision):
        """A linearizable answer of this revision is there: no later one may be older."""
        with self.mutex:
            self.revision = max(self.revision, revision)

    def acknowledged(self):
        return sum(len(w.writes) for w in [*self.writers, *self.incrementers])

    def fail_early(self):
        for worker in self.workers:
            assert worker.fault is None, worker.fault

    def wait_for_writes(self, seconds, count=1):
        """Until so many more are acknowledged; how long that took."""
        begin, before = time.monotonic(), self.acknowledged()
        while self.acknowledged() < before + count:
            assert time.monotonic() < begin + seconds, f"no write acknowledged for {seconds:.1f} s"
            self.fail_early()
            time.sleep(0.002)
        return time.monotonic() - begin

    def __enter__(self):
        for worker in self.workers:
            worker.start()
        return self

    def __exit__(self, kind, *_):
        self.stop.set()
        for worker in self.workers:
            if worker is not self.watcher:
                worker.join()
        if kind is not None:
            self.stop_watching.set()
            return
        try:
            self.fail_early()
            self.final = self.cluster.same_everywhere()
            end = time.monotonic() + 30
            while self.watcher.last < self.final and not self.watcher.fault and time.monotonic() < end:
                time.sleep(0.01)
        finally:
            self.stop_watching.set()
            self.watcher.join()
        self.check()

    def check(self):
        self.fail_early()
        watcher, final = self.watcher, self.final
        assert watcher.last == final, f"watcher ended at {watcher.last} of {final}"
        by_revision = {}
        for revision, key, value in watcher.events:
            by_revision.setdefault(revision, []).append((key, value))
        assert sorted(by_revision) == list(range(2, final + 1)), "the watcher missed a revision"
        for writer in self.writers:
            self.check_writer(writer, by_revision)
        for counter in range(self.counters):
            self.check_counter(f"c/{counter}", by_revision)
        for worker in self.incrementers:
            for token, revision in worker.writes.items():
                assert by_revision[revision][0][1].endswith(":" + token), f"lost at {revision}: {token}"
        if self.has_own:
            self.verdict = self.history.check()

    @staticmethod
    def check_writer(writer, by_revision):
        written = {}
        for revision, events in by_revision.items():
            if events[0][0] in writer.keys:
                number = int(events[0][1])
                assert sorted(events) == [(key, str(number)) for key in writer.keys], f"half: {revision}: {events}"
                assert number not in written, f"writer {writer.index}: {number} written twice"
                written[number] = revision
        assert sorted(written) == sorted(written, key=written.get), f"writer {writer.index}: order of its writes"
        for number, revision in writer.writes.items():
            there = written.get(number)
            assert there == revision, f"{number} of {writer.index} acknowledged at {revision}, there at {there}"
        for number in written:
            assert number <= writer.sent and number not in writer.refused, f"{number} was refused, and is written"

    def check_counter(self, key, by_revision):
        refused = set().union(*(worker.refused for worker in self.incrementers))
        last, tokens = 0, set()
        for revision in sorted(by_revision):
            for name, value in by_revision[revision]:
                if name == key:
                    number, token = value.split(":", 1)
                    assert int(number) == last + 1, f"{key}: {number} after {last}: an increment was lost"
                    assert token not in tokens and token not in refused, f"{key}: {token} refused or twice"
                    last = int(number)
                    tokens.add(token)

    def summary(self):
        reads = [sum(getattr(r, kind) for r in self.readers) for kind in ("linearizable", "serializable")]
        members = len(list(self.cluster))
        return (f"{self.acknowledged()} acknowledged writes, {reads[0]} linearizable and {reads[1]} serializable "
                f"reads, {len(self.watcher.events)} events, watch resumed {self.watcher.resumed} times, "
                f"all {members} members equal at revision {self.final}{', also by hashkv' if members > 1 else ''}"
                f"{f'; history: {self.verdict}' if self.verdict else ''}")
