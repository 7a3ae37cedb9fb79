"""Input of a load besides plain data: several sources together, as pipeline files declare them."""

from __future__ import annotations

from typing import Any

from omnigraph.model.frozen import frozen
from omnigraph.write.input.mapping import Wide
from omnigraph.write.input.options import CsvFormat


@frozen
class Mapped:
    """A file of rows with other column names: pairs of a name in the file and a property."""

    path: str
    columns: tuple[tuple[str, str], ...] = ()
    csv: CsvFormat | None = None


@frozen
class Sources:
    """Several inputs of one load: files of graph records, tables by type, and wide tables with their mappings."""

    records: tuple[str, ...] = ()
    tables: tuple[tuple[str, Any], ...] = ()
    wide: tuple[Wide, ...] = ()
