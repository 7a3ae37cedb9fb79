"""How an input is read."""

from __future__ import annotations

import codecs
import os
from dataclasses import field
from urllib.parse import unquote

from omnigraph.errors import OmnigraphError, OptionInvalid
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType, Scalar
from omnigraph.values.misfit import Misfit, unfit
from omnigraph.values.reading import EXPECTED, ReadingContext
from omnigraph.write.repeats import AS_IT_IS, Repeats

BLOB_ALLOW = "OMNIGRAPH_BLOB_ALLOW"


@frozen
class CsvFormat:
    """How the cells of CSV files are written."""

    delimiter: str | None = None  # by the ending of the file: a tab for .tsv, else a comma
    quote: str = '"'  # empty if cells are never quoted
    names: tuple[str, ...] = ()  # of the columns, if the file has no header line
    null_text: str = ""  # the text of an unquoted cell without a value
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        single = (("delimiter", self.delimiter or ","), ("quote", self.quote or '"'))
        for name, mark in single:
            if len(mark.encode("utf-8", "replace")) != 1 or mark in "\r\n":
                raise OptionInvalid(f"the {name} of CSV files is one ASCII character, not {mark!r}")
        if self.quote == (self.delimiter or ","):
            raise OptionInvalid("CSV files need a delimiter and a quote that differ")
        if len(set(self.names)) < len(self.names) or not all(self.names):
            raise OptionInvalid("the names of CSV columns must be unique texts")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise OptionInvalid(f"unknown encoding {self.encoding!r}") from None


def _allowed_prefixes() -> tuple[str, ...]:
    return tuple(p for p in os.environ.get(BLOB_ALLOW, "").split(",") if p)


@frozen
class Options:
    """The options of a load that concern reading."""

    nulls: str = "clear"  # a null cell of a table clears the stored value, or keeps it
    assume_timezone: str | None = None  # of date-times without one, in tables
    # Names in a table's file, and the properties they fill; empty (""): left out.
    columns: tuple[tuple[str, str], ...] = ()
    csv: CsvFormat = CsvFormat()
    blob_allow: tuple[str, ...] = field(default_factory=_allowed_prefixes)
    line_bytes_max: int = 32 << 20
    line_structure_max: int = 131_072  # of { } [ ] , : outside texts, in one line
    block_bytes: int = 8 << 20
    compatible: bool = False  # unknown properties are ignored, values of another kind become null
    repeats: Repeats = AS_IT_IS  # how several rows with one id are handled
    # A new file for rows that cannot be loaded; without one, a load with such rows is rejected.
    quarantine: str | None = None
    failures_max: int | None = None  # rows that may go there; with more, the load is rejected
    # Of the rows of a Parquet or Arrow file from outside.
    unpacked_bytes_max: int | None = None

    def __post_init__(self) -> None:
        if self.failures_max is not None and (self.quarantine is None or self.failures_max < 0):
            raise OptionInvalid("failures_max needs a quarantine, and must not be negative")
        if self.nulls not in ("clear", "keep"):
            raise OptionInvalid(f"nulls= is 'clear' or 'keep', not {self.nulls!r}")

    @property
    def context(self) -> ReadingContext:
        """The reading context of these options."""
        return ReadingContext(self.assume_timezone, self.fetch)

    def fetch(self, address: str) -> bytes:
        """The bytes an address holds, if the allow-list permits it."""
        if any(_is_under(address, prefix) for prefix in self.blob_allow):
            return _read(address)
        wanted = f"{EXPECTED[Scalar.BLOB]}, or an address under {BLOB_ALLOW}"
        raise unfit(wanted, address, rule="blob_address")


def _is_under(address: str, prefix: str) -> bool:
    """Whether an address is in the folder of a prefix; one that climbs out of it is not."""
    folder = prefix if prefix.endswith("/") else prefix + "/"
    climbs = any(".." in unquote(address).split(mark) for mark in ("/", "\\"))
    return address.startswith(folder) and not climbs


def _read(address: str) -> bytes:
    from omnigraph.write.input.files import read_bytes

    try:
        return read_bytes(address)
    except OmnigraphError as failure:
        raise Misfit(f"expected an address that can be read: {failure}") from failure


def placed(misfit: Misfit, name: str, kind: PropType) -> Misfit:
    """A misfit of a property, with a hint for loads."""
    if misfit.rule == "timezone":
        misfit.message += "; set it with assume_timezone="
    return misfit.at(f"'{name}'", kind, name)
