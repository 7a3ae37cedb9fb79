/** What there is: types with their rules and counts, how edges connect them, and a safe way to change it. */
import { useState } from "preact/hooks";
import type { EdgeInfo, InterfaceInfo, NodeInfo } from "../../api";
import { TypeDot } from "../../canvas/type-dot";
import { useHere } from "../../context";
import { count, counted } from "../../format";
import { useShortcut } from "../../keys";
import { setParams, useRoute } from "../../router";
import { Badge, Button, Empty } from "../../ui/basics";
import { SchemaEditor } from "./edit";
import { IndexList, PropertyList, RuleList } from "./facts";
import { SamplePanel } from "./sample";
import { SchemaPicture } from "./picture";
import "./schema.css";

export default function SchemaPage() {
  const { catalog, may } = useHere();
  const route = useRoute();
  const chosen = route.params["type"];
  const editing = route.params["edit"] === "1";
  const [filter, setFilter] = useState("");
  useShortcut("e", "Edit the schema", "Schema", () => setParams({ edit: editing ? null : "1" }, { replace: false }));
  if (!catalog) return null;
  const fits = (name: string) => name.toLowerCase().includes(filter.trim().toLowerCase());
  const nodes = catalog.nodes.filter((n) => fits(n.name));
  const edges = catalog.edges.filter((e) => fits(e.name) || fits(e.from) || fits(e.to));
  const choose = (type: string) => setParams({ type: type === chosen ? null : type }, { replace: false });
  const info = [...catalog.nodes, ...catalog.edges].find((t) => t.name === chosen);
  const total = (list: readonly { count: number }[]) => list.reduce((sum, t) => sum + t.count, 0);
  return (
    <div class="page schema-page">
      <header class="page-head">
        <div>
          <h1>Schema</h1>
          <p class="muted">
            {counted(catalog.nodes.length, "node type")} with {counted(total(catalog.nodes), "node")},{" "}
            {counted(catalog.edges.length, "edge type")} with {counted(total(catalog.edges), "edge")}
          </p>
        </div>
        <div class="row">
          <label class="inline-label">
            Find <input class="find" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
          </label>
          <Button onClick={() => setParams({ edit: editing ? null : "1" }, { replace: false })} aria-pressed={editing}>
            {editing ? "Close the text" : may("schema_apply") ? "Edit text" : "Show text"}
          </Button>
        </div>
      </header>
      {editing && <SchemaEditor />}
      {catalog.nodes.length === 0 && <Empty>The schema has no types yet. Edit its text to add some.</Empty>}
      {catalog.nodes.length > 0 && !editing && <SchemaPicture catalog={catalog} chosen={chosen} onChoose={choose} />}
      {info && <SamplePanel key={info.name} info={info} onClose={() => setParams({ type: null })} />}
      {nodes.length > 0 && <h2 class="section">Node types</h2>}
      <div class="cards">
        {nodes.map((node) => (
          <NodeCard key={node.name} node={node} chosen={node.name === chosen} onChoose={choose} />
        ))}
      </div>
      {edges.length > 0 && <h2 class="section">Edge types</h2>}
      <div class="cards">
        {edges.map((edge) => (
          <EdgeCard key={edge.name} edge={edge} chosen={edge.name === chosen} onChoose={choose} />
        ))}
      </div>
      {catalog.interfaces.length > 0 && <h2 class="section">Interfaces</h2>}
      <div class="cards">
        {catalog.interfaces
          .filter((i) => fits(i.name))
          .map((one) => (
            <InterfaceCard key={one.name} info={one} nodes={catalog.nodes} />
          ))}
      </div>
    </div>
  );
}

function CardHead({
  name,
  amount,
  node = false,
  chosen,
  onChoose,
}: {
  name: string;
  amount: number;
  node?: boolean;
  chosen: boolean;
  onChoose: (type: string) => void;
}) {
  return (
    <header>
      {node && <TypeDot type={name} />}
      <h3>{name}</h3>
      <span class="muted numeric">{count(amount)}</span>
      <Button small aria-pressed={chosen} aria-label={`Sample rows of ${name}`} onClick={() => onChoose(name)}>
        Sample
      </Button>
    </header>
  );
}

function NodeCard({ node, chosen, onChoose }: { node: NodeInfo; chosen: boolean; onChoose: (type: string) => void }) {
  return (
    <article class={chosen ? "type-card chosen" : "type-card"}>
      <CardHead node name={node.name} amount={node.count} chosen={chosen} onChoose={onChoose} />
      {node.description && <p class="muted">{node.description}</p>}
      {node.implements.length > 0 && <p class="muted small">implements {node.implements.join(", ")}</p>}
      <PropertyList info={node} />
      <Relations node={node} onChoose={onChoose} />
      <RuleList info={node} />
      <IndexList info={node} />
    </article>
  );
}

/** The edges that lead from and to a type. */
function Relations({ node, onChoose }: { node: NodeInfo; onChoose: (type: string) => void }) {
  const { catalog } = useHere();
  const edges = (catalog?.edges ?? []).filter((edge) => edge.from === node.name || edge.to === node.name);
  if (edges.length === 0) return null;
  return (
    <ul class="relations" aria-label={`Edges of ${node.name}`}>
      {edges.map((edge) => (
        <li key={edge.name}>
          <button type="button" class="link" onClick={() => onChoose(edge.name)}>
            {edge.name}
          </button>
          <span class="muted">
            {edge.from === node.name ? (
              <>
                <span aria-label="to">→</span> {edge.to}
              </>
            ) : (
              <>
                <span aria-label="from">←</span> {edge.from}
              </>
            )}
          </span>
          <span class="numeric muted">{count(edge.count)}</span>
        </li>
      ))}
    </ul>
  );
}

function EdgeCard({ edge, chosen, onChoose }: { edge: EdgeInfo; chosen: boolean; onChoose: (type: string) => void }) {
  return (
    <article class={chosen ? "type-card chosen" : "type-card"}>
      <CardHead name={edge.name} amount={edge.count} chosen={chosen} onChoose={onChoose} />
      <p class="ends">
        <span>{edge.from}</span> <span aria-label="to">→</span> <span>{edge.to}</span>
        <Badge title="How many edges of this type may leave one node">{cardinality(edge.cardinality)}</Badge>
      </p>
      {edge.description && <p class="muted">{edge.description}</p>}
      <PropertyList info={edge} />
      <RuleList info={edge} />
      <IndexList info={edge} />
    </article>
  );
}

function InterfaceCard({ info, nodes }: { info: InterfaceInfo; nodes: readonly NodeInfo[] }) {
  const who = nodes.filter((node) => node.implements.includes(info.name)).map((node) => node.name);
  return (
    <article class="type-card">
      <header>
        <h3>{info.name}</h3>
      </header>
      {info.description && <p class="muted">{info.description}</p>}
      <p class="muted small">{who.length ? `implemented by ${who.join(", ")}` : "implemented by no type"}</p>
      <PropertyList info={{ properties: info.properties, key: [], uniques: [] }} />
    </article>
  );
}

/** `0..1` as people say it. */
export function cardinality(text: string): string {
  const [low = "0", high = ""] = text.split("..");
  if (low === "0" && high === "") return "any number";
  if (high === "") return `at least ${low}`;
  if (low === high) return `exactly ${low}`;
  return low === "0" ? `at most ${high}` : `${low} to ${high}`;
}
