#!/usr/bin/env python3
"""The image and docker-compose.yml, as a user runs them: one member by one command, stopped in time; a cluster of three
whose leader's container is killed, one of whose processes dies, one of whose containers comes back at another address,
whose volumes survive `down`, and whose members start in any order. Needs a Docker engine on this machine.

    compose_test.py [--image NAME]     an image that is there already; without it the image is built first
"""
import argparse, datetime, http.client, json, os, shutil, subprocess, time, uuid

from cluster import fixed_port
from server import b64, unb64

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = ("conclave1", "conclave2", "conclave3")
KEYS = 200
READY_SECONDS = 60
STOP_SECONDS = 1.5


def run(*command, check=True, timeout=600, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, cwd=ROOT)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def call(port, path, body=None, timeout=8):
    """(status, answer), or (0, why) when nobody answers. GET without a body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return 0, str(error)
    finally:
        connection.close()


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
    return call(port, "/v3/kv/put", {"key": b64(key), "value": b64(value)})


def get(port, key):
    status, answer = call(port, "/v3/kv/range", {"key": b64(key)})
    return unb64(answer["kvs"][0]["value"]) if status == 200 and "kvs" in answer else None


def healthy(port):
    return call(port, "/health") == (200, {"health": "true", "reason": ""})


def inspect(container, field):
    return run("docker", "inspect", "--format", "{{" + field + "}}", container)


def address(container):
    return inspect(container, "range .NetworkSettings.Networks}}{{.IPAddress}}{{end")


def says_well(container, *arguments):
    """Whether the image's own health check is content."""
    command = ["docker", "exec", container, "conclave-healthcheck", *arguments]
    return subprocess.run(command, capture_output=True, timeout=30).returncode == 0


def terminate(container):
    """SIGTERM as an orchestrator sends it: exit code 0, and in time. Gives how long it took."""
    begin = time.time()
    run("docker", "kill", "--signal", "TERM", container)
    code = run("docker", "wait", container)
    ended = datetime.datetime.fromisoformat(inspect(container, ".State.FinishedAt")[:26] + "+00:00").timestamp()
    assert code == "0", f"exit code {code}\n{run('docker', 'logs', '--tail', '20', container)}"
    assert ended - begin < STOP_SECONDS, f"ended {ended - begin:.1f} s after SIGTERM"
    return ended - begin


def one_member_by_one_command(image):
    port, name = fixed_port(), "conclave-test-" + uuid.uuid4().hex[:8]
    begin = time.monotonic()
    run("docker", "run", "--detach", "--name", name, "--publish", f"127.0.0.1:{port}:2379", image)
    try:
        until(lambda: healthy(port))
        ready = time.monotonic() - begin
        assert put(port, "a", "1")[0] == 200 and get(port, "a") == "1"
        _, members = call(port, "/v3/cluster/member/list", {})
        assert members["members"][0]["clientURLs"] == ["http://localhost:2379"], members
        assert run("docker", "exec", name, "id", "-u") != "0", "runs as root"
        assert says_well(name) and says_well(name, "2379", "/readyz")
        assert not says_well(name, "2379", "/nothing") and not says_well(name, "1"), "always well"

        def container_is_healthy():
            return inspect(name, ".State.Health.Status") == "healthy"

        until(container_is_healthy, 40)
        whole = time.monotonic() - begin
        print(f"one member: ready {ready:.1f} s after `docker run`, healthy to Docker after {whole:.1f} s, not root, "
              f"exit code 0 in {terminate(name):.2f} s after SIGTERM")
        run("docker", "start", name)
        until(lambda: healthy(port))
        assert get(port, "a") == "1", "not kept over a stop"
    finally:
        run("docker", "rm", "--force", "--volumes", name, check=False)


class Compose:
    def __init__(self, image):
        self.command = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
        self.project = "conclavetest" + uuid.uuid4().hex[:8]
        self.ports = {name: fixed_port() for name in NAMES}
        self.environment = dict(os.environ, CONCLAVE_IMAGE=image)
        for number, name in enumerate(NAMES, 1):
            self.environment[f"CONCLAVE_PORT_{number}"] = str(self.ports[name])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print(self("logs", "--no-color", "--tail", "60", check=False))
        self("down", "--volumes", "--timeout", "5", check=False)

    def __call__(self, *arguments, check=True):
        return run(*self.command, "--project-name", self.project, *arguments, check=check, env=self.environment)

    def container(self, name):
        return self("ps", "--quiet", name)

    def up(self, name):
        self("up", "--detach", "--no-build", name)

    def address(self, name):
        return address(self.container(name))

    def wait_healthy(self, names=NAMES):
        return until(lambda: all(healthy(self.ports[name]) for name in names))[1]

    def status(self, name):
        return call(self.ports[name], "/v3/maintenance/status", {}, timeout=2)[1]

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
            answers = [call(self.ports[name], "/v3/maintenance/hashkv", {"revision": revision}) for name in NAMES]
            return all(status == 200 for status, _ in answers) and [answer for _, answer in answers]

        (found, _) = until(hashes)
        assert len({(a["hash"], a["compact_revision"], a["hash_revision"]) for a in found}) == 1, found
        return found[0]["hash"]


def check_keys(cluster, expected):
    for name, port in cluster.ports.items():
        for key, value in expected.items():
            assert get(port, key) == value, f"{name}: {key} is {get(port, key)}, not {value}"


def write(cluster, expected, prefix, names):
    for number in range(KEYS):
        key = f"{prefix}{number}"
        status, answer = put(cluster.ports[names[number % len(names)]], key, str(number))
        assert status == 200, answer
        expected[key] = str(number)


def kill_leader(cluster, expected):
    leader, _ = until(cluster.leader)
    rest = [name for name in NAMES if name != leader]
    run("docker", "kill", cluster.container(leader))
    _, took = until(lambda: put(cluster.ports[rest[0]], "after", "1")[0] == 200)
    expected["after"] = "1"
    assert get(cluster.ports[rest[1]], "after") == "1", "acknowledged by one, not read at the other"
    print(f"the leader's container killed: written through another after {took:.1f} s")
    write(cluster, expected, "without", rest)
    begin = time.monotonic()
    cluster("start", leader)
    cluster.wait_healthy()
    equal = cluster.check_equal()
    print(f"started again: equal (hash {equal}) after {time.monotonic() - begin:.1f} s")


def crash_process(cluster, image):
    """Docker starts a member again whose process died by itself, not by `docker kill`."""
    container = cluster.container(NAMES[0])
    process = inspect(container, ".State.Pid")
    begin = time.monotonic()
    run("docker", "run", "--rm", "--user", "0", "--pid", "host", "--entrypoint", "bash", image,
        "-c", f"kill -9 {process}")
    until(lambda: inspect(container, ".RestartCount") == "1" and inspect(container, ".State.Running") == "true")
    cluster.wait_healthy()
    print(f"a process killed: its container restarted, all healthy after {time.monotonic() - begin:.1f} s")


def move(cluster, image, name):
    """The container is made anew at another address, while the others run: they ask for its name again."""
    before = cluster.address(name)
    cluster("rm", "--force", "--stop", name)
    squatters = []  # they take free addresses until its former one is taken
    try:
        while not squatters or address(squatters[-1]) != before:
            squatters.append(run("docker", "run", "--detach", "--network", cluster.project + "_default", "--entrypoint",
                                 "sleep", image, "infinity"))
        begin = time.monotonic()
        cluster.up(name)
        cluster.wait_healthy()
        cluster.check_equal()
        print(f"{name} moved from {before} to {cluster.address(name)}: all healthy and equal after "
              f"{time.monotonic() - begin:.1f} s")
    finally:
        run("docker", "rm", "--force", "--volumes", *squatters)


def down_and_up(cluster, expected):
    equal = cluster.check_equal()
    begin = time.monotonic()
    cluster("down")
    down = time.monotonic() - begin
    begin = time.monotonic()
    for name in reversed(NAMES):
        cluster.up(name)
    cluster.wait_healthy()
    check_keys(cluster, expected)
    assert cluster.check_equal() == equal, "down and up changed the data"
    print(f"down in {down:.1f} s, up and healthy in {time.monotonic() - begin:.1f} s: the data is kept")


def first_start_in_another_order(cluster):
    """The third alone waits for others, whose names do not even resolve; with the second there is a majority."""
    cluster("down", "--volumes")
    cluster.up(NAMES[2])
    until(lambda: cluster.status(NAMES[2]))
    assert not healthy(cluster.ports[NAMES[2]]), "one of three is a majority"
    assert not says_well(cluster.container(NAMES[2])), "the health check does not tell that there is no leader"
    for names in (NAMES[1:], NAMES):
        cluster.up(names[0])
        took = cluster.wait_healthy(names)
        print(f"first start in another order: {', '.join(reversed(names))} healthy after {took:.1f} s")
    assert get(cluster.ports[NAMES[0]], "after") is None, "`down --volumes` keeps the data"


def three_members(image):
    expected = {}
    with Compose(image) as cluster:
        begin = time.monotonic()
        cluster("up", "--detach", "--no-build")
        cluster.wait_healthy()
        print(f"three members: healthy {time.monotonic() - begin:.1f} s after `up`")
        write(cluster, expected, "before", NAMES)
        check_keys(cluster, expected)
        kill_leader(cluster, expected)
        check_keys(cluster, expected)
        crash_process(cluster, image)
        for name in NAMES:
            move(cluster, image, name)
        down_and_up(cluster, expected)
        first_start_in_another_order(cluster)


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
