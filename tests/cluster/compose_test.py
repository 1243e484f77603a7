#!/usr/bin/env python3
"""The image and docker-compose.yml, as a user runs them: one member by one command; a cluster of three whose leader's
container is killed, whose volumes survive `down`, and whose members start in any order. Needs a Docker engine.

    compose_test.py [--image NAME]     an image that is there already; without it the image is built first
"""
import argparse, http.client, json, os, shutil, subprocess, time, uuid

from server import b64, free_port, unb64

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = ("conclave1", "conclave2", "conclave3")
KEYS = 200
READY_SECONDS = 60


def run(*command, check=True, timeout=600, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, cwd=ROOT)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def post(port, path, body, timeout=8):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")
    finally:
        connection.close()


def tried(port, path, body, timeout=8):
    """(status, answer), or (0, why) when nobody answers."""
    try:
        return post(port, path, body, timeout)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return 0, str(error)


def until(what, seconds=READY_SECONDS):
    """Asks again until it is so; gives what it was and how long that took."""
    begin = time.monotonic()
    while True:
        found = what()
        if found:
            return found, time.monotonic() - begin
        assert time.monotonic() < begin + seconds, f"not within {seconds} s: {what.__name__}"
        time.sleep(0.02)


def put(port, key, value):
    return tried(port, "/v3/kv/put", {"key": b64(key), "value": b64(value)})


def get(port, key):
    status, answer = tried(port, "/v3/kv/range", {"key": b64(key)})
    return unb64(answer["kvs"][0]["value"]) if status == 200 and "kvs" in answer else None


def healthy(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=8)
    try:
        connection.request("GET", "/health")
        return json.loads(connection.getresponse().read())["health"] == "true"
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def one_member_by_one_command(image):
    port, name = free_port(), "conclave-test-" + uuid.uuid4().hex[:8]
    begin = time.monotonic()
    run("docker", "run", "--detach", "--rm", "--name", name, "--publish", f"127.0.0.1:{port}:2379", image)
    try:
        until(lambda: healthy(port))
        ready = time.monotonic() - begin
        assert put(port, "a", "1")[0] == 200 and get(port, "a") == "1"
        _, members = post(port, "/v3/cluster/member/list", {})
        assert members["members"][0]["clientURLs"] == ["http://localhost:2379"], members
        assert run("docker", "exec", name, "id", "-u") != "0", "runs as root"
        run("docker", "exec", name, "conclave-healthcheck")
        run("docker", "exec", name, "conclave-healthcheck", "2379", "/readyz")
        assert run("docker", "exec", name, "conclave-healthcheck", "2379", "/nothing", check=False) != "", "always well"

        def container_is_healthy():
            return run("docker", "inspect", "--format", "{{.State.Health.Status}}", name) == "healthy"

        until(container_is_healthy, 40)
        begin = time.monotonic()
        run("docker", "stop", name)
        assert time.monotonic() - begin < 5, "SIGTERM is not heard"
        print(f"one member: ready {ready:.1f} s after `docker run`, not root, healthy, stopped in "
              f"{time.monotonic() - begin:.1f} s")
    finally:
        run("docker", "rm", "--force", "--volumes", name, check=False)


class Compose:
    def __init__(self, image):
        self.command = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
        self.project = "conclavetest" + uuid.uuid4().hex[:8]
        self.ports = {name: free_port() for name in NAMES}
        self.environment = dict(os.environ, CONCLAVE_IMAGE=image)
        for number, name in enumerate(NAMES, 1):
            self.environment[f"CONCLAVE_PORT_{number}"] = str(self.ports[name])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print(self("logs", "--tail", "60", check=False))
        self("down", "--volumes", "--timeout", "5", check=False)

    def __call__(self, *arguments, check=True):
        return run(*self.command, "--project-name", self.project, *arguments, check=check, env=self.environment)

    def container(self, name):
        return self("ps", "--quiet", name)

    def wait_healthy(self, names=NAMES):
        return until(lambda: all(healthy(self.ports[name]) for name in names))[1]

    def status(self, name):
        return tried(self.ports[name], "/v3/maintenance/status", {}, timeout=2)[1]

    def leader(self, among=NAMES):
        for name in among:
            status = self.status(name)
            if isinstance(status, dict) and status.get("leader") == status.get("header", {}).get("member_id", ""):
                return name
        return None

    def check_equal(self):
        """Equal hashes at one revision, once everybody has that revision."""
        revision = max(int(self.status(name)["header"]["revision"]) for name in NAMES)

        def hashes():
            answers = [tried(self.ports[name], "/v3/maintenance/hashkv", {"revision": revision}) for name in NAMES]
            return [answer for status, answer in answers if status == 200] if all(s == 200 for s, _ in answers) else None

        (found, _) = until(hashes)
        assert len({(a["hash"], a["compact_revision"], a["hash_revision"]) for a in found}) == 1, found
        return found[0]["hash"]


def check_keys(cluster, expected):
    for name, port in cluster.ports.items():
        for key, value in expected.items():
            assert get(port, key) == value, f"{name}: {key} is {get(port, key)}, not {value}"


def three_members(image):
    expected = {}
    with Compose(image) as cluster:
        begin = time.monotonic()
        cluster("up", "--detach", "--no-build")
        cluster.wait_healthy()
        print(f"three members: healthy {time.monotonic() - begin:.1f} s after `up`")
        for number in range(KEYS):
            key = f"before{number}"
            status, answer = put(cluster.ports[NAMES[number % 3]], key, str(number))
            assert status == 200, answer
            expected[key] = str(number)
        check_keys(cluster, expected)

        leader, _ = until(cluster.leader)
        rest = [name for name in NAMES if name != leader]
        run("docker", "kill", cluster.container(leader))
        _, took = until(lambda: put(cluster.ports[rest[0]], "after", "1")[0] == 200)
        expected["after"] = "1"
        assert get(cluster.ports[rest[1]], "after") == "1", "acknowledged by one, not read at the other"
        print(f"the leader's container killed: written through another after {took:.1f} s")
        for number in range(KEYS):
            status, answer = put(cluster.ports[rest[number % 2]], f"without{number}", "x")
            assert status == 200, answer
            expected[f"without{number}"] = "x"

        begin = time.monotonic()
        cluster("start", leader)
        cluster.wait_healthy()
        equal = cluster.check_equal()
        print(f"started again: equal (hash {equal}) after {time.monotonic() - begin:.1f} s")
        check_keys(cluster, expected)

        begin = time.monotonic()
        cluster("down", "--timeout", "5")
        down = time.monotonic() - begin
        begin = time.monotonic()
        for name in reversed(NAMES):  # another order, one at a time
            cluster("up", "--detach", "--no-build", name)
        cluster.wait_healthy()
        check_keys(cluster, expected)
        assert cluster.check_equal() == equal, "down and up changed the data"
        print(f"down in {down:.1f} s, up and healthy in {time.monotonic() - begin:.1f} s: the data is kept")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--image")
    image = parser.parse_args().image
    if image is None:
        image = "conclave"
        begin = time.monotonic()
        run("docker", "build", "--network", "host", "--tag", image, ROOT, timeout=3600)
        print(f"image built in {time.monotonic() - begin:.0f} s")
    size = int(run("docker", "image", "inspect", "--format", "{{.Size}}", image))
    print(f"image: {size / 1e6:.0f} MB")
    one_member_by_one_command(image)
    three_members(image)


if __name__ == "__main__":
    main()
