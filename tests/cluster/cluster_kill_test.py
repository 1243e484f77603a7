#!/usr/bin/env python3
"""SIGKILLs the leader of three members again and again (default: 50 times) under writers, readers and a watcher that
go through all members (load.py); each fifth time all three at once.

Shows: nothing acknowledged is lost, none half visible; linearizable reads are never stale; revisions never go back; a
watch that is resumed on another member has each event exactly once; in the end all members are equal.
"""
import random, sys, time

from cluster import Cluster, eventually, spread
from load import Load
from server import unb64


def read_back(member, load, acknowledged):
    for writer, before in zip(load.writers, acknowledged):
        answer = eventually(lambda: member.read(writer.keys[0], timeout=2), 20, f"{member.name} reads")
        there = int(unb64(answer["kvs"][0]["value"])) if "kvs" in answer else 0
        assert there >= before, f"{member.name} after its restart: {there} there, {before} acknowledged"


def main():
    program, kills = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    choose, failovers = random.Random(seed), []
    with Cluster(program) as cluster:
        with Load(cluster, choose) as load:
            load.wait_for_writes(10, 20)
            for kill in range(kills):
                time.sleep(choose.uniform(0.1, 0.8))
                leader = cluster.leader()
                acknowledged = [writer.acknowledged for writer in load.writers]
                victims = list(cluster) if kill % 5 == 4 else [leader]
                for member in victims:
                    member.kill()
                if len(victims) == 1 and choose.random() < 0.7:
                    failovers.append(load.wait_for_writes(20))
                for member in victims:
                    member.start(wait=False)
                for member in victims:
                    member.wait_ready()
                    read_back(member, load, acknowledged)
                load.wait_for_writes(20)
        print(f"{kills} kills; writes again after {spread(failovers)}; {load.summary()}: ok")


if __name__ == "__main__":
    main()
