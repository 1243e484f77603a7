#!/usr/bin/env python3
"""Stops the leader of three members with SIGTERM again and again (default: 20 times) under load.

Shows: it ends within 1.5 s with exit code 0, and when it has ended another member leads already, without an election
timeout; nothing acknowledged is lost.
"""
import random, signal, sys, time

from cluster import ELECTION, Cluster, spread
from load import Load


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    stops, elected = [], []
    with Cluster(program) as cluster:
        with Load(cluster, random.Random()) as load:
            for _ in range(rounds):
                load.wait_for_writes(20)
                leader = cluster.leader()
                begin = time.monotonic()
                code = leader.kill(signal.SIGTERM)
                stops.append(time.monotonic() - begin)
                assert code == 0, f"exit code {code}: {leader.log()[-2000:]}"
                assert stops[-1] < 1.5, f"it took {stops[-1]:.2f} s to stop: {leader.log()[-2000:]}"
                if "another member leads now" not in leader.log()[-2000:]:
                    elected.append(leader.log()[-2000:])
                load.wait_for_writes(20)
                leader.start()
        assert len(elected) <= rounds / 5, f"{len(elected)} of {rounds} did not hand over: {elected[0]}"
        print(f"{rounds} stops, which took {spread(stops)}, {len(elected)} of them without a successor; "
              f"election timeout {ELECTION} s; {load.summary()}: ok")


if __name__ == "__main__":
    main()
