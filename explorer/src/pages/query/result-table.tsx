/** The rows of a result: types, sorting, a choice of columns, and of whole nodes more than their ids. */
import { useMemo, useState } from "preact/hooks";
import type { Row } from "../../api";
import { labelOf } from "../../canvas/look";
import { type CanvasNode, nodeKey } from "../../canvas/model";
import { GraphSource } from "../../canvas/source";
import { TypeDot } from "../../canvas/type-dot";
import { useHere } from "../../context";
import { count, counted, valueText, visible } from "../../format";
import { useEvent } from "../../hooks";
import { nodeColumns } from "../../lang/columns";
import { Menu } from "../../ui/menu";
import { type Column, type Sort, sortedBy, Table, Value, valueColumn } from "../../ui/table";
import { NothingMatches } from "./results";
import type { Outcome } from "./run";

const TOLD_PROPERTIES = 3;

export function ResultTable({ outcome }: { outcome: Outcome }) {
  const { catalog } = useHere();
  const { output } = outcome;
  const names = useMemo(() => output.columns ?? Object.keys(output.rows[0] ?? {}), [output]);
  const nodes = useMemo(
    () => (catalog ? nodeColumns(outcome.query, catalog) : new Map<string, string>()),
    [outcome, catalog],
  );
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [sort, setSort] = useState<Sort | null>(null);
  const rows = useMemo(() => (sort ? sortedBy(output.rows, sort) : output.rows), [output, sort]);
  const known = useNodes(outcome, nodes);
  const columns = names
    .filter((name) => !hidden.has(name))
    .map((name): Column<Row> => {
      const at = names.indexOf(name);
      const type = nodes.get(name);
      const plain = { ...valueColumn(name, output.rows, type ?? output.column_types?.[at]), sortable: true };
      if (type === undefined) return plain;
      return { ...plain, cell: (row) => <NodeCell id={row[name]} type={type} known={known.of(type, row[name])} /> };
    });
  if (output.rows.length === 0) return <NothingMatches />;
  const by = (name: string) =>
    setSort((old) => (old?.name !== name ? { name, down: false } : old.down ? null : { name, down: true }));
  return (
    <div class="result-table">
      <div class="canvas-bar">
        <ColumnChoice names={names} hidden={hidden} onChange={setHidden} />
        <span class="muted grow canvas-count">
          {output.rows.length < output.row_count
            ? `The first ${count(output.rows.length)} of ${counted(output.row_count, "row")}${sort ? ", sorted among themselves" : ""}. A download has all.`
            : counted(output.row_count, "row")}
        </span>
      </div>
      <Table
        label="Rows of the result"
        columns={columns}
        rows={rows}
        sort={sort}
        onSort={by}
        onWindow={(first, end) => known.want(rows.slice(first, end))}
      />
    </div>
  );
}

function NodeCell({ id, type, known }: { id: Row[string] | undefined; type: string; known: CanvasNode | undefined }) {
  const { catalog } = useHere();
  if (typeof id !== "string") return <Value value={id} />;
  const key = catalog?.nodes.find((node) => node.name === type)?.key ?? [];
  const told = Object.entries(known?.properties ?? {})
    .filter(([name, value]) => !key.includes(name) && value !== null && typeof value !== "object")
    .slice(0, TOLD_PROPERTIES);
  return (
    <span class="node-cell" title={known ? Object.entries(known.properties).map(line).join("\n") : undefined}>
      <TypeDot type={type} />
      <strong>{known ? labelOf(known, null, key) : visible(id)}</strong>
      {told.map(([name, value]) => (
        <span key={name} class="muted">
          <span class="faint">{name}</span> {valueText(value)}
        </span>
      ))}
    </span>
  );
}

function line([name, value]: [string, Row[string]]): string {
  return `${name}: ${valueText(value).slice(0, 200)}`;
}

/** The nodes behind the ids in sight, read when they come into sight. */
function useNodes(outcome: Outcome, columns: ReadonlyMap<string, string>) {
  const { client, catalog } = useHere();
  const source = useMemo(() => catalog && new GraphSource(client, outcome.point, catalog), [outcome]);
  const cache = useMemo(() => new Map<string, CanvasNode | null>(), [outcome]); // null: asked for
  const [, setRound] = useState(0);
  const want = useEvent((rows: readonly Row[]) => {
    const missing = [...columns].flatMap(([name, type]) =>
      rows.flatMap((row) => (typeof row[name] === "string" ? [{ type, id: row[name] }] : [])),
    );
    const fresh = missing.filter((ref) => !cache.has(nodeKey(ref)));
    if (!source || fresh.length === 0) return;
    for (const ref of fresh) cache.set(nodeKey(ref), null);
    source.nodes(fresh).then(
      (nodes) => {
        for (const node of nodes) cache.set(nodeKey(node), node);
        setRound((n) => n + 1);
      },
      () => {}, // the ids are there all the same
    );
  });
  const of = (type: string, id: Row[string] | undefined) =>
    typeof id === "string" ? (cache.get(nodeKey({ type, id })) ?? undefined) : undefined;
  return { want, of };
}

function ColumnChoice({
  names,
  hidden,
  onChange,
}: {
  names: readonly string[];
  hidden: ReadonlySet<string>;
  onChange: (hidden: ReadonlySet<string>) => void;
}) {
  const shown = names.length - hidden.size;
  const toggle = (name: string) => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    onChange(next);
  };
  return (
    <Menu
      label={`Columns ${shown}/${names.length}`}
      name={`Columns ${shown}/${names.length}: choose`}
      class="menu-left"
    >
      {() => (
        <>
          {names.map((name) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={!hidden.has(name)}
                disabled={shown === 1 && !hidden.has(name)}
                onChange={() => toggle(name)}
              />{" "}
              {visible(name)}
            </label>
          ))}
        </>
      )}
    </Menu>
  );
}
