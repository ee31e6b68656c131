"""A PostgreSQL server of its own in a temporary folder: Debian's, started and ended by the test."""

import contextlib
import glob
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path


def programs():
    """The folder of the server's programs; None if it is not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
    found = found or [path for path in [shutil.which("initdb")] if path]
    return Path(os.path.realpath(found[-1])).parent if found else None


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Server:
    """A server that listens in its folder, and with TLS on a port of this machine. It refuses to be root: then it is somebody else."""

    def __init__(self, has_tls=False):
        self.folder = Path(tempfile.mkdtemp(prefix="hostler-pg-", dir="/tmp"))
        self.programs = programs()
        self.user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        if self.user:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.process = None
        self.port = free_port() if has_tls else 5432
        self.tls = self.certified() if has_tls else []
        done = self.run("initdb", "-D", self.data, "-U", "hostler", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-locale")
        if done.returncode:
            raise RuntimeError(done.stdout)
        self.start()

    def as_user(self):
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}

    def run(self, program, *words):
        return subprocess.run([self.programs / program, *map(str, words)], cwd="/tmp", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, **self.as_user())

    @property
    def url(self):
        return f"postgres://hostler@/postgres?host={self.folder}"

    def certified(self):
        """The options for a certificate of an authority that nobody trusts who is not told of `ca.pem`."""
        made = ["-days", "2", "-nodes", "-newkey", "rsa:2048", "-x509"]
        steps = [["-subj", "/CN=an authority", "-keyout", "ca.key", "-out", "ca.pem"],
                 ["-subj", "/CN=a server", "-keyout", "key", "-out", "certificate", "-CA", "ca.pem", "-CAkey", "ca.key",
                  "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]]
        for step in steps:
            subprocess.run(["openssl", "req", *made, *step], cwd=self.folder, check=True, capture_output=True, **self.as_user())
        return ["-c", "ssl=on", "-c", f"ssl_cert_file={self.folder}/certificate", "-c", f"ssl_key_file={self.folder}/key"]

    def start(self):
        words = ["postgres", "-D", self.data, "-k", self.folder, "-p", self.port, "-c", "fsync=off", *self.tls,
                 "-c", "listen_addresses=" + ("localhost" if self.tls else "")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([self.programs / words[0], *map(str, words[1:])], cwd="/tmp", stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, **self.as_user())
        until = time.monotonic() + 60
        while self.run("pg_isready", "-h", self.folder, "-p", self.port, "-q").returncode:
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.05)

    def stop(self):
        """Ends it at once, and every connection to it."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def signal(self, which):
        """Sends a signal to it and all of its processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in [self.process.pid, *map(int, children)]:
            os.kill(pid, which)

    def kill(self):
        """Kills it, and all of its processes."""
        self.process.kill()
        self.process.wait(60)
        # A new one waits until the last of them has seen it.
        until = time.monotonic() + 60
        while self.run("pg_ctl", "-D", self.data, "status").returncode == 0 and time.monotonic() < until:
            time.sleep(0.05)

    def sql(self, text):
        """The rows of a query, a list of texts each."""
        done = self.run("psql", "-h", self.folder, "-p", self.port, "-U", "hostler", "-d", "postgres", "-AtqX", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", "-c", text)
        if done.returncode:
            raise RuntimeError(done.stdout)
        return [line.split("\x1f") for line in done.stdout.splitlines()]

    def remove(self):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Proxy:
    """Stands before a server. Once it is armed, it loses the answer to the next commit behind a query with this text, or to what else
    is named."""

    def __init__(self, server, text, at="COMMIT"):
        self.text, self.at, self.server = text.encode(), at.encode(), server
        self.folder = Path(tempfile.mkdtemp(prefix="hostler-proxy-", dir="/tmp"))
        self.armed, self.lost = threading.Event(), threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder / ".s.PGSQL.5432"))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    @property
    def url(self):
        return f"postgres://hostler@/postgres?host={self.folder}"

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        behind = socket.socket(socket.AF_UNIX)
        behind.connect(str(self.server.folder / ".s.PGSQL.5432"))
        is_next = False
        # Either side may be gone at any time.
        with client, behind, contextlib.suppress(OSError):
            while True:
                for ready in select.select([client, behind], [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    (behind if ready is client else client).sendall(data)
                    is_next = is_next or (ready is client and self.text in data and self.armed.is_set())
                    if ready is client and is_next and self.at in data and not self.lost.is_set():
                        behind.recv(1 << 16)
                        self.lost.set()
                        return

    def remove(self):
        self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)
