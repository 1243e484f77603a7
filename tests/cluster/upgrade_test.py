#!/usr/bin/env python3
"""From one build of the server to another and back, on the same data folders and under the load of load.py.

  upgrade_test.py OLD NEW [ROUNDS [SEED]]

One member goes to NEW, back to OLD, and in the end to NEW, stopped in order and by SIGKILL in turns. Three members go
to NEW one at a time, and back one at a time; each time one of them misses more than the log keeps, so that it gets a
snapshot from the other build. A build from before there were clusters says so; then a folder of its own grows to three
members of NEW, and OLD, started on the folder of one of them, must refuse it or acknowledge nothing.

Shows: nothing acknowledged is lost, revisions never go back, leases stay, all members are equal in the end, and the
history of all clients is what a single correct store could have answered (tests/history).
"""
import os, random, signal, sys, time

from cluster import Cluster, eventually, spread
from cluster_kill_test import read_back
from cluster_members_test import add
from history import History, checker_of
from leases import grant
from load import Load
from server import b64

FLAGS = ["--snapshot-count", "200"]
LARGE = "x" * 400_000
# Of them, more than the 16 MiB that a leader keeps in memory for members that lag, and that SQLite's -wal holds before
# it is copied into the database.
MANY = 60


def identity(member):
    header = eventually(lambda: member.status(timeout=5), 20, f"{member.name} tells its status")["header"]
    return header["cluster_id"], header["member_id"]


def runs(member, program):
    return os.readlink(f"/proc/{member.process.pid}/exe") == os.path.realpath(program)


class Upgrade:
    """A cluster that began with one build, its load, and what is done to it."""

    def __init__(self, program, size, choose, checker):
        self.cluster, self.choose = Cluster(program, size, flags=FLAGS), choose
        self.puts, self.changes, self.snapshots, self.pauses = 0, 0, 0, []
        self.history = History(os.path.join(self.cluster.folder, "history"), checker)
        self.load, self.client = Load(self.cluster, choose, history=self.history), self.history.client()

    def __enter__(self):
        self.cluster.__enter__()
        self.load.__enter__()
        try:
            self.load.wait_for_writes(10, 20)
            member = self.cluster.leader()
            self.lease = grant(member, 3600)
            self.put(member, "leased", "1", lease=self.lease)
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            self.load.__exit__(kind)
            if kind is None:
                self.verdict = self.history.check()
        except BaseException as error:
            kind = type(error)
            raise
        finally:
            self.cluster.__exit__(kind)

    def put(self, member, key, value, **more):
        """Through a member that leads or follows; again with another value until it is acknowledged."""
        def once():
            self.puts += 1
            body = {"key": b64(key), "value": b64(f"{value}:{self.puts}"), **more}
            return self.history.post(self.client, member, "/v3/kv/put", body, timeout=5)[0] == 200
        eventually(once, 20, f"a put of {key}")

    def fill(self, member, count):
        for i in range(count):
            self.put(member, f"large/{i % 4}", LARGE)

    def compact(self, member):
        """Up to what the watch has heard; the rows go while the server is being stopped."""
        revision = self.load.watcher.last
        def once():
            code, answer = member.post("/v3/kv/compaction", {"revision": str(revision)})
            return code == 200 or "has been compacted" in str(answer)  # by a request whose answer was lost
        eventually(once, 20, f"compaction up to {revision}")

    def check(self, member, acknowledged, revision):
        """Right after its start."""
        read_back(member, self.load, acknowledged)
        answer = eventually(lambda: member.read("leased", timeout=2), 20, f"{member.name} reads")
        assert answer["kvs"][0]["lease"] == self.lease, answer
        now = int(answer["header"]["revision"])
        assert now >= revision, f"{member.name}: revision {now} after its restart, {revision} was known before"
        def time_left():
            code, answer = member.post("/v3/lease/timetolive", {"ID": self.lease, "keys": True})
            return answer if code == 200 else None
        lease = eventually(time_left, 20, f"{member.name} tells of the lease")
        assert 0 < int(lease["TTL"]) <= 3600 and lease["keys"] == [b64("leased")], lease

    def stop(self, member, sig):
        code, expected = member.kill(sig), 0 if sig == signal.SIGTERM else -sig
        assert code == expected, f"{member.name} ended with {code}:\n{member.log()[-2000:]}"

    def change(self, member, program, sig, missed=0):
        """Stops it and starts the other build on its folder. `missed`: large values that others take meanwhile."""
        before = identity(member)
        acknowledged, revision = [writer.acknowledged for writer in self.load.writers], self.load.revision
        self.stop(member, sig)
        size = len(member.log())
        others = [other for other in self.cluster if other is not member]
        if missed:
            self.fill(self.cluster.leader(others), missed)
        elif others:
            self.pauses.append(self.load.wait_for_writes(20))
        member.program = program
        member.start(wait=False)
        member.wait_ready(60)
        assert runs(member, program), f"{member.name} is not of {program}"
        self.check(member, acknowledged, revision)
        assert identity(member) == before, f"{member.name} is another member now"
        if missed:
            assert member.took_snapshot(size), f"{member.name} got no snapshot:\n{member.log()[size:][-1500:]}"
            self.snapshots += 1
        self.load.wait_for_writes(20, 20)
        self.changes += 1

    def roll(self, program, turn):
        """All members, one after the other; the leader is the first or the last."""
        leader = self.cluster.leader()
        order = [member for member in self.cluster if member is not leader]
        self.choose.shuffle(order)
        order.insert(0 if turn % 2 == 0 else len(order), leader)
        for at, member in enumerate(order):
            sig = signal.SIGTERM if (turn // 2 + at) % 2 == 0 else signal.SIGKILL
            self.change(member, program, sig, MANY if at == 0 else 0)  # the snapshot is made by the other build
            self.same_hashes()
            if at == 1:
                self.compact(self.cluster.leader())

    def same_hashes(self):
        """Of members of both builds, at one revision, while they go on."""
        for _ in range(100):
            revision = min(eventually(lambda: int(member.read("x")["header"]["revision"]), 20, f"{member.name} reads")
                           for member in self.cluster)
            answers = {}
            for member in self.cluster:
                code, answer = member.post("/v3/maintenance/hashkv", {"revision": str(revision)}, timeout=20)
                assert code == 200, answer
                answers[member.name] = answer
            if len({answer.get("compact_revision") for answer in answers.values()}) > 1:
                continue  # one of them has yet to hear of a compaction
            assert len({answer["hash"] for answer in answers.values()}) == 1, f"hashkv differs: {answers}"
            return
        raise AssertionError(f"compacted at different revisions: {answers}")

    def summary(self):
        snapshots = f", with a snapshot of the other build {self.snapshots} times" if self.snapshots else ""
        pauses = f", writes again after {spread(self.pauses)}" if self.pauses else ""
        return f"build changed {self.changes} times{snapshots}{pauses}; {self.load.summary()}; history: {self.verdict}"


def one_member(old, new, rounds, choose, checker):
    with Upgrade(old, 1, choose, checker) as upgrade:
        (member,) = upgrade.cluster
        for step in range(2 * rounds + 1):  # forward, back, forward, back, ... forward
            upgrade.fill(member, MANY)
            upgrade.compact(member)
            time.sleep(choose.uniform(0, 0.3))
            sig = signal.SIGTERM if (step + step // 2) % 2 == 0 else signal.SIGKILL
            upgrade.change(member, new if step % 2 == 0 else old, sig)
    print(f"one member: {upgrade.summary()}: ok", flush=True)


def three_members(old, new, rounds, choose, checker):
    with Upgrade(old, 3, choose, checker) as upgrade:
        for turn in range(rounds):
            upgrade.roll(new, turn)
            upgrade.roll(old, turn)
    print(f"three members: {upgrade.summary()}: ok", flush=True)


def refusal_of_clusters(program):
    """In its own words; None: it forms one."""
    cluster = Cluster(program)
    try:
        for member in cluster:
            member.start(wait=False)
        eventually(lambda: cluster.leader_now() or not any(member.alive() for member in cluster), 30,
                   "a cluster, or that it is refused")
        first = next(iter(cluster))
        if first.alive():
            return None
        refusal = first.log().strip().splitlines()[-1]
        assert "--initial-cluster" in refusal, f"this is no refusal of clusters: {first.log()[-2000:]}"
        return refusal
    finally:
        cluster.__exit__(None)


def refused_by(program, upgrade, member):
    """A build without clusters on the folder of one of three members. With the flags of all three it does not start; as
    if it were alone it does, but has no leader and acknowledges nothing. Afterwards the member goes on."""
    kept = member.program, member.initial, member.state
    upgrade.stop(member, signal.SIGTERM)
    member.program, member.initial, member.state = program, upgrade.cluster.initial(), "new"
    member.start(wait=False)
    eventually(lambda: not member.alive(), 30, "it does not start with the flags of a cluster")
    assert member.kill() != 0 and "--initial-cluster" in member.log().strip().splitlines()[-1], member.log()[-1000:]
    member.initial = f"{member.name}={member.peer_url}"
    term = int(upgrade.cluster.leader().status()["raftTerm"])
    member.start(wait=False)
    eventually(lambda: int(member.status()["raftTerm"]) > term + 2, 30, "it tries to become leader alone")
    assert member.status().get("leader", "0") == "0", "a member of three leads alone"
    for path, body in (("put", {"key": b64("alone"), "value": b64("x")}), ("range", {"key": b64("leased")})):
        code, answer = member.post(f"/v3/kv/{path}", body, timeout=30)
        assert code != 200, f"answered by a member of three, alone: {answer}"
    upgrade.stop(member, signal.SIGKILL)
    member.program, member.initial, member.state = kept
    member.start()
    upgrade.load.wait_for_writes(20, 20)


def grown(old, new, choose, checker):
    with Upgrade(old, 1, choose, checker) as upgrade:
        (member,) = upgrade.cluster
        upgrade.fill(member, MANY)
        upgrade.change(member, new, signal.SIGKILL)
        upgrade.cluster.program = new
        for _ in range(2):
            add(upgrade.cluster, upgrade.load)
        leader = upgrade.cluster.leader()
        for victim in (leader, choose.choice([other for other in upgrade.cluster if other is not leader])):
            refused_by(old, upgrade, victim)
    print(f"a folder of OLD, grown to three members of NEW: {upgrade.summary()}: ok", flush=True)


def main():
    old, new = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    random.seed(seed)
    choose, checker = random.Random(seed), checker_of(new)
    one_member(old, new, rounds, choose, checker)
    refusal = refusal_of_clusters(old)
    if refusal is None:
        three_members(old, new, rounds, choose, checker)
    else:
        print(f"OLD forms no clusters ({refusal}): no rolling upgrade of several members", flush=True)
        grown(old, new, choose, checker)


if __name__ == "__main__":
    main()
