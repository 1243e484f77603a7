#!/usr/bin/env python3
"""A cluster that grows from one member to three and five and shrinks back, by the API and under the load of load.py.

Each newcomer is a learner first and is promoted once it is in sync; a dead member is replaced; one that missed more
than the log keeps gets a snapshot; the leader itself is removed; who was removed stops and says why; strangers are
refused; hashkv is equal on all members after each step. The number is how often all of that is done (default: 5).
"""
import http.client, random, shutil, sys, time

from cluster import ELECTION, HEARTBEAT_MS, Cluster, Member, eventually, spread
from load import Load
from pulse import Pulse
from server import b64

NOT_IN_SYNC = "etcdserver: can only promote a learner member which is in sync with leader"
TRIES = 30  # seconds for what is refused for the time being: health of members is only known after a while
FLAGS = ["--snapshot-count", "200"]
LARGE, LARGE_COUNT = "x" * 400_000, 60  # together more than the 16 MiB of entries that are kept in memory
WRITES_AGAIN = 5 * ELECTION


def ask(member, path, body, timeout=10):
    return member.post(f"/v3/cluster/member/{path}", body, timeout=timeout)


def listed(member, **more):
    code, answer = ask(member, "list", {"linearizable": True, **more})
    assert code == 200, answer
    return {m["ID"]: m for m in answer["members"]}


def known(cluster):
    """The list of members; it is refused while there is no leader."""
    return eventually(lambda: listed(cluster.leader()), 15, "a list of members")


def by_url(cluster, member):
    """Its id: the URL is known before the name."""
    return next((i for i, m in known(cluster).items() if m["peerURLs"] == [member.peer_url]), None)


def change(cluster, path, body, settled):
    """A change of the members, through any of them, again as long as it is refused for now; gives the refusals.
    `settled` tells from the list whether it is done, for the case that its answer was lost."""
    def once():
        if settled():
            return True
        code, answer = ask(random.choice([m for m in cluster if m.alive()]), path, body)
        if code == 200:
            return answer
        last.append(answer.get("message"))
        for_now = ("in sync with leader", "unhealthy cluster", "not enough started", "too many learner", "timed out",
                   "no leader", "leader changed", "not supported for learner")
        assert any(text in str(answer) for text in for_now), f"member {path}: {answer}"
        return None
    last = []
    end = time.monotonic() + TRIES
    while True:
        try:
            if once():
                break
        except (OSError, ValueError, http.client.HTTPException):
            pass
        assert time.monotonic() < end, f"member {path}: not within {TRIES} s: {last[-3:]}"
        time.sleep(0.05)
    eventually(settled, 10, f"member {path} shows in the list")
    return last


def add(cluster, load, learner_rules=False):
    """A learner, started, in sync, promoted."""
    others = list(cluster)
    newcomer = cluster.make("", "existing")
    change(cluster, "add", {"peerURLs": [newcomer.peer_url], "isLearner": True}, lambda: by_url(cluster, newcomer))
    newcomer.member_id = by_url(cluster, newcomer)
    load.wait_for_writes(10)
    if learner_rules:
        leader = cluster.leader()
        code, answer = ask(leader, "add", {"peerURLs": [newcomer.peer_url]})
        assert code == 400 and "already exist" in str(answer), answer
        code, answer = ask(leader, "add", {"peerURLs": ["http://127.0.0.1:1"], "isLearner": True})
        assert code == 400 and "too many learner members in cluster" in str(answer), answer
        code, answer = ask(leader, "promote", {"ID": newcomer.member_id})
        assert code == 400 and NOT_IN_SYNC in str(answer), answer
    newcomer.initial = cluster.initial()
    newcomer.start(wait=False)
    refusals = change(cluster, "promote", {"ID": newcomer.member_id},
                      lambda: not known(cluster)[newcomer.member_id].get("isLearner", False))
    newcomer.wait_ready()
    assert newcomer.status()["header"]["member_id"] == newcomer.member_id
    eventually(lambda: {m["name"] for m in listed(newcomer).values()} == {m.name for m in [*others, newcomer]}, 10,
               "all members have their names in the list")
    load.wait_for_writes(10, 5)
    return len(refusals)


def add_by_the_rules(cluster, load):
    return add(cluster, load, learner_rules=True)


def remove(cluster, load, leaving):
    """It stops by itself, says why, and does not start again. How long the others, which write on, paused."""
    leaving.member_id = leaving.member_id or leaving.status()["header"]["member_id"]
    staying = [member for member in cluster if member is not leaving]
    running = leaving.alive()
    with Pulse(staying, random) as pulse:
        pulse.wait_for(5, 10)
        pulse.longest = 0
        change(cluster, "remove", {"ID": leaving.member_id},
               lambda: leaving.member_id not in known(cluster))
        pulse.wait_for(20, 15)
        pause = pulse.pause()
    assert pause <= WRITES_AGAIN, f"{leaving.name} is removed: no write for {pause:.2f} s"
    if running:
        eventually(lambda: not leaving.alive(), 15, f"{leaving.name}, removed, stops")
        assert "removed" in leaving.log(), f"{leaving.name} does not say why it stopped:\n{leaving.log()[-1000:]}"
        size = len(leaving.log())
        leaving.start(wait=False)
        eventually(lambda: not leaving.alive(), 15, f"{leaving.name}, removed, refuses to start")
        assert "removed" in leaving.log()[size:], f"{leaving.name} does not say why it does not start"
    cluster.forget(leaving)
    code, answer = ask(staying[0], "remove", {"ID": leaving.member_id})
    assert code == 404 and "etcdserver: member not found" in str(answer), answer
    load.wait_for_writes(10, 5)
    return pause


def replace_dead(cluster, load):
    dead = random.choice(cluster.followers())
    dead.status()
    dead.kill()
    shutil.rmtree(dead.folder)
    load.wait_for_writes(10)
    remove(cluster, load, dead)
    add(cluster, load)


def missed_everything(cluster, load):
    """More than the log keeps in memory or segments."""
    away = random.choice(cluster.followers())
    away.kill()
    size, leader = len(away.log()), cluster.leader([m for m in cluster if m is not away])
    for i in range(LARGE_COUNT):
        eventually(lambda: leader.put(f"large/{i % 4}", LARGE), 10, "a put")
    away.start(wait=False)
    away.wait_ready(60)
    index = int(leader.status()["raftAppliedIndex"])
    eventually(lambda: int(away.status()["raftAppliedIndex"]) >= index, 30, f"{away.name} has what it missed")
    assert away.took_snapshot(size), f"{away.name} got no snapshot:\n{away.log()[size:][-1500:]}"
    for i in range(4):
        status, answer = leader.post("/v3/kv/deleterange", {"key": b64(f"large/{i}")})
        assert status == 200, answer


def move_url(cluster, load):
    """A member gets another peer URL, first in the list, then on its command line."""
    moving = random.choice(cluster.followers())
    moving.member_id = moving.status()["header"]["member_id"]
    moving.peer_port = moving.advertised_port = Member(cluster, moving.name, "existing", "").peer_port
    change(cluster, "update", {"ID": moving.member_id, "peerURLs": [moving.peer_url]},
           lambda: known(cluster)[moving.member_id]["peerURLs"] == [moving.peer_url])
    moving.kill()
    moving.start()
    load.wait_for_writes(10)


def hand_over(cluster, load):
    leader = cluster.leader()
    to = random.choice(cluster.followers())
    code, answer = leader.post("/v3/maintenance/transfer-leadership", {"targetID": to.status()["header"]["member_id"]})
    assert code == 200, answer
    assert cluster.leader() is to, "led by another than was asked for"
    load.wait_for_writes(5)


def strangers_are_refused(cluster, load):
    victim = cluster.leader()
    # One that nobody added.
    lost = Member(cluster, "lost", "existing", f"{cluster.initial()}")
    lost.initial += f",lost={lost.peer_url}"
    lost.start(wait=False)
    code = lost.process.wait(timeout=30)
    assert code != 0, "a member that nobody added starts"
    # One of another cluster that takes this one's member for its own.
    other = Member(cluster, "other", "new", "")
    other.token += "-other"
    other.initial = f"other={other.peer_url},{victim.name}={victim.peer_url}"
    other.start(wait=False)
    eventually(lambda: any(text in other.log() for text in ("another cluster", "cluster ID mismatch")), 30,
               "a member of another cluster is told")
    try:
        code, answer = other.post("/v3/kv/range", {"key": b64("x")}, timeout=ELECTION)
        assert code != 200, f"a member of another cluster reads: {answer}"
    except OSError:
        pass
    other.kill()
    assert cluster.leader() is victim, "a stranger changed the leader"
    load.wait_for_writes(10, 5)


def up_to_five(cluster, load):
    refusals = 0
    for step in (add_by_the_rules, add, hand_over, replace_dead, missed_everything, add, add, move_url,
                 strangers_are_refused):
        refusals += step(cluster, load) or 0
        cluster.same_hash()
        load.fail_early()
    assert len(known(cluster)) == 5
    return refusals


def down_to_one(cluster, load):
    pauses = []
    while len(list(cluster)) > 1:
        leaving = cluster.leader() if random.random() < 0.6 else random.choice(list(cluster))
        pauses.append(remove(cluster, load, leaving))
        cluster.same_hash()
        load.fail_early()
    assert len(known(cluster)) == 1
    return pauses


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    random.seed(seed)
    with Cluster(program, 1, flags=FLAGS) as cluster:
        with Load(cluster, random.Random(seed), writers=2, readers=2) as load:
            load.wait_for_writes(10, 20)
            refusals, pauses = 0, []
            for this in range(rounds):
                refusals += up_to_five(cluster, load)
                pauses += down_to_one(cluster, load)
                print(f"round {this}: 1 to 5 members and back", flush=True)
            for _ in range(2):  # so that there is something to compare in the end
                refusals += add(cluster, load)
        print(f"{rounds} rounds; promotion refused {refusals} times for now; writes paused at a removal "
              f"{spread(pauses)}; {load.summary()}: ok")


if __name__ == "__main__":
    main()
