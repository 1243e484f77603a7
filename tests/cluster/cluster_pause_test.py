#!/usr/bin/env python3
"""SIGSTOPs members at random, the leader above all, for 0.2 to 5 s, under the load of load.py.

Whatever a paused leader finds in its sockets when it wakes up was sent after its successor acknowledged a write,
revoked a lease and renewed another: it must not answer a linearizable read, a keepalive or a question about a lease
from what it knew, nor end the lease that its successor keeps. The default is 30 pauses.
"""
import http.client, json, random, sys, threading, time

from cluster import ELECTION, Cluster, eventually
from leases import Keeper, grant, keep_alive
from load import Load
from server import b64, unb64

TTL = 3  # shorter than the longer pauses: by its own count the paused leader's leases are over when it wakes up


class Asked(threading.Thread):
    """A request whose answer is taken later; (None, ...) if there was none."""

    def __init__(self, member, path, body):
        super().__init__(daemon=True)
        self.connection, self.path, self.code, self.answer = member.connect(timeout=15), path, None, None
        self.connection.request("POST", path, json.dumps(body))  # the kernel takes it, for a member that sleeps
        self.start()

    def run(self):
        try:
            response = self.connection.getresponse()
            lines = response.read().splitlines()
            self.code, self.answer = response.status, json.loads(lines[0]) if lines else {}
        except (OSError, ValueError, http.client.HTTPException):
            pass
        self.connection.close()


def pause_leader(cluster, load, choose, seconds):
    # After the pause before this one they may still be electing.
    revoked, kept = [eventually(lambda: grant(cluster.leader(), 60), 10, "a lease") for _ in range(2)]
    eventually(lambda: cluster.leader().put("pause/key", "before", timeout=5), 10, "a write")
    old = cluster.leader()
    others = [member for member in cluster if member is not old]
    old.pause()
    end = time.monotonic() + seconds
    new = cluster.leader(others)
    put = eventually(lambda: new.put("pause/key", "after", timeout=5), 10, "a write without the paused leader")
    eventually(lambda: new.post("/v3/lease/revoke", {"ID": revoked}, timeout=5)[0] in (200, 404), 10, "it revokes")
    code, answer = new.post("/v3/lease/timetolive", {"ID": revoked}, timeout=5)
    assert code == 200 and answer.get("TTL") == "-1", f"after its revocation: {answer}"
    reads = [Asked(old, "/v3/kv/range", {"key": b64("pause/key")}) for _ in range(5)]
    gone = [Asked(old, "/v3/lease/keepalive", {"ID": revoked}) for _ in range(3)]
    time_left = Asked(old, "/v3/lease/timetolive", {"ID": revoked})
    there = Asked(old, "/v3/lease/keepalive", {"ID": kept})
    time.sleep(max(0, end - time.monotonic()))
    old.resume()
    for asked in [*reads, *gone, time_left, there]:
        asked.join()
    for read in reads:
        if read.code == 200:
            assert unb64(read.answer["kvs"][0]["value"]) == "after", f"stale read: {read.answer}"
            assert int(read.answer["header"]["revision"]) >= int(put["header"]["revision"]), f"stale: {read.answer}"
    for keepalive in gone:
        if keepalive.code == 200 and "result" in keepalive.answer:
            ttl = keepalive.answer["result"].get("TTL", "0")
            assert ttl == "0", f"a revoked lease was kept alive by a leader that woke up: {keepalive.answer}"
    if time_left.code == 200:
        assert time_left.answer.get("TTL") == "-1", f"time to live of a revoked lease: {time_left.answer}"
    if there.code == 200 and "result" in there.answer:
        assert there.answer["result"].get("TTL") == "60", f"a lease that is there: {there.answer}"
    # And now that it follows: answers, not refusals.
    eventually(lambda: unb64(old.read("pause/key", timeout=2)["kvs"][0]["value"]) == "after", 10, "it reads anew")
    for lease, ttl in ((revoked, "0"), (kept, "60")):
        answer = eventually(lambda: str(keep_alive(old, lease)).replace("None", ""), 10, "it passes keepalives on")
        assert answer == ttl, f"lease that should have {ttl}: {answer}"
    new.post("/v3/lease/revoke", {"ID": kept})
    return sum(asked.code == 200 for asked in [*reads, *gone, there])


def main():
    program, pauses = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    choose, answered, of_leader = random.Random(seed), 0, 0
    with Cluster(program) as cluster:
        keeper = Keeper(cluster, choose, TTL)
        with Load(cluster, choose) as load:
            keeper.start()
            for pause in range(pauses):
                load.fail_early()
                if pause % 3 == 0:
                    of_leader += 1
                    answered += pause_leader(cluster, load, choose, choose.uniform(3 * ELECTION, 5))
                else:
                    # Any members, also all: none of them was away, by its own count.
                    for member in choose.sample(list(cluster), choose.randint(1, 3)):
                        member.pause()
                    time.sleep(choose.uniform(0.2, 5 if choose.random() < 0.2 else 1.5))
                    for member in choose.sample(list(cluster), 3):
                        if member.paused:
                            member.resume()
                            time.sleep(choose.uniform(0, 0.3))
                load.wait_for_writes(15)
            keeper.finish(0)
        assert keeper.fault is None, keeper.fault
        assert keeper.renewals > 0
        print(f"{pauses} pauses, {of_leader} of them of the leader, which then answered {answered} of {9 * of_leader} "
              f"requests; {keeper.renewals} renewals of a lease of {TTL} s, longest gap {keeper.longest:.2f} s, lost "
              f"{keeper.lost} times; {load.summary()}: ok")


if __name__ == "__main__":
    main()
