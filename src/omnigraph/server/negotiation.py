"""What a client would rather have: media types and encodings, by the weights it gives them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import chain

from omnigraph.server.errors import NotAcceptable

PARTS_MAX = 64
GZIP_LEVEL = 1  # a stream is to be smaller, not late
JSON_TOO = "application/json"  # clients of NDJSON often say that they take JSON


def accepted(header: str, offered: Sequence[str]) -> str:
    """The media type to answer with; the first offered one where nothing is preferred.

    >>> accepted("text/csv;q=0.9, text/html", ["text/csv", "text/html"])
    'text/html'
    >>> accepted("*/*", ["text/csv", "text/html"])
    'text/csv'
    """
    wanted = _weights(header) or {"*/*": 1.0}
    weights = [_weight(media, wanted, first=media == offered[0]) for media in offered]
    best = max(weights)
    if best <= 0:
        raise NotAcceptable(f"this can be had as {', '.join(offered)}")
    return offered[weights.index(best)]


def _weight(media: str, wanted: dict[str, float], *, first: bool) -> float:
    """How much a client wants a media type: what is named outweighs what is meant by a star."""
    if media in wanted:
        return wanted[media]
    stars = [wanted[star] for star in (media.partition("/")[0] + "/*", "*/*") if star in wanted]
    if first and JSON_TOO in wanted:
        stars.append(wanted[JSON_TOO])
    return max(stars, default=0.0) * 0.999


def _weights(header: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in header.split(",")[:PARTS_MAX]:
        name, *options = (piece.strip().lower() for piece in part.split(";"))
        if name:
            found[name] = _quality(options)
    return found


def _quality(options: Sequence[str]) -> float:
    for option in options:
        if option.startswith("q="):
            try:
                return min(max(float(option[2:]), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def packed(header: str, blocks: Iterator[bytes]) -> tuple[str | None, Iterator[bytes]]:
    """The encoding a client takes, and the blocks in it; none and the blocks as they are otherwise."""
    wanted = _weights(header)
    zstd, gzip = wanted.get("zstd", 0.0), wanted.get("gzip", 0.0)
    if max(zstd, gzip) <= 0:
        return None, blocks
    if zstd >= gzip:
        return "zstd", _zstd(blocks)
    return "gzip", _gzip(blocks)


def _gzip(blocks: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 31)
    pieces = chain((packer.compress(block) for block in blocks), (packer.flush() for _ in "x"))
    return (piece for piece in pieces if piece)


def _zstd(blocks: Iterator[bytes]) -> Iterator[bytes]:
    import zstandard

    packer = zstandard.ZstdCompressor(level=1).compressobj()
    pieces = chain((packer.compress(block) for block in blocks), (packer.flush() for _ in "x"))
    return (piece for piece in pieces if piece)
