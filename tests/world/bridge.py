"""MCP's Streamable HTTP in front of `hostler serve`, line by line: the conformance suite speaks HTTP only.

It frames and does nothing else: each POST is one line, each line that comes back belongs to the open request of its id, or,
where it has none, to its subscription or to the newest open request of its session.
"""

import itertools
import json
import queue
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODERN = "2026-07-28"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
PATIENCE = 60
# Statuses that 2026-07-28 wants for errors.
STATUS = {-32601: 404, -32602: 400, -32021: 400, -32022: 400, -32020: 400, -32600: 400, -32700: 400}


class Peer:
    """One hostler on pipes, for one session."""

    def __init__(self, words, env):
        self.process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()
        self.open = {}  # our id -> (the client's id, where its lines go); in order
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def send(self, message):
        """Writes a message; for a request, where its lines come."""
        lines = None
        with self.lock:
            if "method" in message and "id" in message:
                lines = queue.Queue()
                number = next(self.numbers)
                self.open[number] = (message["id"], lines)
                message = {**message, "id": number}
            elif message.get("method") == "notifications/cancelled":
                params = message["params"]
                ours = [number for number, (id, _) in self.open.items() if id == params.get("requestId")]
                message = {**message, "params": {**params, "requestId": ours[0] if ours else -1}}
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        return lines

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.lock:
                if "method" not in message and message.get("id") in self.open:
                    id, lines = self.open.pop(message["id"])
                    lines.put({**message, "id": id})
                elif self._subscription(message) in self.open:
                    id, lines = self.open[self._subscription(message)]
                    message["params"]["_meta"][SUBSCRIPTION] = id
                    lines.put(message)
                elif self.open:
                    next(reversed(self.open.values()))[1].put(message)
        with self.lock:
            for _, lines in self.open.values():
                lines.put(None)

    @staticmethod
    def _subscription(message):
        return message.get("params", {}).get("_meta", {}).get(SUBSCRIPTION)

    def end(self):
        self.process.stdin.close()
        self.reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.wait()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
        if host not in ("localhost", "127.0.0.1", "[::1]"):
            return self._say(403, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "unknown host"}})
        try:
            message = json.loads(body)
        except ValueError:
            return self._say(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "not JSON"}})
        peer, session = self._peer(message)
        if peer is None:
            return self._say(404, {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32001, "message": "no session"}})
        lines = peer.send(message)
        if lines is None:
            return self._say(202)
        first = lines.get(timeout=PATIENCE)
        if first is not None and "method" not in first:
            status = STATUS.get(first["error"]["code"], 200) if "error" in first and session is None else 200
            return self._say(status, first, session)
        self._stream(first, lines, session)

    def _peer(self, message):
        """The hostler of a request: the session's, or the one for requests without a session."""
        server = self.server
        if message.get("method") == "initialize" and self.headers.get("Mcp-Protocol-Version") != MODERN:
            session = uuid.uuid4().hex
            server.peers[session] = Peer(server.words, server.env)
            return server.peers[session], session
        session = self.headers.get("Mcp-Session-Id")
        if session is not None:
            return server.peers.get(session), session
        with server.starting:
            if None not in server.peers:
                server.peers[None] = Peer(server.words, server.env)
        return server.peers[None], None

    def _say(self, status, message=None, session=None):
        body = b"" if message is None else json.dumps(message).encode()
        self.send_response(status)
        if session is not None:
            self.send_header("Mcp-Session-Id", session)
        if message is not None:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, message, lines, session):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if session is not None:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.close_connection = True
        while message is not None:
            self.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")
            self.wfile.flush()
            if "method" not in message:
                return
            message = lines.get(timeout=PATIENCE)

    def do_GET(self):
        self._say(405)

    def do_DELETE(self):
        peer = self.server.peers.pop(self.headers.get("Mcp-Session-Id"), None)
        if peer is not None:
            peer.end()
        self._say(200 if peer is not None else 404)


class Bridge(ThreadingHTTPServer):
    """Serves `words`, a command line, on a port of its own."""

    daemon_threads = True

    def __init__(self, words, env):
        super().__init__(("127.0.0.1", 0), Handler)
        self.words, self.env = words, env
        self.peers, self.starting = {}, threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/mcp"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *request):
        """The suite leaves streams that it has read enough of."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*request)

    def end(self):
        self.shutdown()
        self.server_close()
        for peer in self.peers.values():
            peer.end()
