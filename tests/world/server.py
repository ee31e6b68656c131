"""A PostgreSQL server of its own in a temporary folder: Debian's, started and ended by the test."""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path


def programs():
    """The folder of the server's programs; None if it is not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
    found = found or [path for path in [shutil.which("initdb")] if path]
    return Path(os.path.realpath(found[-1])).parent if found else None


class Server:
    """A server that listens in its folder alone. It refuses to be root: then it is somebody else."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hostler-pg-", dir="/tmp"))
        self.programs = programs()
        self.user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        if self.user:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.process = None
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

    def start(self):
        words = ["postgres", "-D", self.data, "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([self.programs / words[0], *map(str, words[1:])], cwd="/tmp", stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, **self.as_user())
        until = time.monotonic() + 60
        while self.run("pg_isready", "-h", self.folder, "-q").returncode:
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
        done = self.run("psql", "-h", self.folder, "-U", "hostler", "-d", "postgres", "-AtqX", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", "-c", text)
        if done.returncode:
            raise RuntimeError(done.stdout)
        return [line.split("\x1f") for line in done.stdout.splitlines()]

    def remove(self):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
