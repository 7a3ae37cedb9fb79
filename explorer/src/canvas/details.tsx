/** Everything about one node: properties, ways on with counts, and what happened to it. */
import { useState } from "preact/hooks";
import type { Entity, EntityChange, Json, Point } from "../api";
import { useHere } from "../context";
import { ago, count, shortCommit, valueText, visible } from "../format";
import { saveAs } from "../clipboard";
import { asApiError, useAsync } from "../hooks";
import { href } from "../router";
import { Button, Failure, Progress, Tabs } from "../ui/basics";
import { toast } from "../ui/toast";
import { type CanvasNode, nodeKey, type NodeRef } from "./model";
import { NEIGHBOURS_MAX, type Way, wayOf } from "./source";
import { TypeChip } from "./type-dot";

interface Props {
  readonly node: CanvasNode;
  readonly point: Point;
  readonly pinned: boolean;
  readonly onExpand: (way: Way, skip: number) => Promise<boolean>;
  readonly onPin: () => void;
  readonly onHide: () => void;
  readonly onPath: () => void;
  readonly onClose: () => void;
}

type Tab = "properties" | "edges" | "history";

export function Details(props: Props) {
  const { client } = useHere();
  const { point } = props;
  const { type, id } = props.node;
  const [tab, setTab] = useState<Tab>("properties");
  const entity = useAsync(() => client.entity(point, type, id), [client, point, type, id]);
  const edges = entity.value?.neighbours.reduce((sum, n) => sum + n.count, 0);
  return (
    <aside class="details" aria-label={`Details of ${type} ${visible(id)}`}>
      <header>
        <div class="row spread">
          <TypeChip type={type} />
          <Button kind="quiet" small aria-label="Close the details" onClick={props.onClose}>
            ✕
          </Button>
        </div>
        <h2 class="details-id">{visible(id)}</h2>
        <div class="row">
          <Button small onClick={props.onPin} aria-pressed={props.pinned}>
            {props.pinned ? "Unpin" : "Pin"}
          </Button>
          <Button small onClick={props.onHide}>
            Hide
          </Button>
          <Button small onClick={props.onPath}>
            Find path…
          </Button>
        </div>
        <Tabs
          label="About this node"
          value={tab}
          onChange={setTab}
          options={[
            { value: "properties", label: "Properties" },
            {
              value: "edges",
              label:
                edges === undefined ? (
                  "Edges"
                ) : (
                  <>
                    Edges <span class="faint">{count(edges)}</span>
                  </>
                ),
            },
            { value: "history", label: "History" },
          ]}
        />
      </header>
      <div class="details-body" role="tabpanel">
        {entity.error && <Failure error={entity.error} retry={entity.reload} />}
        {tab !== "history" && !entity.value && !entity.error && <Progress label="Reading" />}
        {entity.value && tab === "properties" && <Properties entity={entity.value} point={point} />}
        {entity.value && tab === "edges" && (
          <Ways key={nodeKey(props.node)} entity={entity.value} onExpand={props.onExpand} />
        )}
        {tab === "history" && <History node={props.node} point={point} />}
      </div>
    </aside>
  );
}

function Properties({ entity, point }: { entity: Entity; point: Point }) {
  const { client, catalog } = useHere();
  const declared = catalog?.nodes.find((node) => node.name === entity.type)?.properties ?? [];
  const blobs = declared.filter((p) => p.type === "Blob");
  const places = new Map(declared.map((property, i) => [property.name, i]));
  const values = Object.entries(entity.properties).sort(([a], [b]) => (places.get(a) ?? 99) - (places.get(b) ?? 99));
  const download = async (property: string) => {
    try {
      saveAs(await client.blob(point, "node", entity.type, entity.id, property), `${entity.id} ${property}`);
    } catch (error) {
      toast(asApiError(error).message, "bad");
    }
  };
  return (
    <dl class="properties">
      <div>
        <dt>id</dt>
        <dd>{visible(entity.id)}</dd>
      </div>
      {values.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={value === null ? "faint" : undefined}>{valueText(value)}</dd>
        </div>
      ))}
      {blobs.map(({ name }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <Button small onClick={() => void download(name)}>
              Download
            </Button>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The edge types that meet the node. Nothing is loaded before somebody has seen how much it is. */
function Ways({ entity, onExpand }: { entity: Entity; onExpand: Props["onExpand"] }) {
  const [loaded, setLoaded] = useState<Record<string, number>>({});
  const [busy, setBusy] = useState<string | null>(null);
  const some = entity.neighbours.filter((n) => n.count > 0);
  const expand = async (way: Way, key: string) => {
    setBusy(key);
    const done = await onExpand(way, loaded[key] ?? 0);
    if (done) setLoaded({ ...loaded, [key]: (loaded[key] ?? 0) + NEIGHBOURS_MAX });
    setBusy(null);
  };
  if (some.length === 0) return <p class="muted">No edge meets this node.</p>;
  return (
    <ul class="ways">
      {some.map((found) => {
        const key = `${found.edge} ${found.direction}`;
        const rest = Math.max(0, found.count - (loaded[key] ?? 0));
        return (
          <li key={key}>
            <div>
              <span class="way">
                {found.direction === "out" ? "→" : "←"} {found.edge}
              </span>
              <span class="muted">
                {" "}
                {found.direction === "out" ? "to" : "from"} {found.type}
              </span>
            </div>
            <span class="numeric">{count(found.count)}</span>
            <Button
              small
              disabled={rest === 0 || busy !== null}
              aria-label={`Expand ${found.edge} ${found.direction === "out" ? "to" : "from"} ${found.type}`}
              onClick={() => void expand(wayOf(found), key)}
            >
              {rest === 0
                ? "Shown"
                : loaded[key]
                  ? `${Math.min(rest, NEIGHBOURS_MAX)} more`
                  : rest > NEIGHBOURS_MAX
                    ? `First ${NEIGHBOURS_MAX}`
                    : "Expand"}
            </Button>
          </li>
        );
      })}
    </ul>
  );
}

const WORDS = { insert: ["+", "created"], update: ["~", "changed"], delete: ["−", "deleted"] } as const;

function History({ node, point }: { node: NodeRef; point: Point }) {
  const { client } = useHere();
  const history = useAsync(() => client.entityHistory(point, node.type, node.id), [client, point, node.type, node.id]);
  if (history.error) return <Failure error={history.error} retry={history.reload} />;
  if (!history.value) return <Progress label="Reading history" />;
  if (history.value.changes.length === 0) return <p class="muted">No commit that is kept tells of a change.</p>;
  return (
    <ol class="events">
      {history.value.changes.map((change) => (
        <Event key={change.commit.graph_commit_id} change={change} />
      ))}
      {history.value.next && <li class="muted">Earlier changes are not shown.</li>}
    </ol>
  );
}

function Event({ change }: { change: EntityChange }) {
  const { commit, operation } = change;
  const [sign, word] = WORDS[operation];
  return (
    <li>
      <div class="row">
        <span class={`sign sign-${operation}`} aria-hidden="true">
          {sign}
        </span>
        <strong>{word}</strong>
        <span class="muted">
          {commit.actor_id ? `by ${visible(commit.actor_id)}, ` : ""}
          {ago(commit.created_at)}
        </span>
      </div>
      <p class="muted">
        <a
          class="mono"
          href={href({ at: commit.graph_commit_id })}
          title={`See the graph at ${commit.graph_commit_id}`}
        >
          {shortCommit(commit.graph_commit_id)}
        </a>
        {commit.message ? ` ${visible(commit.message)}` : ""}
      </p>
      {operation === "update" && (
        <ul class="cells">
          {changedCells(change).map(([name, before, after]) => (
            <li key={name}>
              <span class="muted">{name}</span> <del>{valueText(before)}</del> → <ins>{valueText(after)}</ins>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function changedCells({ before, after }: EntityChange): [string, Json, Json][] {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names]
    .map((name): [string, Json, Json] => [name, before?.[name] ?? null, after?.[name] ?? null])
    .filter(([, a, b]) => JSON.stringify(a) !== JSON.stringify(b));
}
