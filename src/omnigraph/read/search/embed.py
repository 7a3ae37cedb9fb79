"""Texts to vectors through the configured provider, each text once.

Configured by what a graph was opened with, else by the environment: OMNIGRAPH_EMBED_PROVIDER is `openai` (any server
with that interface), `gemini`, `local` or `mock`; OMNIGRAPH_EMBED_MODEL binds it to a model; its address, key and pace
are for providers behind a server.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.embedding import EmbedSettings
from omnigraph.read.cache import Cache
from omnigraph.read.search.providers import (
    GEMINI_URL,
    OPENAI_URL,
    PACKAGED,
    EmbedNotConfigured,
    EmbedRefused,
    EmbedUnavailable,
    Float32s,
    GeminiProvider,
    LocalProvider,
    MockProvider,
    OpenAiProvider,
    Provider,
)

# Separate from the budget of readers: recomputing these vectors costs money.
EMBED_CACHE_BYTES_MAX = 64 << 20

_made = Cache(EMBED_CACHE_BYTES_MAX)


class EmbedModelMismatch(OmnigraphError):
    """The schema and the embedding provider name different models, whose vectors cannot be compared."""

    code, kind = "embed_model_mismatch", Kind.INVALID
    default_help = "Set OMNIGRAPH_EMBED_MODEL to the model that made the stored vectors."


def embed_text(
    text: str, dim: int, model: str | None = None, *, provider: Provider | None = None
) -> Float32s:
    """The vector of one text."""
    vector: Float32s = embed_texts([text], dim, model, provider=provider)[0]
    return vector


def embed_texts(
    texts: Sequence[str], dim: int, model: str | None = None, *, provider: Provider | None = None
) -> Float32s:
    """One row per text, finite and not zero.

    `model` is the one the schema records for the property. Equal texts are embedded once, and earlier results are
    cached. Either all vectors are returned or an error is raised.

    >>> embed_texts(["tea", "tea"], 2, provider=MockProvider()).shape
    (2, 2)
    """
    source = provider or configured()
    chosen = _agreed(source, model)
    keys = {text: _key(source, chosen, dim, text) for text in texts}
    found = {text: vector for text, key in keys.items() if (vector := _made.get(key)) is not None}
    missing = [text for text in keys if text not in found]
    for batch, vectors in _embed_batches(source, missing, dim, chosen):
        for text, vector in zip(batch, vectors, strict=True):
            found[text] = vector
            _made.put(keys[text], vector, vector.nbytes + 256)
    return np.array([found[text] for text in texts], np.float32).reshape(len(texts), dim)


def settings_of(snapshot: Snapshot) -> EmbedSettings:
    """The embedding settings of a graph: those it was opened with, else those of the environment."""
    return snapshot.embedding or settings_of_environment()


def settings_of_environment() -> EmbedSettings:
    """The embedding settings of the environment."""
    kind = _variable("PROVIDER")
    own_key = OWN_KEYS.get(kind or "")
    return EmbedSettings(
        kind,
        _variable("MODEL"),
        _variable("URL") or _variable("BASE_URL"),
        _variable("API_KEY") or (own_key and os.environ.get(own_key)) or None,
        settings_pace(),
    )


def settings_pace() -> float | None:
    """The limit on this process's requests to any provider."""
    return _pace(_variable("REQUESTS_PER_MINUTE_MAX"))


OWN_KEYS = {
    "openai": "OPENAI_API_KEY",
    "openai-compatible": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
}


def _variable(name: str) -> str | None:
    return os.environ.get(f"OMNIGRAPH_EMBED_{name}") or None


def _pace(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        per_minute = float(text)
    except ValueError:
        per_minute = 0.0
    if not 0.0 < per_minute < float("inf"):
        raise EmbedNotConfigured(
            f"OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE_MAX must be a number above 0, got {text!r}"
        )
    return per_minute


def configured() -> Provider:
    """The provider configured by the environment."""
    return provider_of(settings_of_environment())


@lru_cache(maxsize=64)
def provider_of(settings: EmbedSettings) -> Provider:
    """The provider for these settings."""
    kind, model, key = settings.kind, settings.model, settings.key
    pace = settings.requests_per_minute_max
    match kind:
        case "mock":
            return MockProvider(model)
        case "openai" | "openai-compatible":
            return OpenAiProvider(
                settings.url or OPENAI_URL, model, key, requests_per_minute_max=pace
            )
        case "gemini":
            return GeminiProvider(
                settings.url or GEMINI_URL, model, key, requests_per_minute_max=pace
            )
        case "local":
            return LocalProvider(model or PACKAGED)
        case None:
            raise EmbedNotConfigured(
                "a text must be embedded, but no embedding provider is configured"
            )
        case _:
            raise EmbedNotConfigured(f"there is no embedding provider called '{kind}'")


def _agreed(provider: Provider, model: str | None) -> str | None:
    """The model to use: what the schema records and what the provider is bound to must not differ."""
    if model and provider.model and model != provider.model:
        raise EmbedModelMismatch(
            f"the schema records the model '{model}', the embedding provider uses '{provider.model}'",
            details={"schema_model": model, "provider_model": provider.model},
        )
    return provider.model or model


def _key(provider: Provider, model: str | None, dim: int, text: str) -> Hashable:
    return provider.name, model, dim, hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _embed_batches(
    provider: Provider, texts: list[str], dim: int, model: str | None
) -> Iterable[tuple[list[str], Float32s]]:
    """Each batch with its vectors, with concurrent requests if the provider allows them."""
    size = provider.batch_texts_max
    batches = [texts[start : start + size] for start in range(0, len(texts), size)]

    def embed(batch: list[str]) -> Float32s:
        return _checked(provider.embed(batch, dim, model), len(batch), dim)

    if min(len(batches), provider.requests_max) <= 1:
        yield from ((batch, embed(batch)) for batch in batches)
        return
    with ThreadPoolExecutor(provider.requests_max, "embed") as pool:
        yield from zip(batches, pool.map(embed, batches), strict=True)


def _checked(vectors: Float32s, count: int, dim: int) -> Float32s:
    if vectors.shape != (count, dim):
        raise EmbedRefused(
            f"the embedding provider made vectors of {vectors.shape[-1]} numbers, the property holds {dim}",
            help="Choose a model of the property's dimension, or another Vector(n).",
        )
    if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
        raise EmbedUnavailable("the embedding provider made a vector that is zero or not finite")
    return vectors
