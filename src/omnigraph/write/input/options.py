"""How an input is read."""

from __future__ import annotations

import codecs
import os
from dataclasses import field
from urllib.parse import unquote

from omnigraph.errors import OmnigraphError, OptionInvalid
from omnigraph.model.frozen import frozen
from omnigraph.model.types import Scalar
from omnigraph.values.misfit import Misfit, unfit
from omnigraph.values.reading import EXPECTED, ReadingContext
from omnigraph.write.repeats import AS_IT_IS, Repeats

BLOB_ALLOW = "OMNIGRAPH_BLOB_ALLOW"


@frozen
class CsvFormat:
    """How the cells of CSV files are written.

    - `delimiter`: between cells; by default a tab in `.tsv` files, a comma in others
    - `quote`: around cells; empty if there is none
    - `names`: of the columns, if the file has no header line
    - `null_text`: the text of an unquoted cell without a value
    - `encoding`: of the file
    """

    delimiter: str | None = None
    quote: str = '"'
    names: tuple[str, ...] = ()
    null_text: str = ""
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
    """The options of a load that concern reading.

    - `nulls`: a null cell of a table clears the stored value (`clear`) or keeps it (`keep`)
    - `assume_timezone`: the zone of date-times without one, such as `Europe/Rome`
    - `columns`: pairs of a name in a table's file and the property it fills; `""` leaves the column out
    - `csv`: how CSV files are written
    - `repeats`: what happens to several rows of one id
    - `quarantine`: a new file for rows that cannot be loaded; without one, a load with such rows is rejected
    - `failures_max`: how many rows may go there; with more, the load is rejected
    - `compatible`: unknown properties are ignored, and values of another kind become null
    - `blob_allow`: addresses below which blobs are fetched; by default those in `OMNIGRAPH_BLOB_ALLOW`
    - `line_bytes_max`, `line_structure_max`: bounds of a line: its bytes, and its `{ } [ ] , :` outside texts
    - `block_bytes`: how much of a file is read at once
    - `unpacked_bytes_max`: a bound of the rows of a Parquet or Arrow file from outside
    """

    nulls: str = "clear"
    assume_timezone: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    csv: CsvFormat = CsvFormat()
    blob_allow: tuple[str, ...] = field(default_factory=_allowed_prefixes)
    line_bytes_max: int = 32 << 20
    line_structure_max: int = 131_072
    block_bytes: int = 8 << 20
    compatible: bool = False
    repeats: Repeats = AS_IT_IS
    quarantine: str | None = None
    failures_max: int | None = None
    unpacked_bytes_max: int | None = None

    def __post_init__(self) -> None:
        if self.failures_max is not None and (self.quarantine is None or self.failures_max < 0):
            raise OptionInvalid("failures_max needs a quarantine, and must not be negative")
        if self.nulls not in ("clear", "keep"):
            raise OptionInvalid(f"nulls= is 'clear' or 'keep', not {self.nulls!r}")
        if self.assume_timezone is not None:
            _check_zone(self.assume_timezone)

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


def _check_zone(name: str) -> None:
    from omnigraph.values.temporal.kinds import TemporalInvalid
    from omnigraph.values.temporal.zones import is_zone

    try:
        if not is_zone(name):
            raise OptionInvalid(f"assume_timezone is the name of a zone, not an offset: {name!r}")
    except TemporalInvalid as bad:
        raise OptionInvalid(bad.message, help=bad.help) from None


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
