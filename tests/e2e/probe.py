"""Which ways lead from this process into another one of the same user. Runs in tools, as a program and while uv builds."""

import ctypes
import errno
import os
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
SEIZE = 0x4206
PIDFD_OPEN, PIDFD_GETFD = 434, 438


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def opened(name):
    def way(pid):
        with open(f"/proc/{pid}/{name}", "rb") as file:
            if name != "mem":
                file.read()
    return way


def checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def trace(pid):
    """By a process of its own, whose end lets go of the other one."""
    script = f"import ctypes, sys; sys.exit(0 if ctypes.CDLL(None).ptrace({SEIZE}, {pid}, None, None) == 0 else 1)"
    if subprocess.run([sys.executable, "-c", script]).returncode:
        raise PermissionError


def copy(pid):
    """Address 0 is never there: that it is missed there means that it was looked for."""
    own, far = Vector(ctypes.addressof(ctypes.create_string_buffer(8)), 8), Vector(None, 8)
    try:
        checked(LIBC.process_vm_readv(ctypes.c_int(pid), ctypes.byref(own), ctypes.c_ulong(1), ctypes.byref(far), ctypes.c_ulong(1), ctypes.c_ulong(0)))
    except OSError as error:
        if error.errno != errno.EFAULT:
            raise


def take(pid):
    handle = checked(LIBC.syscall(ctypes.c_long(PIDFD_OPEN), ctypes.c_long(pid), ctypes.c_long(0)))
    try:
        os.close(checked(LIBC.syscall(ctypes.c_long(PIDFD_GETFD), ctypes.c_long(handle), ctypes.c_long(2), ctypes.c_long(0))))
    finally:
        os.close(handle)


WAYS = {
    "environ": opened("environ"), "mem": opened("mem"), "maps": opened("maps"),
    "fd": lambda pid: os.readlink(f"/proc/{pid}/fd/0"), "exe": lambda pid: os.readlink(f"/proc/{pid}/exe"),
    "cwd": lambda pid: os.listdir(f"/proc/{pid}/cwd/"), "trace": trace, "copy": copy, "take": take,
}


def reached(pid):
    """The ways that lead into a process."""
    found = []
    for name, way in WAYS.items():
        try:
            way(pid)
        except PermissionError:
            continue
        found.append(name)
    return found


if __name__ == "__main__":
    print(*(f"{pid}:{','.join(reached(int(pid)))}" for pid in sys.argv[1:]))
