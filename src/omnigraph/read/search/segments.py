"""The segments of a text property of one table version: stored, or built and shared by every version possible.

A large fragment of a property with `@index` has its segments in a file (`stored_text.py`), once it has been made.
Fragments between these form runs, each longer than the next, that are inverted in memory: a commit
that appends changes the last runs only, which are short; there are never more than about log2(rows) of them. Segments
cover physical rows, so a deletion leaves them as they are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from omnigraph.errors import ObjectNotFound, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.read.search.analyzer import Analyzer, analyzer_of
from omnigraph.read.search.inverted import Segment, build_segment
from omnigraph.read.search.source import Bools, Columns, DerivedCache
from omnigraph.read.search.stored_text import (
    StoredTexts,
    TextFileUnusable,
    open_texts,
    table_folder,
    text_key,
)
from omnigraph.storage.tables import Cells, FragmentInfo

T = TypeVar("T")

RUN_BYTES = 256  # what a run costs in the cache, roughly
STORED_ROWS_MIN = 1_000  # a smaller fragment is inverted faster than its file is found
LOOK_AGAIN_SECONDS = (
    60.0  # for a file that was missing: maintenance, often of another process, makes it
)

log = logging.getLogger("omnigraph.read")


@frozen
class FragmentRun:
    """Some consecutive fragments."""

    start: int
    stop: int
    fragments: tuple[FragmentInfo, ...]

    @property
    def size(self) -> int:
        return self.stop - self.start


@frozen
class _Kept:
    """A segment in the cache, with the rows that existed when its column was read (None: all)."""

    segment: Segment
    live: Bools | None

    def serves(self, live: Bools | None) -> bool:
        if self.live is None:
            return True
        return live is not None and not bool((live & ~self.live).any())


@frozen
class Placed:
    """A segment, and the position of its first row."""

    start: int
    segment: Segment


def segments(
    columns: Columns, prop: str, damaged: frozenset[str] = frozenset()
) -> tuple[Placed, ...]:
    """The segments of a property, from the first position to the last; without those of damaged files."""
    analyzer = analyzer_of(columns.kind.properties[prop])
    found: list[Placed] = []
    start = 0
    pieces = _pieces(columns, prop, analyzer, damaged)
    for stored, group in groupby(pieces, key=itemgetter(1)):
        if stored is None:
            runs = runs_of([fragment for fragment, _ in group], start)
            found += [Placed(r.start, _built(columns, prop, analyzer, r)) for r in runs]
            start = runs[-1].stop
            continue
        for segment in stored.segments:
            found.append(Placed(start, segment))
            start += segment.size
    return tuple(found)


def _pieces(
    columns: Columns, prop: str, analyzer: Analyzer, damaged: frozenset[str]
) -> Iterator[tuple[FragmentInfo, StoredTexts | None]]:
    """The fragments, and the files of those that have one."""
    declared = columns.objects is not None and prop in columns.kind.indexed("text")
    for fragment in columns.fragments:
        stored = None
        if declared and deserves_file(fragment):
            stored = _stored(columns, prop, analyzer, fragment)
        yield fragment, None if stored is None or stored.key in damaged else stored


def deserves_file(fragment: FragmentInfo) -> bool:
    """Whether inverting the fragment takes longer than reading its file."""
    return fragment.physical_rows >= STORED_ROWS_MIN


def runs_of(fragments: Sequence[FragmentInfo], start: int = 0) -> tuple[FragmentRun, ...]:
    """The runs of a list of fragments; appending a fragment leaves all but the last ones as they were."""
    runs: list[FragmentRun] = []
    for fragment in fragments:
        run = FragmentRun(start, start + fragment.physical_rows, (fragment,))
        while runs and runs[-1].size <= run.size:
            before = runs.pop()
            run = FragmentRun(before.start, run.stop, before.fragments + run.fragments)
        runs.append(run)
        start = run.stop
    return tuple(runs)


def _built(columns: Columns, prop: str, analyzer: Analyzer, run: FragmentRun) -> Segment:
    cells = tuple(columns.cells(prop, fragment) for fragment in run.fragments)
    key = (*columns.identity[:-1], "text", cells, analyzer.signature)
    live = None if columns.live is None else columns.live[run.start : run.stop]
    kept = columns.cache.get(key)
    if not isinstance(kept, _Kept) or not kept.serves(live):
        texts = columns.column(prop).slice(run.start, run.size)
        kept = _Kept(build_segment(texts, analyzer), live)
        columns.cache.put(key, kept, kept.segment.nbytes + RUN_BYTES)
    return kept.segment


# --- files -------------------------------------------------------------------------------------------------------


def _stored(
    columns: Columns, prop: str, analyzer: Analyzer, fragment: FragmentInfo
) -> StoredTexts | None:
    """The file of a fragment; None if it is missing or unusable. The result is cached."""
    cells = columns.cells(prop, fragment)
    if columns.objects is None or not isinstance(cells, Cells):
        return None
    key = text_key(str(columns.identity[1]), cells, analyzer)
    kept_as = (columns.identity[0], key)
    kept = columns.cache.get(kept_as)
    if isinstance(kept, StoredTexts):
        return kept
    if kept is not None and not (_is_old(kept) and key in _listed(columns)):
        return None
    found = _opened(columns, key, fragment)
    if found is None:
        _note_absence(columns, key)
    else:
        columns.cache.put(kept_as, found, found.nbytes)
    return found


@frozen
class _Absent:
    """A file that was missing or unusable, and when."""

    seconds: float


@frozen
class _Listing:
    """The files of a table, and when they were listed."""

    keys: frozenset[str]
    seconds: float


def _is_old(kept: _Absent | _Listing) -> bool:
    return time.monotonic() - kept.seconds >= LOOK_AGAIN_SECONDS


def _note_absence(columns: Columns, key: str) -> None:
    columns.cache.put((columns.identity[0], key), _Absent(time.monotonic()), RUN_BYTES)


def _listed(columns: Columns) -> frozenset[str]:
    """The files of a table as of a while ago: one request, however many are missing."""
    folder = table_folder(str(columns.identity[1]))
    kept_as = (columns.identity[0], folder, "listing")
    known = columns.cache.get(kept_as)
    if known is None or _is_old(known):
        assert columns.objects is not None  # noqa: S101
        keys = frozenset(info.key for info in columns.objects.list(folder))
        known = _Listing(keys, time.monotonic())
        columns.cache.put(kept_as, known, RUN_BYTES + sum(map(len, keys)))
    return frozenset(known.keys)


def _opened(columns: Columns, key: str, fragment: FragmentInfo) -> StoredTexts | None:
    assert columns.objects is not None  # noqa: S101
    try:
        found = open_texts(columns.objects, key, columns.cache)
        if found.rows != fragment.physical_rows:
            raise TextFileUnusable(key, f"it covers {found.rows:,} rows")
    except ObjectNotFound:
        return None
    except TextFileUnusable as damaged:
        _give_up(columns, damaged)
        return None
    return found


def with_segments(columns: Columns, prop: str, work: Callable[[tuple[Placed, ...]], T]) -> T:
    """Do something with the segments of a property; again without a file that turns out to be damaged."""
    unusable: frozenset[str] = frozenset()
    while True:
        try:
            return work(segments(columns, prop, unusable))
        except TextFileUnusable as damaged:
            _give_up(columns, damaged)
            _note_absence(columns, damaged.key)
            unusable |= {damaged.key}


def forget_absence(cache: DerivedCache, root: str, key: str) -> None:
    """A file has been made: forget that it was missing."""
    if isinstance(cache.get((root, key)), _Absent):
        cache.put((root, key), None, 0)


def _give_up(columns: Columns, damaged: TextFileUnusable) -> None:
    """Log which file is damaged, and remove it, so that the next maintenance rebuilds it."""
    log.warning("%s; it is removed, and the texts are read instead", damaged.message)
    try:
        if columns.objects is not None:
            columns.objects.delete([damaged.key])
    except OmnigraphError as refused:
        log.warning("%s could not be removed: %s", damaged.key, refused.message)
