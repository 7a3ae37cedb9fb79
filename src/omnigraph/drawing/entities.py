"""The nodes and edges among the values of rows, drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from omnigraph.drawing.places import spread

NODES_MAX = 300
WIDTH, HEIGHT, MARGIN = 720, 480, 40
COLOURS = ("#2563eb", "#059669", "#d97706", "#db2777", "#7c3aed", "#0891b2", "#65a30d", "#dc2626")
STYLE = (
    "text{font:11px ui-sans-serif,system-ui,sans-serif;fill:#1f2937}"
    ".edge{fill:#6b7280;font-size:10px;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:3px}"
    "path{stroke:#94a3b8;fill:none}circle{stroke:#fff;stroke-width:1.5}"
)
LABELS = ("name", "title", "label", "id")


@dataclass(slots=True)
class Entities:
    """What is to be drawn, in the order in which it was met."""

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # id to ends and type

    def add(self, value: Any) -> None:
        match value:
            case {"id": str(id), "type": str(kind), "from": str(a), "to": str(b)}:
                self.edges[id] = (a, b, kind)
                self._node(a, {})
                self._node(b, {})
            case {"id": str(id), "type": str()}:
                self._node(id, value)
            case {"nodes": list(nodes), "edges": list(edges)}:
                for node in nodes:
                    self._node(node, {})
                for id, a, b in zip(edges, nodes, nodes[1:], strict=False):
                    self.edges.setdefault(id, (a, b, ""))
            case list():
                for item in value:
                    self.add(item)

    def _node(self, id: str, value: Mapping[str, Any]) -> None:
        if id in self.nodes or len(self.nodes) < NODES_MAX:
            self.nodes[id] = {**self.nodes.get(id, {}), **value}


def entities_of(rows: Iterable[Mapping[str, Any]]) -> Entities:
    """All entities and paths in the values of rows."""
    found = Entities()
    for row in rows:
        for value in row.values():
            found.add(value)
    return found


def entities_svg(rows: Iterable[Mapping[str, Any]]) -> str:
    """A drawing of the entities in rows; at most 300 nodes."""
    found = entities_of(rows)
    order = {id: index for index, id in enumerate(found.nodes)}
    drawn = [(a, b, kind) for a, b, kind in found.edges.values() if a in order and b in order]
    places = spread(len(order), [(order[a], order[b]) for a, b, _ in drawn])
    at = {id: _scaled(places[index]) for id, index in order.items()}
    kinds = {
        kind: i for i, kind in enumerate(dict.fromkeys(_kind(v) for v in found.nodes.values()))
    }
    body = [_edge(at[a], at[b], kind) for a, b, kind in drawn]
    body += [_node(at[id], id, value, kinds[_kind(value)]) for id, value in found.nodes.items()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{len(order)} nodes, {len(drawn)} edges">'
        f"<style>{STYLE}</style>" + "".join(body) + "</svg>"
    )


def entities_html(rows: Iterable[Mapping[str, Any]], title: str = "omnigraph") -> str:
    """The drawing as a page of its own."""
    svg = entities_svg(rows)
    return f'<!doctype html><meta charset="utf-8"><title>{escape(title)}</title><h1>{escape(title)}</h1>{svg}'


def _kind(value: Mapping[str, Any]) -> str:
    return str(value.get("type", ""))


def _scaled(place: tuple[float, float]) -> tuple[float, float]:
    return MARGIN + place[0] * (WIDTH - 2 * MARGIN), MARGIN + place[1] * (HEIGHT - 2 * MARGIN)


def _edge(a: tuple[float, float], b: tuple[float, float], kind: str) -> str:
    middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
    line = f'<path d="M{a[0]:.1f} {a[1]:.1f} L{b[0]:.1f} {b[1]:.1f}"/>'
    return (
        line + f'<text class="edge" x="{middle[0]:.1f}" y="{middle[1]:.1f}">{escape(kind)}</text>'
    )


def _node(at: tuple[float, float], id: str, value: Mapping[str, Any], colour: int) -> str:
    label = next((str(value[name]) for name in LABELS if value.get(name) is not None), id)
    tip = escape(", ".join(f"{k}: {v}" for k, v in value.items()) or id)
    fill = COLOURS[colour % len(COLOURS)]
    circle = f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="7" fill="{fill}"><title>{tip}</title></circle>'
    return circle + f'<text x="{at[0] + 10:.1f}" y="{at[1] + 4:.1f}">{escape(label[:32])}</text>'
