"""Vectors from a server with OpenAI's interface for embeddings."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http.client import HTTPException
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from omnigraph.read.search.providers import (
    EmbedNotConfigured,
    EmbedRefused,
    EmbedUnavailable,
    Float32s,
)

OPENAI_URL = "https://api.openai.com/v1"
ANSWER_BYTES_MAX = 256 << 20
PAUSE_SECONDS_MAX = 30.0
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to a host nobody configured."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class HttpProvider:
    """Any server with the `POST {url}/embeddings` of OpenAI's interface."""

    url: str = OPENAI_URL
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 60.0
    attempts_max: int = 4
    pause_seconds: float = 0.5  # before the second attempt; doubled before each further one
    batch_texts_max: int = 128
    requests_max: int = 4
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))
        if not safe or not parts.hostname or parts.username or parts.password:
            raise EmbedNotConfigured(
                "the address of the embedding provider must be https, or http on this machine, without a password",
                help="Set OMNIGRAPH_EMBED_URL to something like https://api.example.com/v1.",
            )
        if self.key and not (self.key.isascii() and self.key.isprintable()):
            raise EmbedNotConfigured("OMNIGRAPH_EMBED_API_KEY holds characters no key can have")

    @property
    def name(self) -> str:
        return self.url

    def embed(self, texts: Sequence[str], dim: int, model: str | None) -> Float32s:
        if model is None:
            raise EmbedNotConfigured(
                "neither the schema nor OMNIGRAPH_EMBED_MODEL names an embedding model"
            )
        asked = {"model": model, "input": list(texts)}
        try:
            answer = self._ask({**asked, "dimensions": dim})
        except EmbedRefused as refused:
            # Models of one fixed size refuse to be asked for a size, even their own.
            if refused.details.get("status") not in (400, 422):
                raise
            answer = self._ask(asked)
        return _read_vectors(answer, len(texts))

    def _ask(self, asked: dict[str, Any]) -> Any:
        """The answer to one request, which is repeated while there is hope."""
        body = json.dumps(asked).encode()
        for attempt in range(1, self.attempts_max + 1):
            try:
                return json.loads(self._post(body))
            except urllib.error.HTTPError as failure:
                with failure:
                    self._consider(failure, attempt)
            except (OSError, ValueError, HTTPException) as failure:
                if attempt == self.attempts_max:
                    message = f"the embedding provider at {self.url} gave no answer: {failure}"
                    raise EmbedUnavailable(self._without_key(message)) from None
                self.sleep(self._pause(attempt))
        raise AssertionError("every attempt returns, raises or is followed by another")

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        target = self.url.rstrip("/") + "/embeddings"
        request = urllib.request.Request(target, body, headers)  # noqa: S310 (the scheme was checked)
        with self._opener.open(request, timeout=self.timeout_seconds) as response:
            answer: bytes = response.read(ANSWER_BYTES_MAX + 1)
        if len(answer) > ANSWER_BYTES_MAX:
            raise EmbedUnavailable(f"the embedding provider at {self.url} answered without end")
        return answer

    @cached_property
    def _opener(self) -> urllib.request.OpenerDirector:
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if _is_loopback(urlsplit(self.url).hostname):
            handlers.append(urllib.request.ProxyHandler({}))
        return urllib.request.build_opener(*handlers)

    def _consider(self, failure: urllib.error.HTTPError, attempt: int) -> None:
        """Wait before the next attempt, or raise what the status means."""
        said = failure.read(300).decode(errors="replace")
        message = f"the embedding provider at {self.url} answered {failure.code}: {said}"
        details = {"status": failure.code}
        if failure.code not in TRANSIENT:
            raise EmbedRefused(self._without_key(message), details=details) from None
        if attempt == self.attempts_max:
            raise EmbedUnavailable(self._without_key(message), details=details) from None
        self.sleep(self._pause(attempt, failure.headers.get("Retry-After", "")))

    def _pause(self, attempt: int, wished: str = "") -> float:
        seconds = float(wished) if wished.isdigit() else self.pause_seconds * 2 ** (attempt - 1)
        return min(seconds, PAUSE_SECONDS_MAX)

    def _without_key(self, message: str) -> str:
        return message.replace(self.key, "***") if self.key else message


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def _read_vectors(answer: Any, count: int) -> Float32s:
    """The vectors of an answer, in the order of the texts."""
    try:
        rows = sorted(answer["data"], key=lambda row: int(row["index"]))
        if [row["index"] for row in rows] == list(range(count)):
            return np.array([row["embedding"] for row in rows], np.float32)
    except (KeyError, TypeError, ValueError):
        pass
    raise EmbedUnavailable("the embedding provider's answer does not hold one vector per text")
