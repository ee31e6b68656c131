"""Ways out of a sandbox, each a function that fails where a wall is in the way. Runs inside of a tool."""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
import subprocess
import tempfile

libc = ctypes.CDLL(None, use_errno=True)

# x86_64 and aarch64.
NUMBERS = {
    "io_uring_setup": {"x86_64": 425, "aarch64": 425},
    "process_vm_readv": {"x86_64": 310, "aarch64": 270},
    "ptrace": {"x86_64": 101, "aarch64": 117},
    "shmget": {"x86_64": 29, "aarch64": 194},
    "keyctl": {"x86_64": 250, "aarch64": 219},
    "unshare": {"x86_64": 272, "aarch64": 97},
    "setns": {"x86_64": 308, "aarch64": 268},
    "mount": {"x86_64": 165, "aarch64": 40},
    "clone": {"x86_64": 56, "aarch64": 220},
    "bpf": {"x86_64": 321, "aarch64": 280},
    "perf_event_open": {"x86_64": 298, "aarch64": 241},
    "userfaultfd": {"x86_64": 323, "aarch64": 282},
    "memfd_create": {"x86_64": 319, "aarch64": 279},
    "pidfd_open": {"x86_64": 434, "aarch64": 434},
    "pidfd_send_signal": {"x86_64": 424, "aarch64": 424},
    "open_by_handle_at": {"x86_64": 304, "aarch64": 265},
}


def system_call(name, *arguments):
    done = libc.syscall(ctypes.c_long(NUMBERS[name][os.uname().machine]), *[ctypes.c_long(one) for one in arguments])
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def text_of(path):
    with open(path, "rb") as file:
        file.read(1)


def write_to(path):
    with open(path, "ab") as file:
        file.write(b"#")


def listed(path):
    os.listdir(path)


def must_differ(before, after):
    if before == after:
        raise PermissionError("no effect")


def permitted(path):
    before = os.stat(path).st_mode
    os.chmod(path, 0o640)
    must_differ(before, os.stat(path).st_mode)
    os.chmod(path, before)


def permitted_by_handle(path):
    before = os.stat(path).st_mode
    with open(path) as file:
        os.fchmod(file.fileno(), 0o640)
    must_differ(before, os.stat(path).st_mode)
    os.chmod(path, before)


def touched(path):
    before = os.stat(path).st_mtime_ns
    os.utime(path, (1, 1))
    must_differ(before, os.stat(path).st_mtime_ns)
    os.utime(path)


def flagged(path):
    """The flag that backups do not want it."""
    with open(path) as file:
        flags = bytearray(8)
        fcntl.ioctl(file, 0x80086601, flags)
        fcntl.ioctl(file, 0x40086602, bytes([flags[0] ^ 0x40]) + bytes(flags[1:]))


def extended(path):
    os.getxattr(path, "user.text")


def watched(path):
    if libc.inotify_add_watch(libc.inotify_init(), path.encode(), 0xfff) < 0:
        raise OSError(ctypes.get_errno(), "not watched")


def datagram(path):
    """A pair of which one end sends elsewhere."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", path)


def priority(pid):
    os.setpriority(os.PRIO_PROCESS, pid, 19)


def affinity(pid):
    os.sched_setaffinity(pid, os.sched_getaffinity(pid))


def scheduling(pid):
    os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))


def linked(path):
    link = os.path.join(tempfile.mkdtemp(), "link")
    os.symlink(path, link)
    text_of(link)


def hard_linked(path):
    link = os.path.join(tempfile.mkdtemp(), "link")
    os.link(path, link)
    text_of(link)


def by_memory_file(path):
    """A program that is no file reads it."""
    file = system_call("memfd_create", ctypes.addressof(ctypes.create_string_buffer(b"x")), 0)
    with open("/bin/cat", "rb") as cat:
        os.write(file, cat.read())
    subprocess.run([f"/proc/self/fd/{file}", path], pass_fds=[file], check=True, capture_output=True)


def connected(kind, family=socket.AF_INET, address=("127.0.0.1", 9)):
    with socket.socket(family, kind) as made:
        if kind == socket.SOCK_STREAM:
            made.settimeout(5)
            try:
                made.connect(tuple(address))
            except ConnectionRefusedError:
                pass
        else:
            made.sendto(b"x", tuple(address))


def unix(path, abstract=False):
    with socket.socket(socket.AF_UNIX) as made:
        made.connect("\0" + path if abstract else path)


def raw(*made):
    socket.socket(*made).close()


def signalled_above():
    """This runs in a child of the tool, whose parent is hostler."""
    grandparent = int(open(f"/proc/{os.getppid()}/stat").read().rsplit(")", 1)[1].split()[1])
    if grandparent == 0:
        raise ProcessLookupError(3, "it is not seen, and 0 would be one's own group")
    os.kill(grandparent, 0)


def signalled(pid):
    os.kill(pid, 0)


def signalled_by_handle(pid):
    system_call("pidfd_send_signal", system_call("pidfd_open", pid, 0), 0, 0, 0)


def memory_of(pid):
    """Two structures that say what to read: nothing, at no place. Refused before that is looked at."""
    vector = ctypes.create_string_buffer(struct.pack("PL", 0, 0))
    system_call("process_vm_readv", pid, ctypes.addressof(vector), 1, ctypes.addressof(vector), 1, 0)


def limited(pid):
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def namespace(flags):
    child = os.fork()
    if child == 0:
        try:
            system_call("unshare", flags)
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise PermissionError("no namespace")


def cloned(flags):
    child = system_call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def second_number(name):
    """The same call by its number for 32-bit pointers."""
    done = libc.syscall(ctypes.c_long(0x40000000 | 41), ctypes.c_long(2), ctypes.c_long(1), ctypes.c_long(0))
    if done < 0:
        raise OSError(ctypes.get_errno(), "no socket")


def shared_memory():
    with open("/dev/shm/hostler-escapes", "w") as file:
        file.write("x")
    os.unlink("/dev/shm/hostler-escapes")


def many_files():
    held = [open("/dev/null") for _ in range(300)]
    [file.close() for file in held]


def large_file():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with tempfile.TemporaryFile() as file:
        file.write(bytes(3_000_000))
        file.flush()


def handled():
    """No handle, at no place. Refused before that is looked at, as in the calls below."""
    system_call("open_by_handle_at", -100, 0, 0)


def escaped(ways):
    """The error of each way; none for one that leads out. Each runs in a process of its own."""
    found = {}
    for name, (function, arguments) in ways.items():
        own, its = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(own)
            try:
                globals()[function](*arguments)
                os.write(its, b"out")
            except BaseException as error:
                os.write(its, repr(error).encode()[:500])
            os._exit(0)
        os.close(its)
        with os.fdopen(own) as answer:
            found[name] = answer.read()
        os.waitpid(child, 0)
    return {name: None if said == "out" else said or "died" for name, said in found.items()}
