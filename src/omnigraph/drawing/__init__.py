"""Pictures without dependencies: text and SVG made from values.

- `schema`   a catalog as a mermaid or SVG diagram
- `history`  commits of all branches as text, as `git log --graph` draws them
- `entities` the nodes and edges among the values of a result, as SVG
- `notebook` the notebook views of a graph, a result, a commit, a diff and a plan
"""

from __future__ import annotations

from omnigraph.drawing.history import draw_history, history_text
from omnigraph.drawing.schema import schema_mermaid, schema_svg

__all__ = [
    "draw_history",
    "history_text",
    "schema_mermaid",
    "schema_svg",
]
