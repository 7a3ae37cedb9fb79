"""Tables of times and ratios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

OURS = "omnigraph"


@dataclass(frozen=True, slots=True)
class Line:
    """One job: milliseconds by engine, whether all were right, and the ratio aimed at."""

    job: str
    times: Mapping[str, float]
    wrong: frozenset[str] = frozenset()
    target: float | None = None
    rivals: frozenset[str] | None = (
        None  # the ratio is to the best of these; of all peers by default
    )

    def best_peer(self) -> str | None:
        """The quickest peer with a right answer."""
        peers = [
            name
            for name in self.times
            if name != OURS
            and name not in self.wrong
            and (self.rivals is None or name in self.rivals)
        ]
        return min(peers, key=self.times.__getitem__, default=None)

    def ratio(self) -> float | None:
        best = self.best_peer()
        if best is None or OURS not in self.times:
            return None
        return self.times[OURS] / self.times[best]


def head(engines: Sequence[str]) -> str:
    """The first two rows of a table in Markdown, so that it can be copied into a document."""
    heads = ["ms", *engines, "ours / best peer", "target at M"]
    return _row(heads) + "\n" + _row(["---", *["---:"] * (len(heads) - 1)])


def row(line: Line, engines: Sequence[str]) -> str:
    return _row(_cells(line, engines))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(line: Line, engines: Sequence[str]) -> Iterable[str]:
    yield line.job
    for name in engines:
        mark = " WRONG" if name in line.wrong else ""
        yield _figure(line.times[name]) + mark if name in line.times else "-"
    ratio = line.ratio()
    yield "-" if ratio is None else f"{_figure(ratio)} ({line.best_peer()})"
    yield "-" if line.target is None else f"{line.target:g}"


def _figure(value: float) -> str:
    """Three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if value < 1 else f"{value:.3g}"
