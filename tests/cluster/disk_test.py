#!/usr/bin/env python3
"""A disk that is full, or that changes what it was given, under the real server.

The full disk is a small tmpfs in a mount namespace of this test's own. Where that is not allowed the limit on the size of a
file stands in for it: writes beyond it fail. The first line says which it is.
"""
import contextlib, glob, http.client, json, os, resource, shutil, signal, subprocess, sys, tempfile, time

from server import Server, b64, unb64

MOUNTED = "CONCLAVE_TEST_TMPFS"
READY_PATIENCE = 3  # seconds until a server that is not ready answers nevertheless (main.cc)


@contextlib.contextmanager
def file_size_limit(size):
    """For what is started meanwhile."""
    own = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, own[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, own)


class Tmpfs:
    """All of the folder is full, or has some MiB left."""

    def __init__(self):
        self.folder = os.path.join(os.environ[MOUNTED], "member")
        os.mkdir(self.folder)

    def fill(self, server):
        with open(os.path.join(os.environ[MOUNTED], "ballast"), "ab", buffering=0) as ballast:
            for size in (1 << 20, 1):
                try:
                    while True:
                        ballast.write(bytes(size))
                except OSError:
                    pass

    def free(self, server):
        os.remove(os.path.join(os.environ[MOUNTED], "ballast"))

    def start_full(self, server):
        self.fill(server)
        server.start(wait=False)

    def remove(self):
        shutil.rmtree(self.folder)


class FileSizeLimit:
    """No file of the server can grow beyond what the journal of its store has by now."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="conclave-test-")

    def limit(self):
        return os.path.getsize(glob.glob(os.path.join(self.folder, "data/store/*/store.db-wal"))[0])

    def fill(self, server):
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (self.limit(), resource.RLIM_INFINITY))

    def free(self, server):
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def start_full(self, server):
        with file_size_limit(self.limit()):
            server.start(wait=False)

    def remove(self):
        shutil.rmtree(self.folder)


def eventually(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return
        except (OSError, ValueError, http.client.HTTPException):
            pass
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds} s: {what}")


def get(server, path, timeout=5):
    connection = server.connect(timeout)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def put(server, key, value, timeout=15):
    return server.post("/v3/kv/put", {"key": b64(key), "value": b64(value)}, timeout=timeout)


def value_of(server, key):
    status, answer = server.post("/v3/kv/range", {"key": b64(key)})
    assert status == 200, answer
    return unb64(answer["kvs"][0]["value"]) if "kvs" in answer else None


def is_told(server):
    for path in ("/health", "/readyz"):
        status, body = get(server, path)
        assert status == 503 and "the disk is full" in body, f"{path}: {status} {body}"


def full_disk_is_told_and_waited_for(program, make_space):
    space = make_space()
    logs = tempfile.mkdtemp(prefix="conclave-test-")
    with Server(program, folder=space.folder) as server:
        server.kill()
        server.log_path = os.path.join(logs, "server.log")
        server.start()
        acknowledged = {}

        def write(key):
            status, answer = put(server, key, "v" * 2000)
            if status == 200:
                acknowledged[key] = "v" * 2000
            return status, answer

        for i in range(100):
            assert write(f"before/{i}")[0] == 200
        assert get(server, "/health")[0] == 200
        space.fill(server)
        for i in range(100_000):  # what has room already is used up first
            status, answer = write(f"full/{i}")
            if status != 200:
                break
        assert answer.get("message") == "etcdserver: request timed out", (status, answer)
        assert server.process.poll() is None, server.log()[-2000:]
        is_told(server)
        assert value_of(server, "before/7") == "v" * 2000, "reads are served"
        space.free(server)
        eventually(lambda: get(server, "/health")[0] == 200, 5, "healthy after there is space again")
        assert write("after")[0] == 200

        server.kill()
        server.start()
        for key, value in acknowledged.items():
            assert value_of(server, key) == value, f"{key} was acknowledged and is gone"
        print(f"full while running: told, {len(acknowledged)} acknowledged writes are all there, writes went on")

        # And found at the start.
        server.kill()
        begin = time.monotonic()
        space.start_full(server)
        eventually(lambda: get(server, "/health", timeout=1), READY_PATIENCE + 3, "an answer of a start on a full disk")
        took = time.monotonic() - begin
        assert server.process.poll() is None, server.log()[-2000:]
        is_told(server)
        status, answer = server.post("/v3/kv/range", {"key": b64("after"), "serializable": True})
        assert status == 200 and "kvs" in answer, (status, answer)
        space.free(server)
        eventually(lambda: get(server, "/health")[0] == 200, 5, "healthy after there is space again")
        assert write("after the start")[0] == 200
        code = server.kill(signal.SIGTERM)
        assert code == 0, f"exit code {code}"
        print(f"full at the start: answers after {took:.1f} s and says so, ready by itself once there is space")
    shutil.rmtree(logs)
    space.remove()


def damage_found_by_a_read_stops_the_server(program):
    with Server(program) as server:
        value = os.urandom(9000)
        status, answer = server.post("/v3/kv/put", {"key": b64("k"), "value": b64(value)})
        revision = answer["header"]["revision"]
        put(server, "k", "another")
        server.kill()
        server.start()  # nothing is cached
        journal = glob.glob(os.path.join(server.folder, "data/store/*/store.db-wal"))[0]
        with open(journal, "r+b") as file:
            at = file.read().index(value[5000:5100])
            file.seek(at)
            file.write(bytes([value[5000] ^ 1]))
        status, answer = server.post("/v3/kv/range", {"key": b64("k"), "revision": revision})
        assert status != 200 and answer["code"] == 15, (status, answer)
        assert "store.db-wal" in answer["message"], answer
        code = server.process.wait(timeout=10)
        log = server.log()
        assert code == 1, f"exit code {code}:\n{log[-2000:]}"
        assert "this member stops" in log and journal in log, log[-2000:]
        assert "remove this member from the cluster and add it again" in log, log[-2000:]
        server.start()  # of what is not in the database file yet the Raft log has everything
        status, answer = server.post("/v3/kv/range", {"key": b64("k"), "revision": revision})
        assert status == 200 and answer["kvs"][0]["value"] == b64(value), (status, answer)
        print("damage found by a read: exit 1, file and advice named")


def a_limit_on_file_sizes_is_refused_by_name(program):
    server = Server(program)
    with file_size_limit(1000):
        done = subprocess.run(server.command(), capture_output=True, text=True, timeout=10)
    assert done.returncode == 1, f"exit code {done.returncode}: {done.stderr}"
    assert "File too large" in done.stderr and os.path.join(server.folder, "data") in done.stderr, done.stderr
    server.start()  # and nothing stands in the way of a later start
    server.__exit__()
    print("a start that may not write: exit 1, file and reason named")


def can_mount(command):
    probe = [*command, "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"]
    return subprocess.run(probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def way_to_mount():
    """A command before which others may mount what nobody else sees; None if that is not allowed."""
    ways = [["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]]
    return next((way for way in ways if shutil.which(way[0]) and can_mount(way)), None)


def main():
    program, kind = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    if MOUNTED in os.environ:
        return full_disk_is_told_and_waited_for(program, Tmpfs)
    damage_found_by_a_read_stops_the_server(program)
    a_limit_on_file_sizes_is_refused_by_name(program)
    way = way_to_mount() if kind != "limit" else None
    if way is None:
        print("the full disk: a limit on the size of files", flush=True)
        return full_disk_is_told_and_waited_for(program, FileSizeLimit)
    print(f"the full disk: a tmpfs ({' '.join(way)})", flush=True)
    with tempfile.TemporaryDirectory(prefix="conclave-test-") as folder:
        script = 'mount -t tmpfs -o size=48m tmpfs "$0" && exec "$@"'
        done = subprocess.run([*way, "sh", "-c", script, folder, sys.executable, __file__, program],
                              env={**os.environ, MOUNTED: folder})
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
