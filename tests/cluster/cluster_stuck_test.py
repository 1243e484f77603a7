#!/usr/bin/env python3
"""The disk of one of three members stands still for some seconds (stuck_disk.cc), under the load of load.py: the
leader's, for syncs alone or for all that is written; the leader's, and it is killed before its disk goes on; a
follower's. The number is how often all of that is done (default: 5).

Shows: writes go on through the others, without a pause of two election timeouts, and another member leads soon; a
lease is kept alive all along; who was held up has what the others have once its disk goes on, or after its restart.
"""
import os, random, sys, time

from cluster import ELECTION, ELECTION_MS, Cluster, eventually, spread
from leases import Keeper
from load import Load
from pulse import Pulse

STUCK_SECONDS = 5
WRITES_AGAIN = 2 * ELECTION
LED_AGAIN = 3 * ELECTION  # a leader gives its disk one election timeout, and whom it asks has to win
TTL = 5
SHIM = "stuck_disk.so"


class Disk:
    """Of a member that was started with it."""

    def __init__(self, member, shim):
        self.prefix = os.path.join(member.folder, "disk")
        member.environment = {"LD_PRELOAD": shim, "STUCK_DISK": self.prefix}

    def hold(self, what):
        with open(f"{self.prefix}.{what}", "x"):
            pass

    def go_on(self):
        for what in ("syncs", "writes"):
            if os.path.exists(f"{self.prefix}.{what}"):
                os.remove(f"{self.prefix}.{what}")

    def held_up(self):
        """How many calls, until now."""
        try:
            return os.path.getsize(f"{self.prefix}.waited")
        except FileNotFoundError:
            return 0


class Round:
    def __init__(self, cluster, load, choose, disks):
        self.cluster, self.load, self.choose, self.disks = cluster, load, choose, disks

    def leader_syncs(self):
        return self.of_leader("syncs")

    def leader_writes(self):
        return self.of_leader("writes")

    def leader_writes_and_is_killed(self):
        return self.of_leader("writes", kill=True)

    def of_leader(self, what, kill=False):
        return self.stuck(self.cluster.leader(), what, kill, self.is_led_again)

    def follower_writes(self):
        return self.stuck(self.choose.choice(self.cluster.followers()), "writes", False, self.leader_stays)

    def is_led_again(self, leader, others, begin):
        self.cluster.leader(others, seconds=begin + LED_AGAIN - time.monotonic())
        return time.monotonic() - begin

    def leader_stays(self, leader, others, begin):
        assert self.cluster.leader() is leader, "a follower's disk cost the leader its office"
        return 0

    def stuck(self, member, what, kill, elected):
        """(the longest pause of writes through the others, how long until one of them led)"""
        leader, disk, others = self.cluster.leader(), self.disks[member], [m for m in self.cluster if m is not member]
        before, size = disk.held_up(), len(member.log())
        with Pulse(others, self.choose) as pulse:
            pulse.wait_for(10, 10)
            pulse.longest, begin = 0, time.monotonic()
            disk.hold(what)
            eventually(lambda: disk.held_up() > before, 2, f"{member.name} is held up by its disk")
            led = elected(leader, others, begin)
            time.sleep(max(0, begin + STUCK_SECONDS - time.monotonic()))
            assert member.alive(), f"{member.name} stopped:\n{member.log()[-2000:]}"
            if kill:
                member.kill()
            disk.go_on()
            if kill:
                member.start(wait=False)
            pulse.wait_for(10, 10)
            pause = pulse.pause()
        applied = int(self.cluster.leader().status()["raftAppliedIndex"])
        eventually(lambda: int(member.status()["raftAppliedIndex"]) >= applied, 15, f"{member.name} has what it missed")
        if not kill:
            assert "slow disk" in member.log()[size:], f"{member.name} does not say that its disk is slow"
        self.cluster.same_hash()
        self.load.fail_early()
        return pause, led


KINDS = [Round.leader_syncs, Round.leader_writes, Round.leader_writes_and_is_killed, Round.follower_writes]


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    shim = os.path.join(os.path.dirname(os.path.abspath(program)), "..", "tests", SHIM)
    assert os.path.exists(shim), f"{shim} is not there: build the target stuck_disk"
    print(f"seed {seed}", flush=True)
    choose, pauses, led = random.Random(seed), {kind: [] for kind in KINDS}, []
    cluster = Cluster(program)
    disks = {member: Disk(member, shim) for member in cluster}
    with cluster:
        keeper = Keeper(cluster, choose, TTL)
        with Load(cluster, choose) as load:
            keeper.start()
            load.wait_for_writes(10, 20)
            for _ in range(rounds):
                for kind in KINDS:
                    pause, led_after = kind(Round(cluster, load, choose, disks))
                    assert pause <= WRITES_AGAIN, f"{kind.__name__}: no write for {pause:.2f} s"
                    pauses[kind].append(pause)
                    led += [led_after] if led_after else []
            keeper.finish(rounds)
        assert keeper.fault is None, keeper.fault
        assert keeper.renewals > rounds and keeper.lost == 0, f"{keeper.renewals} renewals, lost {keeper.lost} times"
        for kind, found in pauses.items():
            print(f"{kind.__name__}: writes through the others paused {spread(found)}")
        print(f"{rounds * len(KINDS)} disks stuck for {STUCK_SECONDS} s, election timeout {ELECTION_MS} ms; led by "
              f"another after {spread(led)}; longest gap of renewals {keeper.longest:.2f} s; {load.summary()}: ok")


if __name__ == "__main__":
    main()
