"""Starts the real server for a test: free ports, a temporary folder, requests over the JSON gateway."""
import base64, http.client, json, os, shutil, signal, socket, subprocess, tempfile, time


def b64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def unb64(text):
    return base64.b64decode(text).decode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """One member. `flags` are added to the command line."""

    def __init__(self, program, flags=(), folder=None):
        self.program, self.flags, self.environment = program, list(flags), {}
        self.folder = folder or tempfile.mkdtemp(prefix="conclave-test-")
        self.owns_folder = folder is None
        self.port, self.peer_port, self.process = free_port(), free_port(), None
        self.log_path = os.path.join(self.folder, "server.log")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        if self.owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def command(self):
        client, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.peer_port}"
        return [self.program, "--name", "m0", "--data-dir", os.path.join(self.folder, "data"),
                "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"m0={peer}", *self.flags]

    def start(self, wait=True):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, start_new_session=True,
                                            env={**os.environ, **self.environment})
        if wait:
            self.wait_ready()

    def wait_ready(self, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"server exited with {self.process.returncode}:\n{self.log()[-2000:]}")
            try:
                if self.post("/v3/kv/range", {"key": b64("ready")}, timeout=1)[0] == 200:
                    return
            except (OSError, ValueError, http.client.HTTPException):
                pass
            time.sleep(0.005)
        raise AssertionError(f"server not ready in {seconds} s:\n{self.log()[-2000:]}")

    def kill(self, sig=signal.SIGKILL):
        """Sends the signal, waits for the end, gives the exit code."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(sig)
            self.process.wait()
        return self.process.returncode if self.process else None

    def fate(self):
        """For messages of failed assertions: what became of it, if it is gone."""
        code = self.process.poll()
        return "" if code is None else f"; the server ended with {code}:\n{self.log()[-2000:]}"

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def connect(self, timeout=5):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def post(self, path, body, timeout=5, connection=None):
        own = connection is None
        connection = connection or self.connect(timeout)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"{}")
        finally:
            if own:
                connection.close()
