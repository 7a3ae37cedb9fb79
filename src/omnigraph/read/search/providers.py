"""Where vectors for texts come from. A provider turns a batch of texts into a batch of vectors, or an error."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http.client import HTTPException
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

import numpy as np
import numpy.typing as npt

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.storage.retry import RETRY_AFTER, Retry

Float32s = npt.NDArray[np.float32]


class EmbedNotConfigured(OmnigraphError):
    """Text must be embedded, and no usable embedding provider is configured."""

    code, kind = "embed_not_configured", Kind.INVALID
    default_help = (
        "Set OMNIGRAPH_EMBED_PROVIDER to openai, gemini, local or mock; openai and gemini also read "
        "OMNIGRAPH_EMBED_URL, OMNIGRAPH_EMBED_MODEL and OMNIGRAPH_EMBED_API_KEY. Or give a vector instead of a text."
    )


class EmbedUnavailable(OmnigraphError):
    """The embedding provider did not return usable vectors; nothing was written."""

    code, kind = "embed_unavailable", Kind.UNAVAILABLE
    default_help = "Check that the provider at OMNIGRAPH_EMBED_URL works, then try again."


class EmbedRefused(OmnigraphError):
    """The embedding provider cannot serve this request; retrying would not help."""

    code, kind = "embed_refused", Kind.INVALID
    default_help = (
        "Check OMNIGRAPH_EMBED_URL, OMNIGRAPH_EMBED_MODEL and OMNIGRAPH_EMBED_API_KEY, and that the model makes "
        "vectors of the property's dimension."
    )


class Provider(Protocol):
    """Makes vectors. `model` is the one it is bound to, or None when it serves whatever the schema names."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def batch_texts_max(self) -> int: ...
    @property
    def requests_max(self) -> int:
        """The maximum number of concurrent requests."""
        ...

    def embed(self, texts: Sequence[str], dim: int, model: str | None) -> Float32s:
        """One row per text."""
        ...


# --- deterministic -----------------------------------------------------------------------------------------------


@frozen
class MockProvider:
    """Vectors that depend on the bytes of the text alone: for tests and examples, without any meaning.

    The FNV-1a hash of the text seeds a 64-bit xorshift generator, which gives one number in [-1, 1) per dimension; the
    result has length 1.
    """

    model: str | None = None
    name: str = "mock"
    batch_texts_max: int = 4096
    requests_max: int = 1

    def embed(self, texts: Sequence[str], dim: int, model: str | None) -> Float32s:  # noqa: ARG002
        state = np.array(
            [fnv1a64(text.encode(errors="surrogatepass")) for text in texts], np.uint64
        )
        made = np.empty((len(texts), dim), np.float32)
        for column in range(dim):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            part = (state.astype(np.float64) * 2.0**-64).astype(np.float32)
            made[:, column] = np.float32(2) * part - np.float32(1)
        wide = made.astype(np.float64)
        norms = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
        unit: Float32s = (wide / norms).astype(np.float32)
        return unit


def fnv1a64(data: bytes) -> int:
    """The 64-bit FNV-1a hash."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


# --- on this machine ---------------------------------------------------------------------------------------------

PACKAGED = (
    "wordllama"  # the model that comes with the package of this name: no network, no local files
)
PACKAGED_DIMENSIONS = (64, 128, 256)


@dataclass(frozen=True)
class LocalProvider:
    """Static embeddings on this machine.

    `wordllama` is the model its package carries (the extra `embeddings`); any other name is a folder or a published
    name of the package `model2vec`.
    """

    model: str | None = PACKAGED
    name: str = "local"
    batch_texts_max: int = 1024
    requests_max: int = 1

    def __post_init__(self) -> None:
        package, install = PACKAGED, "pip install 'omnigraph[embeddings]'"
        if self.model != PACKAGED:
            package, install = "model2vec", "pip install model2vec"
        if find_spec(package) is None:
            raise EmbedNotConfigured(
                f"the local embedding provider needs the package {package}",
                help=f"Install it with `{install}`, or choose another OMNIGRAPH_EMBED_PROVIDER.",
            )

    def embed(self, texts: Sequence[str], dim: int, model: str | None) -> Float32s:  # noqa: ARG002
        given = [text or " " for text in texts]  # neither package has a vector of no words
        if self.model != PACKAGED:
            return np.asarray(self._loaded.encode(given), np.float32)
        if dim not in PACKAGED_DIMENSIONS:
            raise EmbedRefused(
                f"the model {PACKAGED} makes vectors of 64, 128 or 256 numbers, the property holds {dim}",
                help="Declare the property as Vector(256), Vector(128) or Vector(64).",
            )
        # The first numbers of its vectors are vectors themselves.
        return np.asarray(self._loaded.embed(given), np.float32)[:, :dim]

    @cached_property
    def _loaded(self) -> Any:
        try:
            return _packaged_model() if self.model == PACKAGED else _model2vec(str(self.model))
        except (OSError, ValueError) as failure:
            message = f"the local embedding model '{self.model}' cannot be loaded: {failure}"
            raise EmbedUnavailable(message) from failure


def _packaged_model() -> Any:
    """Loaded from the files of the package; it must never look elsewhere."""
    import wordllama

    folder = Path(str(wordllama.__file__)).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


def _model2vec(model: str) -> Any:
    from model2vec import StaticModel

    return StaticModel.from_pretrained(model)


# --- over HTTP -----------------------------------------------------------------------------------------------------

OPENAI_URL = "https://api.openai.com/v1"
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
ANSWER_BYTES_MAX = 256 << 20
RETRY = Retry(attempts_max=4, pause_first_seconds=0.5, pause_seconds_max=30.0)
NOT_ONE_EACH = "the embedding provider's answer does not hold one vector per text"
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


class Pace:
    """Spaces the requests of all threads of a process to keep a limit per minute."""

    def __init__(self, apart_seconds: float) -> None:
        self._apart = apart_seconds
        self._next = 0.0
        self._lock = threading.Lock()

    def wait_seconds(self, now: float) -> float:
        """How long the next request has to wait; reserves its turn."""
        with self._lock:
            turn = max(now, self._next)
            self._next = turn + self._apart
        return turn - now


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the key to a host that was not configured."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class HttpProvider:
    """A server that makes vectors. Subclasses define requests and answers; the rest is shared."""

    url: str = ""
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 60.0
    batch_texts_max: int = 128
    requests_max: int = 4
    requests_per_minute_max: float | None = None
    retry: Retry = field(default=RETRY, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))
        if not safe or not parts.hostname or parts.username or parts.password:
            raise EmbedNotConfigured(
                "the address of the embedding provider must be https, or http on this machine, without a password",
                help="Set OMNIGRAPH_EMBED_URL to something like https://api.example.com/v1.",
            )
        if self.key and not (self.key.isascii() and self.key.isprintable()):
            raise EmbedNotConfigured(
                "OMNIGRAPH_EMBED_API_KEY contains characters that are not allowed in a key"
            )

    @property
    def name(self) -> str:
        return self.url

    def embed(self, texts: Sequence[str], dim: int, model: str | None) -> Float32s:
        if model is None:
            raise EmbedNotConfigured(
                "neither the schema nor OMNIGRAPH_EMBED_MODEL names an embedding model"
            )
        try:
            return self._vectors(texts, model, dim)
        except EmbedRefused as refused:
            # Models of one fixed size refuse a requested size, even their own.
            if refused.details.get("status") not in (400, 422):
                raise
            return self._vectors(texts, model, None)

    def _vectors(self, texts: Sequence[str], model: str, dim: int | None) -> Float32s:
        """Vectors from one request, of the requested size or the model's own."""
        raise NotImplementedError

    def _authorization(self, key: str) -> dict[str, str]:
        """The header that carries the key."""
        return {"Authorization": f"Bearer {key}"}

    def _ask(self, path: str, request: dict[str, Any]) -> Any:
        """The answer to one request, which is retried while that may help."""
        body = json.dumps(request).encode()
        return self.retry.run(
            lambda: self._once(path, body), lambda error: error.kind is Kind.UNAVAILABLE
        )

    def _once(self, path: str, body: bytes) -> Any:
        if self._pace is not None:
            self.retry.sleep(self._pace.wait_seconds(time.monotonic()))
        try:
            return json.loads(self._post(path, body))
        except urllib.error.HTTPError as failure:
            with failure:
                raise self._failure(failure) from None
        except (OSError, ValueError, HTTPException) as failure:
            message = f"the embedding provider at {self.url} did not answer: {failure}"
            raise EmbedUnavailable(self._without_key(message)) from None

    def _post(self, path: str, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers |= self._authorization(self.key) if self.key else {}
        target = f"{self.url.rstrip('/')}/{path}"
        request = urllib.request.Request(target, body, headers)  # noqa: S310 (the scheme was checked)
        with self._opener.open(request, timeout=self.timeout_seconds) as response:
            answer: bytes = response.read(ANSWER_BYTES_MAX + 1)
        if len(answer) > ANSWER_BYTES_MAX:
            message = f"the embedding provider at {self.url} sent too long an answer"
            raise EmbedUnavailable(message, details={"bytes_max": ANSWER_BYTES_MAX})
        return answer

    @cached_property
    def _pace(self) -> Pace | None:
        per_minute = self.requests_per_minute_max
        return None if per_minute is None else Pace(60.0 / per_minute)

    @cached_property
    def _opener(self) -> urllib.request.OpenerDirector:
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if _is_loopback(urlsplit(self.url).hostname):
            handlers.append(urllib.request.ProxyHandler({}))
        return urllib.request.build_opener(*handlers)

    def _failure(self, failure: urllib.error.HTTPError) -> OmnigraphError:
        """The error for an HTTP status."""
        said = failure.read(300).decode(errors="replace")
        message = self._without_key(
            f"the embedding provider at {self.url} answered {failure.code}: {said}"
        )
        details = {"status": failure.code}
        if failure.code not in TRANSIENT:
            return EmbedRefused(message, details=details)
        retry_after = failure.headers.get("Retry-After")
        return EmbedUnavailable(
            message, details=details | ({} if retry_after is None else {RETRY_AFTER: retry_after})
        )

    def _without_key(self, message: str) -> str:
        return message.replace(self.key, "***") if self.key else message


@dataclass(frozen=True)
class OpenAiProvider(HttpProvider):
    """Any server with the `POST {url}/embeddings` of OpenAI's interface."""

    url: str = OPENAI_URL

    def _vectors(self, texts: Sequence[str], model: str, dim: int | None) -> Float32s:
        size = {} if dim is None else {"dimensions": dim}
        answer = self._ask("embeddings", {"model": model, "input": list(texts), **size})
        return _read_numbered(answer, len(texts))


@dataclass(frozen=True)
class GeminiProvider(HttpProvider):
    """Google's Gemini interface: `POST {url}/models/{model}:batchEmbedContents`."""

    url: str = GEMINI_URL
    batch_texts_max: int = 100

    def _authorization(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def _vectors(self, texts: Sequence[str], model: str, dim: int | None) -> Float32s:
        named = f"models/{quote(model.removeprefix('models/'), safe='')}"
        size = {} if dim is None else {"outputDimensionality": dim}
        requests = [
            {"model": named, "content": {"parts": [{"text": text}]}, **size} for text in texts
        ]
        answer = self._ask(f"{named}:batchEmbedContents", {"requests": requests})
        return _read_listed(answer, len(texts))


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def _read_numbered(answer: Any, count: int) -> Float32s:
    """The vectors of an answer that numbers them by text."""
    try:
        rows = sorted(answer["data"], key=lambda row: int(row["index"]))
        if [row["index"] for row in rows] == list(range(count)):
            return np.array([row["embedding"] for row in rows], np.float32)
    except (KeyError, TypeError, ValueError):
        pass
    raise EmbedUnavailable(NOT_ONE_EACH)


def _read_listed(answer: Any, count: int) -> Float32s:
    """The vectors of an answer in the order of the texts."""
    try:
        rows = [row["values"] for row in answer["embeddings"]]
        if len(rows) == count:
            return np.array(rows, np.float32)
    except (KeyError, TypeError, ValueError):
        pass
    raise EmbedUnavailable(NOT_ONE_EACH)
