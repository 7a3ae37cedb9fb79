"""Fingerprints of requests, for idempotency keys."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from omnigraph.errors import OptionInvalid


def fingerprint(*parts: Any) -> str:
    """A digest of a request."""
    try:
        encoded = msgspec.json.encode(parts, enc_hook=str, order="deterministic")
    except UnicodeEncodeError:
        raise OptionInvalid("a text of the request is not valid Unicode") from None
    return hashlib.sha256(encoded).hexdigest()


def named(source: Any) -> Any:
    """A source by its name; of data in memory only the types it is for."""
    if hasattr(source, "digest"):
        return source.digest
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    if isinstance(source, Mapping):
        return {str(name): named(value) for name, value in source.items()}
    if isinstance(source, list | tuple):
        return [os.fspath(one) for one in source if isinstance(one, str | os.PathLike)] or None
    return None
