#!/usr/bin/env python3
"""Partitions, through the wires of proxy.py, under the load of load.py: the leader or a follower cut off, in both
directions or in one; two members from each other; a minority of two of five.

Shows: the majority writes on within a few election timeouts, and without any pause if it keeps its leader; the
minority answers neither writes nor linearizable reads, serves serializable ones and says that it is not well; after
the partition it has what the others have, and its return disturbs nobody. The default is 28 partitions.
"""
import http.client, random, sys, time

from cluster import ELECTION, Cluster, eventually, spread
from load import Load
from server import b64, unb64

WRITES_AGAIN = 5 * ELECTION  # split votes and a busy machine included; the median is held to half of it
ALONE = 4 * ELECTION  # until who hears of no majority says so


def get(member, path, timeout=2):
    connection = member.connect(timeout)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


class Round:
    def __init__(self, cluster, load, choose, number):
        self.cluster, self.load, self.choose, self.number = cluster, load, choose, number
        self.leader = cluster.leader()
        self.term = self.leader.status()["raftTerm"]
        self.again, self.pause, self.disturbed = None, None, False

    def others(self, *inside):
        return [member for member in self.cluster if member not in inside]

    def write(self, members, text):
        """Through any of them, as often as it takes; how long that was."""
        begin = time.monotonic()
        eventually(lambda: self.choose.choice(members).put("p/key", f"{self.number} {text}", timeout=0.4),
                   WRITES_AGAIN, "the majority writes on")
        return time.monotonic() - begin

    def refused(self, member):
        """Neither a write nor a linearizable read is answered well; a serializable read is."""
        asks = [("/v3/kv/put", {"key": b64(f"p/lost/{self.number}"), "value": b64("?")}),
                ("/v3/kv/range", {"key": b64("p/key")}),
                ("/v3/lease/grant", {"TTL": "60"})]
        for path, body in asks:
            try:
                code, answer = member.post(path, body, timeout=0.7)
                assert code != 200, f"{member.name}, cut off: {path}: {answer}"
            except (OSError, http.client.HTTPException):
                pass
        member.read("p/key", serializable=True, timeout=2)

    def is_alone(self, member):
        """It says that there is no leader."""
        def says():
            code, body = get(member, "/health")
            return code == 503 and "RAFT NO LEADER" in body and member.status().get("leader", "0") == "0"
        eventually(says, ALONE, f"{member.name}, cut off, says that it has no leader")
        assert get(member, "/readyz", timeout=15)[0] == 503, "ready without a leader"
        assert get(member, "/livez")[0] == 200, "a member without a leader is alive"

    def heal(self, members, text):
        self.cluster.heal(broken=self.choose.random() < 0.5)
        begin = time.monotonic()
        for member in members:
            eventually(lambda: unb64(member.read("p/key", timeout=1)["kvs"][0]["value"]) == f"{self.number} {text}", 10,
                       f"{member.name} is back")
        return time.monotonic() - begin

    def is_settled(self, leader, term):
        """Whether nobody was elected anew."""
        now = self.cluster.leader()
        return now is leader and now.status()["raftTerm"] == term

    # The leader is away

    def leader_isolated(self):
        self.leader_cut_off([self.leader], alone=True)

    def leader_not_heard(self):
        self.leader_cut_off([self.leader], incoming=False)

    def leader_hears_nobody(self):
        self.leader_cut_off([self.leader], outgoing=False, alone=True)

    def leader_in_minority(self):
        self.leader_cut_off([self.leader, self.choose.choice(self.others(self.leader))], alone=True)

    def leader_cut_off(self, inside, alone=False, **directions):
        outside = self.others(*inside)
        self.cluster.isolate(inside, **directions)
        self.again = self.write(outside, "majority")
        for member in inside:
            self.refused(member)
        if alone:
            for member in inside:
                self.is_alone(member)
        self.back(inside, outside)

    def back(self, inside, outside):
        leader = self.cluster.leader(outside)
        term = leader.status()["raftTerm"]
        self.write(outside, "last")
        self.heal(inside, "last")
        time.sleep(ELECTION)  # in which its return would show
        self.disturbed = not self.is_settled(leader, term)

    # A follower is away

    def follower_isolated(self):
        self.follower_cut_off()

    def follower_hears_nobody(self):
        self.follower_cut_off(outgoing=False)

    def follower_cut_off(self, **directions):
        follower = self.choose.choice(self.others(self.leader))
        self.cluster.isolate([follower], **directions)
        self.watch_writes(self.others(follower))
        self.refused(follower)
        self.is_alone(follower)
        self.back([follower], self.others(follower))
        self.disturbed = self.disturbed or not self.is_settled(self.leader, self.term)

    def leader_and_follower_apart(self):
        """The third one hears both, and keeps the leader."""
        follower = self.choose.choice(self.others(self.leader))
        self.cluster.cut((self.leader, follower), (follower, self.leader))
        self.watch_writes(self.others(follower))
        self.refused(follower)
        self.back([follower], self.others(follower))
        self.disturbed = self.disturbed or not self.is_settled(self.leader, self.term)

    def watch_writes(self, members):
        """The longest pause between two writes while a partition begins that should not be felt."""
        end, self.pause = time.monotonic() + 3 * ELECTION, 0
        while time.monotonic() < end:
            self.pause = max(self.pause, self.write(members, "majority"))


THREE = [Round.leader_isolated, Round.follower_isolated, Round.leader_not_heard, Round.leader_and_follower_apart,
         Round.leader_hears_nobody, Round.follower_hears_nobody]


def run(program, size, kinds, count, choose):
    again, pauses, disturbed = [], [], []
    with Cluster(program, size, proxied=True) as cluster:
        with Load(cluster, choose) as load:
            load.wait_for_writes(10, 20)
            for number in range(count):
                kind = kinds[number % len(kinds)]
                this = Round(cluster, load, choose, number)
                try:
                    kind(this)
                except AssertionError as error:
                    raise AssertionError(f"partition {number} of {size}, {kind.__name__}: {error}") from error
                load.fail_early()
                again += [this.again] if this.again is not None else []
                pauses += [this.pause] if this.pause is not None else []
                disturbed += [kind.__name__] if this.disturbed else []
        # A loaded machine may cost an election; the rule may not be that a return does.
        assert len(disturbed) <= 1 + count // 5, f"elections without need: {disturbed}"
        if len(again) >= 4:
            assert sorted(again)[len(again) // 2] <= WRITES_AGAIN / 2, f"without the leader, writes again after {again}"
        if len(pauses) >= 4:
            assert sorted(pauses)[len(pauses) // 2] <= ELECTION, f"with the leader, writes paused for {pauses}"
        print(f"{size} members, {count} partitions; writes again after {spread(again)}; pause of writes when the "
              f"majority keeps its leader {spread(pauses)}; elections without need: {disturbed or 'none'}; "
              f"{load.summary()}: ok", flush=True)


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 28
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    of_five = max(1, count // 7)
    run(program, 3, THREE, count - of_five, random.Random(seed))
    run(program, 5, [Round.leader_in_minority], of_five, random.Random(seed + 1))


if __name__ == "__main__":
    main()
