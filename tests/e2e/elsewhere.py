"""Stands in for a container runner. `elsewhere.py SOCKET` serves; `run --socket SOCKET … -- COMMAND` has it start the command with
its own standard streams, passes signals on and ends with its status, as `docker run` does. What is started is not below who asked."""

import array
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading


def serve(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=start, args=(client,), daemon=True).start()


def start(client):
    data, (ancillary,), *_ = client.recvmsg(1 << 20, 1 << 10)
    streams = array.array("i", ancillary[2])
    asked = json.loads(data)
    # Nothing but what was named, as in a container.
    process = subprocess.Popen(asked["command"], stdin=streams[0], stdout=streams[1], stderr=streams[2], env=asked["env"],
                               cwd="/", start_new_session=True)
    for stream in streams:
        os.close(stream)
    threading.Thread(target=pass_on, args=(client, process), daemon=True).start()
    status = process.wait()
    with contextlib.suppress(OSError):  # who asked is dead
        client.sendall(b"%d\n" % (128 - status if status < 0 else status))


def pass_on(client, process):
    while data := client.recv(1):
        os.killpg(process.pid, data[0])


def ask(path, words, variables):
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    asked = {"command": words, "env": {name: os.environ[name] for name in variables}}
    client.sendmsg([json.dumps(asked).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: client.sendall(bytes([number])))
    with client.makefile() as answers:
        os._exit(int(answers.readline() or 1))


if __name__ == "__main__":
    if sys.argv[1] == "run":
        own, command = sys.argv[2:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
        ask(own[0], command, [word.partition("=")[2] for word in own[1:] if word.startswith("--env=")])
    else:
        serve(sys.argv[1])
