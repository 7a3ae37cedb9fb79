"""The segments of a text property of one table version: built once, and shared by every version that can share them.

Consecutive fragments form runs, each longer than the run behind it. A commit that appends changes the last runs only,
which are short; there are never more than about log2(rows) of them. Segments cover physical rows, so a deletion leaves
them as they are: a segment serves every version whose live rows were live when it was built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.read.search.analyzer import Analyzer, analyzer_of
from omnigraph.read.search.segment import Segment, build_segment
from omnigraph.read.search.source import Bools, Columns
from omnigraph.storage.tables import FragmentInfo

RUN_BYTES = 256  # what a run costs in the cache, roughly


@dataclass(frozen=True, slots=True)
class Run:
    """Some consecutive fragments."""

    start: int
    stop: int
    fragments: tuple[FragmentInfo, ...]

    @property
    def size(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class _Kept:
    """A segment in the cache, with the rows that existed when its column was read (None: all)."""

    segment: Segment
    live: Bools | None

    def serves(self, live: Bools | None) -> bool:
        if self.live is None:
            return True
        return live is not None and not bool((live & ~self.live).any())


def segments(columns: Columns, prop: str) -> tuple[Segment, ...]:
    """The segments of a property, from the first position to the last."""
    analyzer = analyzer_of(columns.kind.properties[prop])
    runs = columns.derived(
        "search/runs",
        lambda: runs_of(columns.fragments),
        lambda found: RUN_BYTES * (1 + len(found)),
    )
    return tuple(_segment(columns, prop, analyzer, run) for run in runs)


def runs_of(fragments: Sequence[FragmentInfo]) -> tuple[Run, ...]:
    """The runs of a list of fragments; appending a fragment leaves all but the last ones as they were."""
    runs: list[Run] = []
    start = 0
    for fragment in fragments:
        run = Run(start, start + fragment.physical_rows, (fragment,))
        while runs and runs[-1].size <= run.size:
            before = runs.pop()
            run = Run(before.start, run.stop, before.fragments + run.fragments)
        runs.append(run)
        start = run.stop
    return tuple(runs)


def _segment(columns: Columns, prop: str, analyzer: Analyzer, run: Run) -> Segment:
    cells = tuple(columns.cells(prop, fragment) for fragment in run.fragments)
    key = (*columns.identity[:-1], "text", cells, analyzer.signature)
    live = None if columns.live is None else columns.live[run.start : run.stop]
    kept = columns.cache.get(key)
    if not isinstance(kept, _Kept) or not kept.serves(live):
        texts = columns.column(prop).slice(run.start, run.size)
        kept = _Kept(build_segment(texts, analyzer), live)
        columns.cache.put(key, kept, kept.segment.nbytes)
    return kept.segment
