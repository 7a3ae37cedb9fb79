"""How texts become vectors: which provider, and how it is asked."""

from __future__ import annotations

from dataclasses import field

from omnigraph.model.frozen import frozen


@frozen
class EmbedSettings:
    """Which provider to use, and how: a value that can be sent to where texts are embedded."""

    kind: str | None = None
    model: str | None = None
    url: str | None = None
    key: str | None = field(default=None, repr=False)
    requests_per_minute_max: float | None = None
