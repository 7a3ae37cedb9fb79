"""A catalog as a diagram: node types are cards, edge types are arrows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from html import escape

from omnigraph.model.catalog import Catalog, EdgeType, EntityType, NodeType
from omnigraph.model.frozen import frozen

CARD_PROPERTIES_MAX = 8
LINE, CARD, GAP, MARGIN = 18, 210, 110, 24
STYLE = (
    ".og-schema{background:#fff}.og-schema text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#1f2937}"
    ".og-schema .name{font-weight:600;font-size:13px}.og-schema .type{fill:#6b7280}"
    ".og-schema .edge{fill:#374151;font-size:11px;paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".og-schema rect{fill:#fff;stroke:#94a3b8}.og-schema .head{fill:#e2e8f0}"
    ".og-schema path{fill:none;stroke:#64748b;stroke-width:1.3}"
)


def schema_mermaid(catalog: Catalog) -> str:
    """A class diagram that mermaid draws."""
    lines = ["classDiagram"]
    for node in catalog.nodes.values():
        lines.append(f"  class {node.name} {{")
        lines += [f"    {_plain(type_)} {name}{mark}" for name, type_, mark in _members(node)]
        lines.append("  }")
    for edge in catalog.edges.values():
        many = "" if edge.cardinality.is_free else f' "{edge.cardinality}"'
        lines.append(f"  {edge.from_type}{many} --> {edge.to_type} : {edge.name}")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Mermaid reads brackets and commas as its own."""
    return re.sub(r"[()\[\]]", "~", text).replace(",", "").replace(" ", "_")


def _members(kind: EntityType) -> Iterator[tuple[str, str, str]]:
    key = kind.key or ()
    for prop in sorted(kind.properties.values(), key=lambda p: p.name not in key):
        yield prop.name, _short(str(prop.type)), " @key" if prop.name in key else ""


def _short(text: str) -> str:
    return text if len(text) <= 22 else text[:21] + "…"


# --- SVG ---------------------------------------------------------------------------------------------------------


@frozen
class Card:
    """A node type and its place."""

    node: NodeType
    x: float
    y: float
    height: float

    @property
    def centre(self) -> tuple[float, float]:
        return self.x + CARD / 2, self.y + self.height / 2


def schema_svg(catalog: Catalog, counts: Mapping[str, int] | None = None) -> str:
    """A picture of a catalog; `counts` are shown beside the names."""
    cards = {card.node.name: card for card in _cards(catalog)}
    width = max((card.x + CARD for card in cards.values()), default=0) + MARGIN
    height = max((card.y + card.height for card in cards.values()), default=0) + MARGIN + 20
    body = [*_arrows(catalog, cards, counts or {})]
    body += [part for card in cards.values() for part in _card(card, counts or {})]
    return (
        f'<svg class="og-schema" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="schema">'
        f"<style>{STYLE}</style>"
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8" style="fill:#64748b"/></marker></defs>' + "".join(body) + "</svg>"
    )


def _cards(catalog: Catalog) -> Iterator[Card]:
    """Rows of cards, as many columns as rows."""
    nodes = [catalog.nodes[name] for name in sorted(catalog.nodes)]
    columns = max(1, math.ceil(math.sqrt(len(nodes))))
    y = float(MARGIN)
    for start in range(0, len(nodes), columns):
        row = nodes[start : start + columns]
        heights = [LINE * (1.6 + min(len(n.properties), CARD_PROPERTIES_MAX + 1)) for n in row]
        for column, (node, height) in enumerate(zip(row, heights, strict=True)):
            yield Card(node, MARGIN + column * (CARD + GAP), y, height)
        y += max(heights) + GAP * 0.8


def _card(card: Card, counts: Mapping[str, int]) -> Iterator[str]:
    x, y = card.x, card.y
    yield f'<rect x="{x}" y="{y}" width="{CARD}" height="{card.height}" rx="6"/>'
    yield f'<rect class="head" x="{x}" y="{y}" width="{CARD}" height="{LINE * 1.4}" rx="6"/>'
    yield _text(x + 8, y + LINE, _counted(card.node.name, counts), "name")
    members = list(_members(card.node))
    for index, (name, type_, mark) in enumerate(members[:CARD_PROPERTIES_MAX]):
        line = y + LINE * (2.3 + index)
        yield _text(x + 8, line, name + mark, "")
        yield _text(x + CARD - 8, line, type_, "type", anchor="end")
    if len(members) > CARD_PROPERTIES_MAX:
        rest = f"… {len(members) - CARD_PROPERTIES_MAX} more"
        yield _text(x + 8, y + LINE * (2.3 + CARD_PROPERTIES_MAX), rest, "type")


def _counted(name: str, counts: Mapping[str, int]) -> str:
    return f"{name} · {counts[name]:,}" if name in counts else name


def _arrows(
    catalog: Catalog, cards: Mapping[str, Card], counts: Mapping[str, int]
) -> Iterator[str]:
    drawn: dict[frozenset[str], int] = {}
    for edge in catalog.edges.values():
        ends = frozenset((edge.from_type, edge.to_type))
        nth = drawn.get(ends, 0)
        drawn[ends] = nth + 1
        if edge.from_type == edge.to_type:
            yield from _loop(edge, cards[edge.from_type], nth, counts)
        else:
            yield from _arrow(edge, cards[edge.from_type], cards[edge.to_type], nth, counts)


def _loop(edge: EdgeType, card: Card, nth: int, counts: Mapping[str, int]) -> Iterator[str]:
    x, y, size = card.x + CARD - 40 - 46 * nth, card.y + card.height, 34
    yield f'<path marker-end="url(#end)" d="M{x} {y} c0 {size} 26 {size} 26 0"/>'
    yield _text(x + 13, y + size * 0.75 + 12, _counted(edge.name, counts), "edge", anchor="middle")


def _arrow(
    edge: EdgeType, start: Card, end: Card, nth: int, counts: Mapping[str, int]
) -> Iterator[str]:
    (ax, ay), (bx, by) = _border(start, end.centre), _border(end, start.centre)
    bend = (nth + 1) // 2 * 34 * (1 if nth % 2 else -1)
    length = math.hypot(bx - ax, by - ay) or 1
    mx = (ax + bx) / 2 - (by - ay) / length * bend
    my = (ay + by) / 2 + (bx - ax) / length * bend
    yield f'<path marker-end="url(#end)" d="M{ax:.1f} {ay:.1f} Q{mx:.1f} {my:.1f} {bx:.1f} {by:.1f}"/>'
    at = ((ax + bx) / 2 + mx) / 2, ((ay + by) / 2 + my) / 2
    yield _text(at[0], at[1] - 4, _counted(edge.name, counts), "edge", anchor="middle")


def _border(card: Card, towards: tuple[float, float]) -> tuple[float, float]:
    """Where a line from the middle of a card to a point leaves the card."""
    x, y = card.centre
    dx, dy = towards[0] - x, towards[1] - y
    scale = min(
        CARD / 2 / abs(dx) if dx else math.inf, card.height / 2 / abs(dy) if dy else math.inf
    )
    return x + dx * scale, y + dy * scale


def _text(x: float, y: float, text: str, style: str, anchor: str = "start") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(text)}</text>'
