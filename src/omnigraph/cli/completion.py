"""What may be written next in a query, from the schema and what stands before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from omnigraph.lang.query.calls import function_names
from omnigraph.model.catalog import Catalog

KEYWORDS = (
    "match", "return", "order", "limit", "skip", "having", "not", "exists", "optional", "union", "query",
    "insert", "update", "delete", "set", "where", "and", "or", "as", "asc", "desc", "distinct",
)  # fmt: skip
_PROPERTY = re.compile(r"\$(?P<variable>\w+)\.(?P<start>\w*)")
_BINDING = re.compile(r"\$(?P<variable>\w+)\s*:\s*(?P<type>\w+)")
_AFTER_COLON = re.compile(r"\$\w+\s*:\s*$")
_AFTER_VARIABLE = re.compile(r"(^|[{}\n]|\$\w+|\w)\s*\$\w+\s+$")
_AFTER_STATEMENT = re.compile(r"\b(insert|update|delete)\s+$")


class Completer:
    """Completes words of queries about one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def candidates(self, before: str, word: str) -> list[str]:
        """The words that may stand where `word` was begun, after the text `before`."""
        return sorted({found for found in self._options(before, word) if found.startswith(word)})

    def _options(self, before: str, word: str) -> Iterable[str]:
        reading = _PROPERTY.fullmatch(word)
        if reading is not None:
            names = self._properties(reading["variable"], before)
            return (f"${reading['variable']}.{name}" for name in names)
        if _AFTER_COLON.search(before):
            return (*self.catalog.nodes, *self.catalog.interfaces)
        if _AFTER_STATEMENT.search(before):
            return (*self.catalog.nodes, *self.catalog.edges)
        if _AFTER_VARIABLE.search(before):
            return self._edges()
        if word.startswith("$"):
            return (f"${m['variable']}" for m in _BINDING.finditer(before))
        return (*KEYWORDS, *function_names(), *self.catalog.nodes, *self._edges())

    def _edges(self) -> Iterator[str]:
        """Edges as patterns write them: with a small first letter."""
        return (name[0].lower() + name[1:] for name in self.catalog.edges)

    def _properties(self, variable: str, before: str) -> set[str]:
        """Those of the variable's type; all there are where its type is not written."""
        bound = {m["variable"]: m["type"] for m in _BINDING.finditer(before)}
        name = bound.get(variable)
        if name is not None and name in self.catalog.interfaces:
            return {"id", *self.catalog.interfaces[name].properties}
        kind = self.catalog.entity(name) if name else None
        kinds = [kind] if kind else list(self.catalog.entities())
        return {"id"} | {name for kind in kinds for name in kind.properties}
