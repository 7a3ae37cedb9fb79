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

__version__ = "0.1.0"
__all__ = ["Commit", "Graph", "Kind", "OmnigraphError", "__version__", "init", "open"]

_LAZY = {"Graph": "graph", "Commit": "outcomes", "init": "opening", "open": "opening"}


def __getattr__(name: str) -> Any:
    """The heavy names are imported when they are first used, so that `import omnigraph` stays quick."""
    if name not in _LAZY:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    return getattr(import_module(f"omnigraph.{_LAZY[name]}"), name)
