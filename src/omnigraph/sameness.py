"""What makes two requests the same, for idempotency keys."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import msgspec


def fingerprint(*parts: Any) -> str:
    """A digest of what was asked for."""
    return hashlib.sha256(
        msgspec.json.encode(parts, enc_hook=str, order="deterministic")
    ).hexdigest()


def named(source: Any) -> Any:
    """Sources that have a name are compared by it; what lies in memory is the caller's word."""
    if hasattr(source, "digest"):
        return source.digest
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    if isinstance(source, list):
        return [os.fspath(one) for one in source if isinstance(one, str | os.PathLike)]
    return None
