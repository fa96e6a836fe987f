"""A fake judge: a small server that answers, ties, stalls, fails and returns invalid replies."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """The reply of the server to one request."""

    text: str | None = "[[A]]"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    finish: str = "stop"
    usage: bool = True
    body: str | bytes | None = None
    """Sent instead of a completion."""
    hang_up: bool = False


@dataclass
class Fake:
    """A running server, and the requests that it received."""

    url: str
    asked: Counter[str] = field(default_factory=Counter)
    """Requests by prompt."""
    paid: Counter[str] = field(default_factory=Counter)
    """Requests by prompt that were answered with a completion."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=dict)
    """Times of requests, by prompt."""
    at_once: int = 0
    most_at_once: int = 0


Answering = Callable[[str, int], Reply]
"""Maps a prompt and the number of earlier requests with it to a reply."""


@contextmanager
def serving(answering: Answering) -> Iterator[Fake]:
    """Run a server on a free port."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = body["messages"][0]["content"]
            with lock:
                before = fake.asked[prompt]
                fake.asked[prompt] += 1
                fake.bodies.append(body)
                fake.keys.append(self.headers.get("Authorization"))
                fake.times.setdefault(prompt, []).append(time.monotonic())
                fake.at_once += 1
                fake.most_at_once = max(fake.most_at_once, fake.at_once)
            try:
                assert self.path == "/v1/chat/completions"
                reply = answering(prompt, before)
                time.sleep(reply.wait)
                self._send(prompt, reply)
            finally:
                with lock:
                    fake.at_once -= 1

        def _send(self, prompt: str, reply: Reply) -> None:
            if reply.hang_up:
                self.close_connection = True
                return
            message = {"role": "assistant", "content": reply.text}
            usage = {"usage": {"prompt_tokens": 7, "completion_tokens": 3}} if reply.usage else {}
            choice = {"message": message, "finish_reason": reply.finish}
            content = json.dumps({"model": "fake-1", "choices": [choice], **usage})
            body = content if reply.body is None else reply.body
            sent = body.encode() if isinstance(body, str) else body
            if reply.status == 200 and reply.body is None:
                with lock:
                    fake.paid[prompt] += 1
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)
            except OSError:
                self.close_connection = True  # the client has disconnected

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    fake = Fake(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
