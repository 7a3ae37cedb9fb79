"""All violations of a write, in a file: more than a report can hold.

One JSON object per line, in the form of the report. Violations are packed where they are found, so that one process
can find them and another list them.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

from omnigraph.errors import OmnigraphError, OptionInvalid, Violation
from omnigraph.model.frozen import frozen
from omnigraph.validate.findings import VIOLATIONS_MAX

log = logging.getLogger("omnigraph.validate")
EVERY = 2**62  # no bound on what a check may find
PACKED_AT_ONCE = 10_000
LISTED_MAX = 2_000_000  # by one finder; any beyond that are only counted
PACKING_LEVEL = 1


@frozen
class Packed:
    """Some violations: how many of each rule, and a line about each of them."""

    counts: dict[str, int]
    lines: bytes


def packed(found: Iterable[Violation], listed_max: int = LISTED_MAX) -> Iterator[Packed]:
    """The violations in portions; lines beyond `listed_max` are left out, but counted."""
    found, room = iter(found), listed_max
    while portion := list(islice(found, PACKED_AT_ONCE)):
        listed = portion[:room]
        room -= len(listed)
        text = "".join(json.dumps(v.to_json(), default=str) + "\n" for v in listed)
        counts = dict(Counter(violation.rule for violation in portion))
        yield Packed(counts, zlib.compress(text.encode(), PACKING_LEVEL))


@dataclass(slots=True)
class Listing:
    """A file of violations that is being written."""

    file: Path
    listed: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, portion: Packed, out: IO[bytes]) -> None:
        lines = zlib.decompress(portion.lines)
        out.write(lines)
        self.listed += lines.count(b"\n")
        self.counts.update(portion.counts)

    def annotated(self, error: OmnigraphError) -> OmnigraphError:
        """The same error, extended with counts and the path of the file."""
        total = self.counts.total()
        each = ", ".join(f"{count:,} {rule}" for rule, count in sorted(self.counts.items()))
        share = "All of them" if self.listed == total else f"{self.listed:,} of {total:,}"
        return type(error)(
            f"{error.message}; in total: {each}",
            help=f"{error.help} {share} are listed in {self.file}, one JSON object per line.",
            details={
                **error.details,
                "counts": dict(sorted(self.counts.items())),
                "listed": self.listed,
                "violations_file": str(self.file),
            },
        )


@frozen
class Destination:
    """Where files of violations go, and whether one is written even if a report can hold everything."""

    folder: Path
    always: bool = False


def named(folder: str | os.PathLike[str]) -> Destination:
    """The given folder; created if missing."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise OptionInvalid(f"violations cannot be listed in {place}: {refused}") from refused
    return Destination(place, always=True)


@contextmanager
def listing(to: Destination | None, everything: Callable[[], Iterable[Packed]]) -> Iterator[None]:
    """A rejection within the block names a file of all violations, which are searched only then."""
    try:
        yield
    except OmnigraphError as error:
        found = error.details.get("violations")
        short = error.details.get("more") or (found and len(found) >= VIOLATIONS_MAX)
        if not found or to is None or not (short or to.always):
            raise
        try:
            made = listed_in(to.folder, everything())
        except Exception as failed:  # the violations matter more than the file
            log.warning("the violations could not be listed in %s: %s", to.folder, f"{failed}")
            raise error from None
        raise made.annotated(error) from None


def listed_in(folder: Path, portions: Iterable[Packed]) -> Listing:
    """Write a new file. It quotes rows, so only its owner may read it."""
    handle, name = tempfile.mkstemp(".ndjson", "omnigraph-violations-", folder)
    made = Listing(Path(name))
    try:
        with os.fdopen(handle, "wb") as out:
            for portion in portions:
                made.add(portion, out)
    except BaseException:
        made.file.unlink()
        raise
    return made
