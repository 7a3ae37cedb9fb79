/** The types as a picture: one circle per node type, one arrow per edge type. Everything in it is also in the cards. */
import { useMemo } from "preact/hooks";
import type { Catalog, EdgeInfo } from "../../api";
import { layOut } from "../../canvas/layout";
import { Scene } from "../../canvas/model";
import { useTypeColour } from "../../canvas/type-dot";
import { Panel } from "../../ui/basics";
import { cardinality } from ".";

const WIDTH = 1100;
const HEIGHT = 340;
const MARGIN = 70;
const RADIUS = 26;
const EDGE_LENGTH = 240;

interface Place {
  readonly x: number;
  readonly y: number;
}

export function SchemaPicture({
  catalog,
  chosen,
  onChoose,
}: {
  catalog: Catalog;
  chosen: string | undefined;
  onChoose: (type: string) => void;
}) {
  const places = useMemo(() => placesOf(catalog), [catalog]);
  const pairs = new Map<string, number>();
  const colour = useTypeColour();
  return (
    <Panel label="The schema as a picture" class="schema-picture">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label="Node types and the edges between them">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
            <path d="M0 0 8 4 0 8z" class="arrow" />
          </marker>
        </defs>
        {catalog.edges.map((edge) => {
          const pair = [edge.from, edge.to].sort().join(" ");
          const nth = pairs.get(pair) ?? 0;
          pairs.set(pair, nth + 1);
          return (
            <Arrow
              key={edge.name}
              edge={edge}
              from={places.get(edge.from)!}
              to={places.get(edge.to)!}
              nth={nth}
              chosen={edge.name === chosen}
            />
          );
        })}
        {catalog.nodes.map((node) => {
          const { x, y } = places.get(node.name)!;
          return (
            <g
              key={node.name}
              class={node.name === chosen ? "type-node chosen" : "type-node"}
              transform={`translate(${x} ${y})`}
              tabIndex={0}
              role="button"
              aria-pressed={node.name === chosen}
              onClick={() => onChoose(node.name)}
              onKeyDown={(event) =>
                (event.key === "Enter" || event.key === " ") && (event.preventDefault(), onChoose(node.name))
              }
            >
              <circle r={RADIUS} fill={colour(node.name)} />
              <text class="node-name" y={RADIUS + 16}>
                {node.name}
              </text>
              <text class="node-count" y={4}>{` ${short(node.count)}`}</text>
            </g>
          );
        })}
      </svg>
    </Panel>
  );
}

function Arrow({
  edge,
  from,
  to,
  nth,
  chosen,
}: {
  edge: EdgeInfo;
  from: Place;
  to: Place;
  nth: number;
  chosen: boolean;
}) {
  const label = edge.cardinality === "0.." ? edge.name : `${edge.name} (${cardinality(edge.cardinality)})`;
  const { path, at } = from === to ? loop(from, nth) : curve(from, to, nth);
  return (
    <g class={chosen ? "type-edge chosen" : "type-edge"} aria-hidden="true">
      <path d={path} marker-end="url(#arrow)" />
      <text x={at.x} y={at.y}>
        {label}
      </text>
    </g>
  );
}

function curve(from: Place, to: Place, nth: number): { path: string; at: Place } {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const bend = nth === 0 ? 0 : Math.ceil(nth / 2) * 44 * (nth % 2 ? 1 : -1);
  const middle = { x: (from.x + to.x) / 2 - (dy / length) * bend, y: (from.y + to.y) / 2 + (dx / length) * bend };
  const start = towards(from, middle, RADIUS + 2);
  const end = towards(to, middle, RADIUS + 4);
  return {
    path: `M${start.x} ${start.y}Q${middle.x} ${middle.y} ${end.x} ${end.y}`,
    at: { x: (start.x + 2 * middle.x + end.x) / 4, y: (start.y + 2 * middle.y + end.y) / 4 - 6 },
  };
}

function loop({ x, y }: Place, nth: number): { path: string; at: Place } {
  const high = 62 + 24 * nth;
  return {
    path: `M${x - 12} ${y - RADIUS}C${x - 46} ${y - high - 14} ${x + 46} ${y - high - 14} ${x + 13} ${y - RADIUS - 2}`,
    at: { x, y: y - high - 4 },
  };
}

function towards(from: Place, to: Place, distance: number): Place {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  return { x: from.x + ((to.x - from.x) * distance) / length, y: from.y + ((to.y - from.y) * distance) / length };
}

function placesOf(catalog: Catalog): Map<string, Place> {
  const scene = new Scene();
  const ref = (name: string) => ({ type: "t", id: name });
  scene.add(
    catalog.nodes.map((node) => ({ ...ref(node.name), properties: {} })),
    catalog.edges
      .filter((e) => e.from !== e.to)
      .map((e) => ({ type: e.name, id: e.name, from: ref(e.from), to: ref(e.to) })),
  );
  layOut(scene.picture, 150);
  const raw = lyingDown(scene.picture.mapNodes((_, a) => ({ name: a.node.id, x: a.x, y: a.y })));
  const middle = (values: number[]) => (Math.min(...values) + Math.max(...values)) / 2;
  const span = (values: number[]) => Math.max(...values) - Math.min(...values) || 1;
  const [xs, ys] = [raw.map((place) => place.x), raw.map((place) => place.y)];
  const lengths = scene.picture.mapEdges((_, __, ___, ____, a, b) => Math.hypot(a.x - b.x, a.y - b.y));
  const comfortable = lengths.length
    ? EDGE_LENGTH / (lengths.reduce((sum, length) => sum + length, 0) / lengths.length)
    : 1;
  const high = Math.min(comfortable, (HEIGHT - 2 * MARGIN - 20) / span(ys));
  const wide = Math.min(Math.max(comfortable, high), (WIDTH - 2 * MARGIN - 120) / span(xs));
  const [cx, cy] = [middle(xs), middle(ys)];
  return new Map(
    raw.map((place) => [place.name, { x: WIDTH / 2 + (place.x - cx) * wide, y: HEIGHT / 2 + (place.y - cy) * high }]),
  );
}

/** The same places, turned so that they are wider than high. */
function lyingDown<P extends Place>(places: P[]): P[] {
  const mean = (values: number[]) => values.reduce((sum, v) => sum + v, 0) / (values.length || 1);
  const [mx, my] = [mean(places.map((p) => p.x)), mean(places.map((p) => p.y))];
  const product = (a: (p: P) => number, b: (p: P) => number) => places.reduce((sum, p) => sum + a(p) * b(p), 0);
  const [dx, dy] = [(p: P) => p.x - mx, (p: P) => p.y - my];
  const angle = 0.5 * Math.atan2(2 * product(dx, dy), product(dx, dx) - product(dy, dy));
  const [cos, sin] = [Math.cos(-angle), Math.sin(-angle)];
  return places.map((p) => ({ ...p, x: dx(p) * cos - dy(p) * sin, y: dx(p) * sin + dy(p) * cos }));
}

function short(value: number): string {
  return new Intl.NumberFormat("en", { notation: "compact" }).format(value);
}
