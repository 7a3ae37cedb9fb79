"""Where the nodes of a small graph go: springs along the edges, repulsion everywhere, always the same result."""

from __future__ import annotations

import math
from collections.abc import Sequence

ROUNDS = 120


def spread(count: int, links: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Coordinates within 0..1 for each node."""
    import numpy as np

    if count == 0:
        return []
    turns = np.arange(count) * math.pi * (3 - math.sqrt(5))
    radius = np.sqrt((np.arange(count) + 0.5) / count)
    at = np.stack([radius * np.cos(turns), radius * np.sin(turns)], axis=1)
    ideal = 1.6 / math.sqrt(count)
    a = np.array([link[0] for link in links], dtype=int)
    b = np.array([link[1] for link in links], dtype=int)
    for round_ in range(ROUNDS):
        apart = at[:, None, :] - at[None, :, :]
        distance = np.sqrt((apart**2).sum(axis=2)) + 1e-6
        push = (apart / distance[:, :, None] * (ideal**2 / distance)[:, :, None]).sum(axis=1)
        if len(links):
            along = at[a] - at[b]
            pull = along * (np.sqrt((along**2).sum(axis=1)) / ideal)[:, None]
            np.subtract.at(push, a, pull)
            np.add.at(push, b, pull)
        push -= at * ideal  # towards the middle, so that parts without links stay in sight
        size = np.sqrt((push**2).sum(axis=1)) + 1e-9
        heat = 0.12 * (1 - round_ / ROUNDS) + 0.002
        at = at + push / size[:, None] * np.minimum(size, heat)[:, None]
    low, high = at.min(axis=0), at.max(axis=0)
    scaled = (at - low) / np.maximum(high - low, 1e-9)
    return [(float(x), float(y)) for x, y in (scaled if count > 1 else scaled * 0 + 0.5)]
