/** The first look at a graph: what is in it, what one could ask, and what happened lately. */
import { useMemo } from "preact/hooks";
import type { Catalog, Commit, EdgeInfo, NodeInfo } from "../../api";
import { TypeDot } from "../../canvas/type-dot";
import { useHere } from "../../context";
import { ago, branchOf, count, counted, visible } from "../../format";
import { useAsync } from "../../hooks";
import { href } from "../../router";
import { Failure, Panel, Skeleton } from "../../ui/basics";
import { Counts } from "../history/counts";
import "../history/history.css";
import { historyOf } from "../history/pages";
import { queryDraft } from "../query/draft";
import { examplesOf, sampleQuery } from "../query/example";
import { recent } from "../query/keep";
import { gist } from "../query/shelf";
import "./home.css";

const COMMITS_SHOWN = 6;
const QUERIES_SHOWN = 5;
const TYPES_SHOWN = 12;

export default function HomePage() {
  const { catalog, route } = useHere();
  if (!catalog) return null;
  const total = (list: readonly { count: number }[]) => list.reduce((sum, one) => sum + one.count, 0);
  const [nodes, edges] = [total(catalog.nodes), total(catalog.edges)];
  return (
    <div class="page home">
      <header class="page-head">
        <div>
          <h1>{route.graph}</h1>
          <p class="muted">
            {counted(nodes, "node")} of {counted(catalog.nodes.length, "type")}, {counted(edges, "edge")} of{" "}
            {counted(catalog.edges.length, "type")}
            {route.branch !== "main" && ` on ${route.branch}`}
          </p>
        </div>
        <div class="row">
          <a class="button button-quiet" href="#/">
            All graphs
          </a>
          <a class="button" href={href({ page: "import" })}>
            Import a file
          </a>
          <a class="button button-primary" href={href({ page: "query", params: {} })}>
            {queryDraft(route.graph) ? "Continue your query" : "Write a query"}
          </a>
        </div>
      </header>
      {nodes === 0 && <FirstSteps catalog={catalog} />}
      <div class="home-grid">
        <div class="stack">
          <Types catalog={catalog} />
          {nodes > 0 && <Examples catalog={catalog} />}
        </div>
        <RecentWork />
      </div>
    </div>
  );
}

/** A graph without a single node: how to get some. */
function FirstSteps({ catalog }: { catalog: Catalog }) {
  const { route, may } = useHere();
  const here = catalog.nodes[0];
  const insert = here && `insert ${here.name} {\n  ${(here.key[0] ?? here.properties[0]?.name) || "name"}: ""\n}\n`;
  return (
    <Panel label="First steps">
      <div class="empty first-steps">
        <p class="empty-title">{here ? `Nothing is stored on ${route.branch} yet` : "The schema has no types yet"}</p>
        <p>
          {here ? "Bring a CSV, Parquet or NDJSON file, or write the first row yourself." : "Say first what a node is."}
        </p>
        <p class="row">
          {here && may("change") && (
            <a class="button button-primary" href={href({ page: "import" })}>
              Import a file
            </a>
          )}
          {insert && may("change") && (
            <a class="button" href={href({ page: "query", params: { q: insert } })}>
              Write a row
            </a>
          )}
          <a class="button" href={href({ page: "schema", params: { edit: "1" } })}>
            {may("schema_apply") ? "Edit the schema" : "Look at the schema"}
          </a>
        </p>
      </div>
    </Panel>
  );
}

function Types({ catalog }: { catalog: Catalog }) {
  const most = Math.max(1, ...catalog.nodes.map((node) => node.count));
  if (catalog.nodes.length === 0) return null;
  return (
    <Panel
      title="What is in it"
      actions={
        <a class="small" href={href({ page: "schema" })}>
          Schema
        </a>
      }
    >
      <ul class="type-rows" aria-label="Node types">
        {catalog.nodes.slice(0, TYPES_SHOWN).map((node) => (
          <NodeRow key={node.name} node={node} most={most} />
        ))}
      </ul>
      {catalog.edges.length > 0 && (
        <ul class="edge-rows" aria-label="Edge types">
          {catalog.edges.slice(0, TYPES_SHOWN).map((edge) => (
            <EdgeRow key={edge.name} edge={edge} />
          ))}
        </ul>
      )}
      {Math.max(catalog.nodes.length, catalog.edges.length) > TYPES_SHOWN && (
        <p class="home-more">
          <a href={href({ page: "schema" })}>All types are in the schema</a>
        </p>
      )}
    </Panel>
  );
}

function NodeRow({ node, most }: { node: NodeInfo; most: number }) {
  const link = href({ page: "query", params: { q: sampleQuery(node), run: "1", view: "table" } });
  return (
    <li>
      <a href={link} title={node.description ?? `Some ${node.name} rows`}>
        <TypeDot type={node.name} />
        <span class="type-name">{node.name}</span>
        <span class="type-about muted">{node.description ?? node.properties.map((p) => p.name).join(", ")}</span>
        <span class="bar" aria-hidden="true">
          <span style={{ width: `${Math.max(node.count ? 2 : 0, (100 * node.count) / most)}%` }} />
        </span>
        <span class="numeric">{count(node.count)}</span>
      </a>
    </li>
  );
}

function EdgeRow({ edge }: { edge: EdgeInfo }) {
  return (
    <li>
      <a href={href({ page: "schema", params: { type: edge.name } })}>
        <span class="type-name">{edge.name}</span>
        <span class="muted">
          {edge.from} <span aria-label="to">→</span> {edge.to}
        </span>
        <span class="numeric">{count(edge.count)}</span>
      </a>
    </li>
  );
}

function Examples({ catalog }: { catalog: Catalog }) {
  const examples = useMemo(() => examplesOf(catalog), [catalog]);
  return (
    <Panel title="Try">
      <ul class="examples">
        {examples.map(({ title, text, view }) => (
          <li key={title}>
            <a href={href({ page: "query", params: { q: text, run: "1", view } })}>
              <strong>{title}</strong>
              <pre>{text.trim()}</pre>
            </a>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function RecentWork() {
  const { client, route } = useHere();
  const history = useAsync(() => historyOf(client), [client]);
  const queries = useMemo(() => recent(route.graph).slice(0, QUERIES_SHOWN), [route.graph]);
  return (
    <div class="stack">
      <Panel
        title="Latest changes"
        actions={
          <a class="small" href={href({ page: "history" })}>
            History
          </a>
        }
      >
        {history.error && (
          <div class="panel-body">
            <Failure error={history.error} retry={history.reload} />
          </div>
        )}
        {!history.value && !history.error && <Skeleton label="Reading history" />}
        {history.value && (
          <ul class="work">
            {history.value.commits.slice(0, COMMITS_SHOWN).map((commit) => (
              <CommitLink key={commit.graph_commit_id} commit={commit} />
            ))}
          </ul>
        )}
      </Panel>
      {queries.length > 0 && (
        <Panel title="Your last queries">
          <ul class="work">
            {queries.map((kept) => (
              <li key={kept.at}>
                <a href={href({ page: "query", params: { q: kept.text } })}>
                  <code class="work-title">{visible(gist(kept.text))}</code>
                  <span class="muted small">{ago(kept.at * 1000)}</span>
                </a>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </div>
  );
}

function CommitLink({ commit }: { commit: Commit }) {
  return (
    <li>
      <a href={href({ page: "history", params: { commit: commit.graph_commit_id } })}>
        <span class="work-title">{visible(commit.message ?? commit.kind)}</span>
        <span class="muted small">
          {visible(commit.actor_id ?? "nobody")} on {visible(branchOf(commit))}, {ago(commit.created_at)}
        </span>
        <Counts counts={commit.changes} />
      </a>
    </li>
  );
}
