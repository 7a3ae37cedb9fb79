"""Values as the TCK writes them and as results hold them, in one form that can be compared."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

from omnigraph.lang import ir
from omnigraph.values.temporal.operations import text

TOKEN = re.compile(
    r"\s*(?:(?P<string>'(?:[^'\\]|\\.)*')|(?P<number>-?(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*|`[^`]*`)|(?P<symbol><-|->|[()\[\]{}:,<>|-]))"
)


class Expected:
    """A reader of the TCK's notation."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self) -> str:
        found = TOKEN.match(self.text, self.at)
        return "" if found is None else found[0].strip()

    def take(self) -> str:
        found = TOKEN.match(self.text, self.at)
        if found is None:
            raise ValueError(f"cannot read {self.text!r} at {self.at}")
        self.at = found.end()
        return found[0].strip()

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise ValueError(f"expected {token} in {self.text!r}")

    def value(self) -> Any:
        token = self.peek()
        if token.startswith("'"):
            return re.sub(r"\\(.)", r"\1", self.take()[1:-1])
        if re.match(r"-?\.?\d", token):
            self.take()
            return float(token) if re.search(r"[.eE]", token) else int(token)
        if token == "-":  # noqa: S105
            self.take()
            return -self.value()
        match token:
            case "[":
                return self.list_or_rel()
            case "{":
                return ("map", frozenset(self.properties().items()))
            case "(":
                return self.node()
            case "<":
                return self.path()
        self.take()
        known = {"true": True, "false": False, "null": None, "NaN": math.nan, "Inf": math.inf}
        return known[token]

    def list_or_rel(self) -> Any:
        self.expect("[")
        if self.peek() == ":":
            return self.rel_body()
        items = []
        while self.peek() != "]":
            items.append(self.value())
            if self.peek() == ",":
                self.take()
        self.take()
        return ("list", tuple(items))

    def rel_body(self) -> Any:
        self.expect(":")
        name = self.take().strip("`")
        props = self.properties() if self.peek() == "{" else {}
        self.expect("]")
        return ("rel", name, frozenset(props.items()))

    def properties(self) -> dict[str, Any]:
        self.expect("{")
        found = {}
        while self.peek() != "}":
            name = self.take().strip("`")
            self.expect(":")
            found[name] = self.value()
            if self.peek() == ",":
                self.take()
        self.take()
        return {k: v for k, v in found.items() if v is not None}

    def node(self) -> Any:
        self.expect("(")
        labels = set()
        while self.peek() == ":":
            self.take()
            labels.add(self.take().strip("`"))
        props = self.properties() if self.peek() == "{" else {}
        self.expect(")")
        return ("node", frozenset(labels), frozenset(props.items()))

    def path(self) -> Any:
        self.expect("<")
        parts = [self.node()]
        while self.peek() != ">":
            backwards = self.peek() == "<-"
            self.take()
            self.expect("[")
            rel = self.rel_body()
            end = self.take()
            parts += [(rel, "<" if backwards else ">"), self.node()]
            assert backwards or end == "->"
        self.take()
        return ("path", tuple(parts))


def expected(text: str) -> Any:
    """The value a cell of an expected table stands for."""
    return settled(Expected(text).value())


def settled(value: Any) -> Any:
    """NaN equals itself here, and numbers keep their kind."""
    match value:
        case bool() | None | str():
            return value
        case float() if math.isnan(value):
            return "NaN"
        case float() | int():
            return (type(value).__name__, value)
        case tuple():
            return tuple(settled(part) for part in value)
        case frozenset():
            return frozenset(settled(part) for part in value)
        case _:
            return value


class Actual:
    """What results hold, in the same form; entities by what the runner knows of their types."""

    def __init__(
        self,
        labels: dict[str, frozenset[str]],
        rels: dict[str, str],
        nodes: dict[str, Any],
        edges: dict[str, Any],
    ) -> None:
        self.labels, self.rels, self.nodes, self.edges = labels, rels, nodes, edges

    def value(self, value: Any, kind: ir.ValueType) -> Any:
        return settled(self._value(value, kind))

    def _value(self, value: Any, kind: ir.ValueType) -> Any:
        if value is None:
            return None
        match kind:
            case ir.EntityValue():
                return self.entity(value)
            case ir.PathValue():
                return self.path(value)
            case ir.ListValue(item):
                return ("list", tuple(self._value(v, item) for v in value))
            case ir.MapValue(fields):
                held = {n: self._value(value[n], k) for n, k in fields if value[n] is not None}
                return ("map", frozenset(held.items()))
        if isinstance(value, list | tuple):
            return ("list", tuple(self._value(v, kind) for v in value))
        return text(value) if isinstance(value, dt.date) else value

    def entity(self, value: dict[str, Any]) -> Any:
        own = {"id", "type", "from", "to"} if "from" in value else {"id", "type"}
        props = frozenset(
            (k, self._value(v, ir.STRING))
            for k, v in value.items()
            if k not in own and v is not None
        )
        if "from" in value:
            return ("rel", self.rels[value["type"]], props)
        return ("node", self.labels[value["type"]], props)

    def path(self, value: dict[str, Any]) -> Any:
        parts: list[Any] = [self.entity(self.nodes[value["nodes"][0]])]
        for edge, before, after in zip(
            value["edges"], value["nodes"], value["nodes"][1:], strict=False
        ):
            stored = self.edges[edge]
            way = ">" if stored["from"] == before else "<"
            parts += [(self.entity(stored), way), self.entity(self.nodes[after])]
        return ("path", tuple(parts))
