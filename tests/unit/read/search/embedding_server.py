"""An embedding server on loopback that answers as it is told and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One scripted answer; without a body, vectors are made of the lengths of the texts."""

    status: int = 200
    body: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class EmbeddingServer:
    url: str = ""
    script: list[Answer] = field(default_factory=list)  # used up first; then every request succeeds
    asked: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    def answer(self, asked: dict[str, Any]) -> Answer:
        self.asked.append(asked)
        return self.script.pop(0) if self.script else Answer()


def vectors_for(asked: dict[str, Any]) -> str:
    """Vectors [length of the text, 1, 1, …], listed backwards: only `index` says which is whose. Gemini's are not."""
    if "requests" in asked:
        parts = [(each["content"]["parts"][0]["text"], each) for each in asked["requests"]]
        listed = [
            {"values": [float(len(text))] + [1.0] * (each.get("outputDimensionality", 3) - 1)}
            for text, each in parts
        ]
        return json.dumps({"embeddings": listed})
    width = asked.get("dimensions", 3)
    rows = [
        {"index": i, "embedding": [float(len(text))] + [1.0] * (width - 1)}
        for i, text in enumerate(asked["input"])
    ]
    return json.dumps({"data": rows[::-1]})


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    state = EmbeddingServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.paths.append(self.path)
            key = self.headers.get("Authorization") or self.headers.get("x-goog-api-key")
            state.keys.append(key)
            answer = state.answer(asked)
            body = (vectors_for(asked) if answer.body is None else answer.body).encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            state.paths.append(self.path)
            self.send_error(405)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
