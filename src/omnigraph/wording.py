"""Numbers in sentences: with their nouns, and sizes in units."""

from __future__ import annotations


def counted(count: int, word: str) -> str:
    """
    >>> counted(1, "row"), counted(1200, "row"), counted(2, "query")
    ('1 row', '1,200 rows', '2 queries')
    """
    if count == 1:
        return f"{count:,} {word}"
    return f"{count:,} {word[:-1]}ies" if word.endswith("ry") else f"{count:,} {word}s"


def human_bytes(count: float) -> str:
    """
    >>> human_bytes(1536)
    '1.5 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
