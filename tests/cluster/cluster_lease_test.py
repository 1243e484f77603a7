#!/usr/bin/env python3
"""Leases over changes of the leader (default: 20; killed or paused).

Shows: a lease that is renewed through any member never ends; one that nobody renews ends in time and never early;
once a revocation is acknowledged, a keepalive is negative on every member.
"""
import random, sys, time

from cluster import ELECTION, Cluster, eventually
from leases import Finder, Keeper, Leaver, Revoker

KEPT_TTL = 4
LEFT_TTLS = [2, 5, 10]
SLACK = 1.0  # for a revocation to be proposed, committed and seen, on a busy machine


def change_leader(cluster, choose, paused):
    """(begin, end) of the time in which there may have been none."""
    leader, begin = cluster.leader(), time.monotonic()
    others = [member for member in cluster if member is not leader]
    leader.pause() if paused else leader.kill()
    cluster.leader(others)
    for member in others:
        eventually(lambda: member.read("x", timeout=1), 15, f"{member.name} reads under the new leader")
    end = time.monotonic()
    if paused:
        time.sleep(choose.uniform(0, 2))  # its own clock of the leases runs on meanwhile
        leader.resume()
    else:
        leader.start(wait=False)
    eventually(lambda: leader.read("x", timeout=1), 15, f"{leader.name} is back")
    return begin, end


def check_left(left, changes):
    early = left.sent + left.ttl - left.gone
    assert early <= 0, f"lease of {left.ttl} s ended {early:.2f} s early"
    over = left.there - left.may_end_at(changes, ELECTION)
    zero = left.acknowledged
    assert over <= SLACK, (f"lease of {left.ttl} s there {left.there - zero:.2f} s after its last renewal, changes of "
                           f"leader at {[f'{begin - zero:.2f}..{end - zero:.2f}' for begin, end in changes]}")


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    choose, changes = random.Random(seed), []
    with Cluster(program) as cluster:
        keepers, revoker = [Keeper(cluster, choose, KEPT_TTL) for _ in range(4)], Revoker(cluster, choose)
        leaver = Leaver(cluster, choose, LEFT_TTLS)
        finder = Finder(cluster, choose, leaver)
        workers = [*keepers, revoker, leaver, finder]
        for worker in workers:
            worker.start()
        try:
            for number in range(count):
                time.sleep(choose.uniform(0.5, 3))
                changes.append(change_leader(cluster, choose, paused=number % 2 == 1))
                for worker in [*keepers, revoker]:
                    assert worker.fault is None, worker.fault
            time.sleep(2)  # some leases whose leader stays
            leaver.stop.set()
            leaver.join()
            eventually(lambda: all(left.gone for left in leaver.left), 2 * max(LEFT_TTLS) + 5, "all that are left end")
        finally:
            for worker in workers:
                worker.stop.set()
            for worker in workers:
                worker.join()
        for worker in [*keepers, revoker]:
            assert worker.fault is None, worker.fault
        for left in leaver.left:
            check_left(left, changes)
        revision = cluster.same_everywhere()
        renewals, lost = sum(k.renewals for k in keepers), sum(k.lost for k in keepers)
        assert renewals > 5 * count and lost <= count // 5, f"{renewals} renewals, {lost} leases lost for want of them"
        assert revoker.members == {member.name for member in cluster}, f"negative answers of {revoker.members} only"
        assert len(leaver.left) > count, "too few leases were left alone"
        def latest(those):
            return max(left.there - left.acknowledged - left.ttl for left in those)
        early = min(left.gone - left.sent - left.ttl for left in leaver.left)
        calm = [left for left in leaver.left if not any(e > left.sent and b < left.gone for b, e in changes)]
        assert calm, "no lease of a leader that stayed"
        print(f"{count} changes of leader; {renewals} renewals of 4 leases of {KEPT_TTL} s, longest gap "
              f"{max(k.longest for k in keepers):.2f} s; {len(leaver.left)} leases left alone ended {early:.2f} to "
              f"{latest(leaver.left):.2f} s after their TTL ({len(calm)} without a change: at most {latest(calm):.2f} "
              f"s); {revoker.revoked} revoked, {revoker.negative} keepalives negative; all members equal at "
              f"revision {revision}, also by hashkv: ok")


if __name__ == "__main__":
    main()
