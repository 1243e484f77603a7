"""Leases as clients have them: kept alive, left alone, revoked; each told what it may be told."""
import http.client, random, threading, time

from server import b64

UNANSWERED = (OSError, ValueError, http.client.HTTPException)


def grant(member, ttl, timeout=10):
    code, answer = member.post("/v3/lease/grant", {"TTL": str(ttl)}, timeout=timeout)
    assert code == 200, answer
    return answer["ID"]


def keep_alive(member, lease, timeout=2):
    """The TTL it answers, 0: there is no such lease; None if it refuses or does not answer."""
    try:
        code, answer = member.post("/v3/lease/keepalive", {"ID": lease}, timeout=timeout)
    except UNANSWERED:
        return None
    return int(answer["result"].get("TTL", "0")) if code == 200 and "result" in answer else None


class Keeper(threading.Thread):
    """Renews a lease through whichever member; being told that it is gone is a fault within TTL of the last renewal."""

    def __init__(self, cluster, choose, ttl):
        super().__init__(daemon=True)
        self.cluster, self.choose, self.ttl = cluster, random.Random(choose.random()), ttl
        self.lease, self.fault, self.stop = None, None, threading.Event()
        self.longest, self.renewals, self.lost, self.last = 0, 0, 0, 0

    def run(self):
        while not self.stop.wait(0.1) and not self.fault:
            awake = [member for member in self.cluster if not member.paused]
            if awake:
                try:
                    self.renew(self.choose.choice(awake))
                except UNANSWERED:
                    pass

    def finish(self, least):
        """Ends it, once it has renewed the lease more often than that: all else may be over in two seconds."""
        end = time.monotonic() + 4 * self.ttl
        while self.renewals <= least and not self.fault and time.monotonic() < end:
            time.sleep(0.05)
        self.stop.set()
        self.join()

    def renew(self, member):
        sent = time.monotonic()
        if self.lease is None:
            code, answer = member.post("/v3/lease/grant", {"TTL": str(self.ttl)}, timeout=1)
            if code == 200:
                self.lease, self.last = answer["ID"], sent
            return
        ttl = keep_alive(member, self.lease, timeout=0.5)
        if ttl == 0:
            # Only a gap of the TTL excuses that; both its ends are those that are in the server's favour.
            gap = time.monotonic() - self.last
            if gap < self.ttl:
                self.fault = f"{member.name}: lease gone {gap:.2f} s after its last renewal was sent, TTL {self.ttl} s"
            self.lease, self.lost = None, self.lost + 1
        elif ttl is not None:
            self.longest, self.last, self.renewals = max(self.longest, sent - self.last), sent, self.renewals + 1


class Revoker(threading.Thread):
    """Revokes leases; once that is acknowledged no member may say that one was kept alive."""

    def __init__(self, cluster, choose):
        super().__init__(daemon=True)
        self.cluster, self.choose = cluster, random.Random(choose.random())
        self.fault, self.stop, self.revoked, self.negative, self.members = None, threading.Event(), 0, 0, set()

    def run(self):
        while not self.stop.wait(0.05) and not self.fault:
            try:
                self.once([member for member in self.cluster if not member.paused])
            except (*UNANSWERED, IndexError, AssertionError):  # refused for want of a leader, or nobody is awake
                pass

    def once(self, awake):
        lease = grant(self.choose.choice(awake), 60, timeout=1)
        keep_alive(self.choose.choice(awake), lease)
        code, _ = self.choose.choice(awake).post("/v3/lease/revoke", {"ID": lease}, timeout=2)
        if code != 200:
            return
        self.revoked += 1
        answers, askers = {}, []
        for member in awake:  # all at once
            askers.append(threading.Thread(target=lambda m=member: answers.update({m.name: keep_alive(m, lease)})))
            askers[-1].start()
        for asker in askers:
            asker.join()
        for name, ttl in answers.items():
            if ttl:
                self.fault = f"{name} kept alive a lease whose revocation was acknowledged (TTL {ttl})"
            if ttl == 0:
                self.negative += 1
                self.members.add(name)


class Left:
    """A lease that nobody renews any more, and its key."""

    def __init__(self, lease, ttl, key, sent, acknowledged):
        self.lease, self.ttl, self.key = lease, ttl, key
        self.sent, self.acknowledged = sent, acknowledged  # of the grant, or of the last renewal
        self.there, self.gone = acknowledged, None         # last seen, at least; first missed, at most

    def may_end_at(self, changes, election):
        """The latest moment, by what is promised: its time, and for each change of the leader, (begin, end), what was
        not checkpointed yet, a second for rounding, and the time without a leader.

        The first checkpoint is made after 0.4 TTL without renewal, then every max(1 s, TTL / 10).
        """
        end, counted_from, checkpointed = self.acknowledged + self.ttl, self.acknowledged, False
        for begin, over in changes:
            if over > self.sent and begin < end:
                since = max(0, begin - counted_from)
                checkpointed = checkpointed or since > 0.4 * self.ttl + election
                end += (max(1, self.ttl / 10) + 1 if checkpointed else since) + over - max(begin, self.sent)
                counted_from = over
        return end


class Leaver(threading.Thread):
    """Grants leases, puts a key under each, renews some once, and leaves them alone."""

    def __init__(self, cluster, choose, ttls):
        super().__init__(daemon=True)
        self.cluster, self.choose, self.ttls = cluster, random.Random(choose.random()), ttls
        self.stop, self.left, self.number = threading.Event(), [], 0

    def run(self):
        while not self.stop.wait(self.choose.uniform(0.2, 0.6)):
            try:
                self.once([member for member in self.cluster if not member.paused])
            except (*UNANSWERED, IndexError, AssertionError):
                pass

    def once(self, awake):
        self.number += 1
        ttl, key, sent = self.choose.choice(self.ttls), f"left/{self.number}", time.monotonic()
        lease = grant(self.choose.choice(awake), ttl, timeout=1)
        granted = time.monotonic()
        self.choose.choice(awake).put(key, lease, timeout=1, lease=lease)
        left = Left(lease, ttl, key, sent, granted)
        left.there = granted
        if self.choose.random() < 0.3:
            sent = time.monotonic()
            if keep_alive(self.choose.choice(awake), lease, timeout=1) != ttl:
                return  # renewed or not: nothing can be said of it
            left.sent, left.acknowledged = sent, time.monotonic()
        self.left.append(left)


class Finder(threading.Thread):
    """Sees by linearizable reads which keys of the leases left alone are there."""

    def __init__(self, cluster, choose, leaver):
        super().__init__(daemon=True)
        self.cluster, self.choose, self.leaver = cluster, random.Random(choose.random()), leaver
        self.stop, self.looks = threading.Event(), 0

    def run(self):
        while not self.stop.wait(0.03):
            awake = [member for member in self.cluster if not member.paused]
            open_ones, sent = [left for left in list(self.leaver.left) if left.gone is None], time.monotonic()
            try:
                code, answer = self.choose.choice(awake).post(
                    "/v3/kv/range", {"key": b64("left/"), "range_end": b64("left0"), "keys_only": True}, timeout=1)
            except (*UNANSWERED, IndexError):
                continue
            if code == 200:
                received, keys = time.monotonic(), {kv["key"] for kv in answer.get("kvs", [])}
                self.looks += 1
                for left in open_ones:
                    if b64(left.key) in keys:
                        left.there = max(left.there, sent)
                    else:
                        left.gone = received
