"""Where vectors for texts come from. A provider turns a batch of texts into a batch of vectors, or says why not.

The one that asks a server is in `remote.py`, apart, because what it imports is slow to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from omnigraph.errors import Kind, OmnigraphError

Float32s = npt.NDArray[np.float32]


class EmbedNotConfigured(OmnigraphError):
    """Text must be embedded, and no usable embedding provider is configured."""

    code, kind = "embed_not_configured", Kind.INVALID
    default_help = (
        "Set OMNIGRAPH_EMBED_PROVIDER to openai, local or mock; openai also reads OMNIGRAPH_EMBED_URL, "
        "OMNIGRAPH_EMBED_MODEL and OMNIGRAPH_EMBED_API_KEY. Or give a vector instead of a text."
    )


class EmbedUnavailable(OmnigraphError):
    """The embedding provider did not give usable vectors; nothing was written."""

    code, kind = "embed_unavailable", Kind.UNAVAILABLE
    default_help = "Check that the provider at OMNIGRAPH_EMBED_URL works, then try again."


class EmbedRefused(OmnigraphError):
    """The embedding provider cannot serve this request, and would not serve it later either."""

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
        """How many batches may be under way at once."""
        ...

    def embed(self, texts: Sequence[str], dim: int, model: str | None) -> Float32s:
        """One row per text."""
        ...


# --- deterministic -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True)
class LocalProvider:
    """Static embeddings of the package `model2vec`, if it is installed; the model is a folder or a published name."""

    model: str
    name: str = "local"
    batch_texts_max: int = 1024
    requests_max: int = 1

    def __post_init__(self) -> None:
        if find_spec("model2vec") is None:
            raise EmbedNotConfigured(
                "the local embedding provider needs the package model2vec",
                help="Install it with `pip install model2vec`, or choose another OMNIGRAPH_EMBED_PROVIDER.",
            )

    def embed(self, texts: Sequence[str], dim: int, model: str | None) -> Float32s:  # noqa: ARG002
        return np.asarray(self._loaded.encode(list(texts)), np.float32)

    @cached_property
    def _loaded(self) -> Any:
        from model2vec import StaticModel  # type: ignore[import-not-found, unused-ignore]

        try:
            return StaticModel.from_pretrained(self.model)
        except (OSError, ValueError) as failure:
            message = f"the local embedding model '{self.model}' cannot be loaded: {failure}"
            raise EmbedUnavailable(message) from failure
