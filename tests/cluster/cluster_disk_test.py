#!/usr/bin/env python3
"""The disk of one of three members is full (no file of it can grow, as in disk_test.py), under the load of load.py:
of a follower, of the leader, of a follower that is started so. The number is how often each (default: 5).

Shows: the others write on, without a pause if it is a follower, and under another leader if it is the leader; a
lease is kept alive all along; the member says what is wrong; once there is space it has what the others have, by itself.
"""
import glob, http.client, os, random, resource, sys, time

from cluster import ELECTION, Cluster, eventually, spread
from disk_test import file_size_limit, get
from leases import Keeper
from load import Load

VALUE = "v" * 20_000
WRITES_AGAIN = 5 * ELECTION  # of which the leader needs some to notice
TTL = 5


def limit_of(member):
    return max(os.path.getsize(file) for file in glob.glob(os.path.join(member.folder, "data/store/*/store.db-wal")))


def fill(member):
    resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE, (limit_of(member), resource.RLIM_INFINITY))


def free(member):
    resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def is_told(member):
    assert member.alive(), f"{member.name} stopped:\n{member.log()[-2000:]}"
    try:
        code, body = get(member, "/health", timeout=2)
    except (OSError, http.client.HTTPException):  # one that starts on a full disk answers after some seconds
        return False
    return code == 503 and "the disk is full" in body


def write(choose, members, number):
    eventually(lambda: choose.choice(members).put(f"disk/{number % 8}", VALUE, timeout=0.5), 3 * WRITES_AGAIN,
               "the others write on")


def writes_until_told(cluster, full, choose):
    """Through the others, until the member says that its disk is full. The longest pause between two writes."""
    others, pause, number = [member for member in cluster if member is not full], 0, 0
    begin = end = time.monotonic()
    while not is_told(full):
        number += 1
        write(choose, others, number)
        pause, end = max(pause, time.monotonic() - end), time.monotonic()
        assert end < begin + 60, f"{full.name} never says that its disk is full"
    for _ in range(20):  # and now that it is
        number += 1
        write(choose, others, number)
        pause, end = max(pause, time.monotonic() - end), time.monotonic()
    return pause


def recovers(cluster, load, full):
    assert full.alive(), f"{full.name} stopped:\n{full.log()[-2000:]}"
    full.read("disk/0", serializable=True)
    free(full)
    eventually(lambda: get(full, "/health")[0] == 200, 10, f"{full.name} is well once there is space")
    applied = int(cluster.leader().status()["raftAppliedIndex"])
    eventually(lambda: int(full.status()["raftAppliedIndex"]) >= applied, 15, f"{full.name} has what it missed")
    load.fail_early()


def of_follower(cluster, load, choose):
    leader, full = cluster.leader(), choose.choice(cluster.followers())
    fill(full)
    pause = writes_until_told(cluster, full, choose)
    assert cluster.leader() is leader, "a follower's full disk cost the leader its office"
    recovers(cluster, load, full)
    return pause


def of_leader(cluster, load, choose):
    full = cluster.leader()
    others = [member for member in cluster if member is not full]
    fill(full)
    pause = writes_until_told(cluster, full, choose)
    cluster.leader(others, seconds=WRITES_AGAIN)  # one that applies: keepalives and the ends of leases are its business
    recovers(cluster, load, full)
    return pause


def of_one_that_starts(cluster, load, choose):
    full = choose.choice(cluster.followers())
    full.kill()
    with file_size_limit(limit_of(full)):
        full.start(wait=False)
    pause = writes_until_told(cluster, full, choose)
    recovers(cluster, load, full)
    return pause


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    choose, pauses = random.Random(seed), {kind: [] for kind in (of_follower, of_leader, of_one_that_starts)}
    with Cluster(program) as cluster:
        keeper = Keeper(cluster, choose, TTL)
        with Load(cluster, choose, writers=2, incrementers=1, readers=2) as load:
            keeper.start()
            load.wait_for_writes(10, 20)
            for _ in range(count):
                for kind in pauses:
                    pauses[kind].append(kind(cluster, load, choose))
            keeper.stop.set()
            keeper.join()
        assert keeper.fault is None, keeper.fault
        assert keeper.renewals > count and keeper.lost == 0, f"{keeper.renewals} renewals, lost {keeper.lost} times"
        for kind in (of_follower, of_one_that_starts):
            assert sorted(pauses[kind])[count // 2] <= ELECTION, f"{kind.__name__}: writes paused for {pauses[kind]}"
        assert max(pauses[of_leader]) <= WRITES_AGAIN, f"writes paused for {pauses[of_leader]}"
        print("; ".join(f"{kind.__name__}: writes paused {spread(found)}" for kind, found in pauses.items()))
        print(f"{3 * count} full disks; longest gap of renewals {keeper.longest:.2f} s; {load.summary()}: ok")


if __name__ == "__main__":
    main()
