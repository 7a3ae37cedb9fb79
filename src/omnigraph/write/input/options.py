"""How an input is to be read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import unquote

from omnigraph.errors import OmnigraphError, OptionInvalid
from omnigraph.write.input.problems import Misfit

BLOB_ALLOW = "OMNIGRAPH_BLOB_ALLOW"


def _allowed_prefixes() -> tuple[str, ...]:
    return tuple(p for p in os.environ.get(BLOB_ALLOW, "").split(",") if p)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a load that concern reading."""

    nulls: str = "clear"  # a null cell of a table clears the stored value, or keeps it
    assume_timezone: str | None = None  # of date-times without one, in tables
    columns: tuple[
        tuple[str, str], ...
    ] = ()  # names in a table's file, and the properties they fill; none (""): left out
    blob_allow: tuple[str, ...] = field(default_factory=_allowed_prefixes)
    line_bytes_max: int = 32 << 20
    line_structure_max: int = 131_072  # of { } [ ] , : outside texts, in one line
    block_bytes: int = 8 << 20
    compatible: bool = False  # unknown properties are ignored, values of another kind become null
    unpacked_bytes_max: int | None = (
        None  # of the rows of a Parquet or Arrow file nobody vouches for
    )

    def __post_init__(self) -> None:
        if self.nulls not in ("clear", "keep"):
            raise OptionInvalid(f"nulls= is 'clear' or 'keep', not {self.nulls!r}")

    def fetch(self, address: str, name: str) -> bytes:
        """The bytes an address holds, if the allow-list admits it."""
        if any(_is_under(address, prefix) for prefix in self.blob_allow):
            return _read(address, name)
        raise Misfit(
            f"the blob '{name}' names an address; write base64:<data>, or allow its prefix"
            f" with {BLOB_ALLOW}",
            rule="blob_address",
            name=name,
            value=address[:80],
        )


def _is_under(address: str, prefix: str) -> bool:
    """Whether an address lies in the folder a prefix names; one that climbs out of it does not."""
    folder = prefix if prefix.endswith("/") else prefix + "/"
    climbs = any(".." in unquote(address).split(mark) for mark in ("/", "\\"))
    return address.startswith(folder) and not climbs


def _read(address: str, name: str) -> bytes:
    from omnigraph.write.input.files import read_bytes

    try:
        return read_bytes(address)
    except OmnigraphError as failure:
        raise Misfit(f"the blob '{name}' cannot be read: {failure}", name=name) from failure
