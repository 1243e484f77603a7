"""One write after the other, to see for how long there is none: what a client notices of a fault."""
import http.client, random, threading, time

PATIENCE = 0.5  # then it asks another member


class Pulse(threading.Thread):
    """As a context. Writes through `members` alone, with no rest in between; the same few keys."""

    def __init__(self, members, choose, value="v"):
        super().__init__(daemon=True)
        self.members, self.choose, self.value = list(members), random.Random(choose.random()), value
        self.stop, self.count, self.longest, self.last = threading.Event(), 0, 0, None

    def __enter__(self):
        self.last = time.monotonic()
        self.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join()

    def run(self):
        member = self.choose.choice(self.members)
        while not self.stop.is_set():
            try:
                member.put(f"pulse/{self.count % 8}", self.value, timeout=PATIENCE)
            except (OSError, ValueError, http.client.HTTPException, AssertionError):
                member = self.choose.choice(self.members)
                self.stop.wait(0.002)
                continue
            now = time.monotonic()
            self.longest, self.last, self.count = max(self.longest, now - self.last), now, self.count + 1

    def pause(self):
        """The longest time without a write that was acknowledged, the one that goes on included."""
        return max(self.longest, time.monotonic() - self.last)

    def wait_for(self, count, seconds):
        """So many more."""
        end, until = time.monotonic() + seconds, self.count + count
        while self.count < until:
            assert time.monotonic() < end, f"only {self.count - until + count} of {count} writes within {seconds:.1f} s"
            time.sleep(0.002)
