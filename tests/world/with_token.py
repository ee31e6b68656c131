"""Adds a token to every request on its way to hostler: the conformance suite has none to send."""

import re
import socket
import threading


class WithToken:
    """Listens at a port of its own, in front of hostler's."""

    def __init__(self):
        self.port = self.token = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def begin(self, port, token):
        self.port, self.token = port, token
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        """One request for each connection: the next one needs the token too."""
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            head = b""
            while b"\r\n\r\n" not in head:
                part = client.recv(65536)
                if not part:
                    return
                head += part
            head = re.sub(rb"\r\n(connection|keep-alive):[^\r]*", b"", head, flags=re.I)
            line, rest = head.split(b"\r\n", 1)
            server.sendall(line + f"\r\nAuthorization: Bearer {self.token}\r\nConnection: close\r\n".encode() + rest)
            back = threading.Thread(target=self._pipe, args=(server, client), daemon=True)
            back.start()
            self._pipe(client, server)
            back.join()

    @staticmethod
    def _pipe(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def end(self):
        self.listener.close()
