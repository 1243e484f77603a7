#!/usr/bin/env python3
"""What doing nothing costs: memory and processor time of a server with many idle watches and many leases.

    idle.py 'build/bin/conclave {flags}' [WATCHES] [LEASES] [SECONDS]

`{flags}` as in compare.py. Opens WATCHES streams (default 10,000) on keys of their own, grants LEASES leases (default 50,000)
of an hour with a key each, and then looks at the process for SECONDS (default 20).
"""
import base64, json, os, resource, shlex, shutil, socket, subprocess, sys, tempfile, time, http.client


def b64(text):
    return base64.b64encode(text.encode()).decode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def usage(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    rss = next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("VmRSS")) / 1024
    return cpu, rss


def at_rest(pid, label, seconds, before=None):
    cpu, _ = usage(pid)
    time.sleep(seconds)
    cpu_after, rss = usage(pid)
    delta = f" ({rss - before:+.1f} MiB)" if before is not None else ""
    print(f"{label}: rss {rss:.1f} MiB{delta}, processor at rest {100 * (cpu_after - cpu) / seconds:.2f} % of a core", flush=True)
    return rss


def main():
    command = sys.argv[1]
    watches, leases, seconds = (int(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((2, 10_000), (3, 50_000), (4, 20)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * watches + 1024), hard))
    folder, port, peer_port = tempfile.mkdtemp(prefix="idle-"), free_port(), free_port()
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    flags = (f"--name m0 --data-dir {folder}/data --listen-client-urls {client} --advertise-client-urls {client} "
             f"--listen-peer-urls {peer} --initial-advertise-peer-urls {peer} --initial-cluster m0={peer}")
    log = open(f"{folder}/log", "wb")
    server = subprocess.Popen(shlex.split(command.replace("{flags}", flags)), stdout=log, stderr=log)
    try:
        def post(connection, path, body):
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            answer = json.loads(response.read())
            assert response.status == 200, answer
            return answer

        end = time.time() + 20
        while True:
            try:
                post(http.client.HTTPConnection("127.0.0.1", port, timeout=2), "/v3/kv/range", {"key": b64("a")})
                break
            except (OSError, AssertionError, ValueError, http.client.HTTPException):
                assert time.time() < end, "the server did not become ready"
                time.sleep(0.02)
        empty = at_rest(server.pid, "empty", 3)
        streams, begin = [], time.time()
        for i in range(watches):
            body = json.dumps({"create_request": {"key": b64(f"watched/{i}")}}).encode()
            s = socket.create_connection(("127.0.0.1", port))
            s.sendall(b"POST /v3/watch HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            streams.append(s)
        for s in streams:
            data = b""
            while b'"created"' not in data:
                piece = s.recv(4096)
                assert piece, "a watch stream ended"
                data += piece
        print(f"{watches} watch streams opened in {time.time() - begin:.1f} s")
        with_watches = at_rest(server.pid, f"{watches} idle watches", seconds, empty)
        connection, begin = http.client.HTTPConnection("127.0.0.1", port, timeout=20), time.time()
        for i in range(leases):
            lease = post(connection, "/v3/lease/grant", {"TTL": 3600})["ID"]
            post(connection, "/v3/kv/put", {"key": b64(f"leased/{i}"), "value": b64("v"), "lease": lease})
        print(f"{leases} leases with a key each granted in {time.time() - begin:.1f} s")
        at_rest(server.pid, f"and {leases} leases", seconds, with_watches)
        # Still alive: one of the watches hears its event.
        post(connection, "/v3/kv/put", {"key": b64("watched/7"), "value": b64("v")})
        streams[7].settimeout(5)
        assert b"mod_revision" in streams[7].recv(4096)
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
