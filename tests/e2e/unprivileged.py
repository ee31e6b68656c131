"""hostler as a user without privileges runs it: root may read everything, so walls can be tested as somebody else only."""

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

from harness import HOSTLER

# Nobody. The number is the same everywhere, and no process of the system's own runs under it.
USER = 65534


class Account:
    """A user with hostler, uv and a home in a folder that it may read. The tests' own user, if that is not root."""

    def __init__(self, test, user=USER, **variables):
        self.user = user if os.geteuid() == 0 else os.geteuid()
        self.folder = Path(tempfile.mkdtemp(prefix="hostler-user-"))
        test.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)
        self.programs, self.home, self.tools = (self.folder / name for name in ("bin", "home", "tools"))
        for folder in (self.programs, self.home, self.tools):
            folder.mkdir()
        self.hostler = self.bring(HOSTLER)
        self.bring(shutil.which("uv"))
        interpreter = next(path for path in interpreters() if readable(path))
        (self.programs / "python3").symlink_to(interpreter)
        self.env = {"HOME": str(self.home), "PATH": f"{self.programs}:/usr/bin:/bin", "UV_PYTHON": str(interpreter),
                    "LANG": "C.UTF-8", **variables}
        self.own(self.home)

    def bring(self, program):
        """A copy that the user may run."""
        copy = self.programs / Path(program).name
        shutil.copyfile(program, copy)
        copy.chmod(0o755)
        return str(copy)

    def own(self, path):
        if os.geteuid() == 0:
            os.chown(path, self.user, self.user)
        return path

    def tool(self, name, text, mode=0o644):
        path = self.tools / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    @property
    def become(self):
        """What comes before a command of this user."""
        if os.geteuid() != 0:
            return ()
        return ("setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", "--")


def interpreters():
    names = [f"python3.{minor}" for minor in range(20, 8, -1)] + ["python3"]
    found = [Path(folder) / name for folder in ("/usr/bin", "/usr/local/bin") for name in names]
    return [path.resolve() for path in found if path.exists()] + [Path(sys.executable).resolve()]


def readable(path):
    """Whether everybody may run it."""
    return os.geteuid() != 0 or all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


__all__ = ["Account", "USER"]
