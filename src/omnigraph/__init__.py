"""omnigraph: a lakehouse graph database for Python.

import omnigraph

g = omnigraph.init("people", schema="node Person { name: String @key }")
g = omnigraph.open("people")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Kind, OmnigraphError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.opening import init, open
    from omnigraph.outcomes import Commit
    from omnigraph.write.infer import infer
    from omnigraph.write.input.change_records import DEBEZIUM, DELTA, ChangeFormat
    from omnigraph.write.input.mapping import RowMap, Wide
    from omnigraph.write.input.options import CsvFormat, Options
    from omnigraph.write.repeats import Repeats

__version__ = "0.1.0"
__all__ = [
    "DEBEZIUM",
    "DELTA",
    "ChangeFormat",
    "Commit",
    "CsvFormat",
    "Graph",
    "Kind",
    "OmnigraphError",
    "Options",
    "Repeats",
    "RowMap",
    "Wide",
    "__version__",
    "infer",
    "init",
    "open",
]

_LAZY = {
    "Graph": "graph",
    "Commit": "outcomes",
    "init": "opening",
    "open": "opening",
    "Options": "write.input.options",
    "CsvFormat": "write.input.options",
    "Repeats": "write.repeats",
    "RowMap": "write.input.mapping",
    "Wide": "write.input.mapping",
    "ChangeFormat": "write.input.change_records",
    "DEBEZIUM": "write.input.change_records",
    "DELTA": "write.input.change_records",
    "infer": "write.infer",
}


def __getattr__(name: str) -> Any:
    """The heavy names are imported when they are first used, so that `import omnigraph` stays quick."""
    if name not in _LAZY:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    return getattr(import_module(f"omnigraph.{_LAZY[name]}"), name)
