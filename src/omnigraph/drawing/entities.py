"""The nodes and edges among the values of rows, drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2s
from html import escape
from typing import Any

from omnigraph.wording import counted

NODES_MAX = 300
WIDTH_MAX, HEIGHT_MAX, MARGIN = 720, 480, 40
COLOURS = ("#2563eb", "#059669", "#d97706", "#db2777", "#7c3aed", "#0891b2", "#65a30d", "#dc2626")
STYLE = (
    ".og{background:#fff}.og text{font:11px ui-sans-serif,system-ui,sans-serif;fill:#1f2937;"
    "paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".og .edge{fill:#6b7280;font-size:10px;text-anchor:middle}"
    ".og path{stroke:#94a3b8;fill:none}.og circle{stroke:#fff;stroke-width:1.5}"
    ".og [data-n]{cursor:grab}.og [data-n]:hover circle{stroke:#1f2937}"
)
ARROW = (
    '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" style="fill:#94a3b8;stroke:none"/></marker></defs>'
)
SCRIPT = """name => document.querySelectorAll(`#${name}:not([data-ready])`).forEach(svg => {
  svg.dataset.ready = 1;
  const view = svg.viewBox.baseVal, whole = [view.x, view.y, view.width, view.height];
  const spot = n => svg.querySelector(`[data-n="${n}"]`).transform.baseVal[0].matrix;
  const draw = edge => {
    const a = spot(edge.dataset.a), b = spot(edge.dataset.b), [line, word] = edge.children;
    const far = Math.hypot(b.e - a.e, b.f - a.f), part = (far - 9) / far, loop = far < 14;
    line.setAttribute('d', loop ? `M${a.e - 5} ${a.f - 5} c-16 -26 26 -26 11 -2`
      : `M${a.e} ${a.f} L${a.e + (b.e - a.e) * part} ${a.f + (b.f - a.f) * part}`);
    word.setAttribute('x', (a.e + b.e) / 2);
    word.setAttribute('y', loop ? a.f - 26 : (a.f + b.f) / 2);
  };
  const point = e => new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
  let held = null, from = null;
  svg.addEventListener('pointerdown', e => {
    [held, from] = [e.target.closest('[data-n]'), point(e)];
    svg.setPointerCapture(e.pointerId);
  });
  svg.addEventListener('pointermove', e => {
    if (!from) return;
    const to = point(e);
    if (held) {
      const n = held.dataset.n;
      held.transform.baseVal[0].setTranslate(to.x, to.y);
      svg.querySelectorAll(`[data-a="${n}"], [data-b="${n}"]`).forEach(draw);
    } else [view.x, view.y] = [view.x + from.x - to.x, view.y + from.y - to.y];
  });
  svg.addEventListener('pointerup', () => (held = from = null));
  svg.addEventListener('dblclick', () => ([view.x, view.y, view.width, view.height] = whole));
  svg.addEventListener('wheel', e => {
    if (!e.ctrlKey) return;
    e.preventDefault();
    const by = e.deltaY > 0 ? 1.15 : 1 / 1.15, at = point(e);
    [view.x, view.y] = [at.x - (at.x - view.x) * by, at.y - (at.y - view.y) * by];
    [view.width, view.height] = [view.width * by, view.height * by];
  }, {passive: false});
})"""  # the same in every notebook: no data is put into it
RADIUS = 7
LABELS = ("name", "title", "label", "id")
ROUNDS = 120  # of the layout


@dataclass(slots=True)
class DrawnEntities:
    """The nodes and edges to draw, in order of appearance."""

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


def entities_of(rows: Iterable[Iterable[Any]]) -> DrawnEntities:
    """All entities and paths among the values of rows."""
    found = DrawnEntities()
    for row in rows:
        for value in row:
            found.add(value)
    return found


def drawing_of(found: DrawnEntities) -> str:
    """Nodes in the colour of their type, edges as arrows, with a legend of the colours."""
    order = {id: index for index, id in enumerate(found.nodes)}
    drawn = [(a, b, kind) for a, b, kind in found.edges.values() if a in order and b in order]
    places = force_layout(len(order), [(order[a], order[b]) for a, b, _ in drawn])
    width, height = _size(len(order))
    at = {id: _scaled(places[index], width, height) for id, index in order.items()}
    kinds = list(dict.fromkeys(_kind(value) for value in found.nodes.values()))
    parts = [
        f'<g data-a="{order[a]}" data-b="{order[b]}">{_edge(at[a], at[b], kind)}</g>'
        for a, b, kind in drawn
    ]
    parts += [
        f'<g data-n="{order[id]}" transform="translate({at[id][0]:.1f} {at[id][1]:.1f})">'
        f"{_node(at[id][0] > width * 2 / 3, id, v, kinds.index(_kind(v)))}</g>"
        for id, v in found.nodes.items()
    ]
    parts += [_legend(i, kind) for i, kind in enumerate(kinds) if kind]
    body = "".join(parts)
    about = f"{counted(len(order), 'node')}, {counted(len(drawn), 'edge')}"
    return (
        f'<svg class="og" id="{_name(body)}" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{about}">'
        f"<style>{STYLE}</style>{ARROW}{body}</svg>"
    )


def interactive(drawing: str) -> str:
    """A drawing whose nodes can be dragged, which can be moved and, with Ctrl and the wheel, zoomed.

    The script is always the same text, and finds the drawing by a name made of digits: it contains no stored data.
    Where a notebook runs no scripts, the drawing stays as it is.
    """
    name = drawing.partition('id="')[2].partition('"')[0]
    return f"{drawing}<script>({SCRIPT})('{name}')</script>"


def _name(body: str) -> str:
    return f"og-{blake2s(body.encode(), digest_size=6).hexdigest()}"


def _kind(value: Mapping[str, Any]) -> str:
    return str(value.get("type", ""))


def _size(count: int) -> tuple[int, int]:
    """A few nodes need little room."""
    return min(WIDTH_MAX, 320 + 20 * count), min(HEIGHT_MAX, 160 + 16 * count)


def _scaled(place: tuple[float, float], width: int, height: int) -> tuple[float, float]:
    return MARGIN + place[0] * (width - 2 * MARGIN), MARGIN + place[1] * (height - 2 * MARGIN)


def _edge(a: tuple[float, float], b: tuple[float, float], kind: str) -> str:
    """An arrow that ends where the circle of its node begins; a loop for an edge to itself."""
    length = math.dist(a, b)
    if length < 2 * RADIUS:
        loop = f"M{a[0] - 5:.1f} {a[1] - 5:.1f} c-16 -26 26 -26 11 -2"
        return _arrow(loop, (a[0], a[1] - 26), kind)
    part = (length - RADIUS - 2) / length
    end = (a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part)
    line = f"M{a[0]:.1f} {a[1]:.1f} L{end[0]:.1f} {end[1]:.1f}"
    return _arrow(line, ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2), kind)


def _arrow(line: str, middle: tuple[float, float], kind: str) -> str:
    word = f'<text class="edge" x="{middle[0]:.1f}" y="{middle[1]:.1f}">{escape(kind)}</text>'
    return f'<path marker-end="url(#to)" d="{line}"/>' + word


def _legend(index: int, kind: str) -> str:
    y = 16 + 16 * index
    dot = f'<circle cx="12" cy="{y}" r="5" fill="{COLOURS[index % len(COLOURS)]}"/>'
    return dot + f'<text x="22" y="{y + 4}">{escape(kind)}</text>'


def _node(left: bool, id: str, value: Mapping[str, Any], colour: int) -> str:
    """A circle with its label on the free side, and everything else as its tooltip."""
    label = next((str(value[name]) for name in LABELS if value.get(name) is not None), id)
    tip = escape(", ".join(f"{k}: {v}" for k, v in value.items()) or id)
    fill = COLOURS[colour % len(COLOURS)]
    circle = f'<circle r="{RADIUS}" fill="{fill}"><title>{tip}</title></circle>'
    x, anchor = (-10, ' text-anchor="end"') if left else (10, "")
    return circle + f'<text x="{x}" y="4"{anchor}>{escape(label[:32])}</text>'


def force_layout(count: int, links: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Coordinates within 0..1 for each node: springs along the edges, repulsion everywhere, always the same result."""
    import numpy as np

    if count == 0:
        return []
    turns = np.arange(count) * math.pi * (3 - math.sqrt(5))
    radius = np.sqrt((np.arange(count) + 0.5) / count)
    at = np.stack([radius * np.cos(turns), radius * np.sin(turns)], axis=1)
    ideal = 1.6 / math.sqrt(count)
    a = np.array([link[0] for link in links], dtype=int)
    b = np.array([link[1] for link in links], dtype=int)
    for round_ in range(ROUNDS):
        apart = at[:, None, :] - at[None, :, :]
        distance = np.sqrt((apart**2).sum(axis=2)) + 1e-6
        push = (apart / distance[:, :, None] * (ideal**2 / distance)[:, :, None]).sum(axis=1)
        if len(links):
            along = at[a] - at[b]
            pull = along * (np.sqrt((along**2).sum(axis=1)) / ideal)[:, None]
            np.subtract.at(push, a, pull)
            np.add.at(push, b, pull)
        push -= at * ideal  # towards the middle, so that parts without links stay in sight
        size = np.sqrt((push**2).sum(axis=1)) + 1e-9
        heat = 0.12 * (1 - round_ / ROUNDS) + 0.002
        at = at + push / size[:, None] * np.minimum(size, heat)[:, None]
    low, high = at.min(axis=0), at.max(axis=0)
    scaled = (at - low) / np.maximum(high - low, 1e-9)
    return [(float(x), float(y)) for x, y in (scaled if count > 1 else scaled * 0 + 0.5)]
