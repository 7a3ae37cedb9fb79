/** The rows a proposal changes, cell by cell; each type, row and cell can be commented on. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { DiffRow, Json, Op } from "../../api";
import { TypeChip } from "../../canvas/type-dot";
import { useHere } from "../../context";
import { count, valueText, visible } from "../../format";
import type { Place, ThreadEntry } from "../../reviews";
import { Button, Empty } from "../../ui/basics";
import { SIGNS } from "../history/overlay";
import { Ago, Avatar, Person } from "./marks";
import { RemarkForm } from "./remark";

const ROWS_FIRST = 60;
const ROWS_MORE = 200;
const WORDS: Record<Op, string> = { insert: "added", update: "changed", delete: "removed" };
const TONES: Record<Op, string> = { insert: "added", update: "changed", delete: "removed" };
const ENDS: Record<string, string> = { src: "from", dst: "to" };

export interface Talk {
  readonly comments: readonly ThreadEntry[];
  readonly send: ((text: string, place: Place) => Promise<unknown>) | undefined; // undefined: one may only look
}

export function placeKey(place: { type: string | null; id?: string | null; property?: string | null }): string {
  return JSON.stringify([place.type, place.id ?? null, place.property ?? null]);
}

/** What a place is called: `Person mary · born`. */
export function placeText(place: { type: string | null; id?: string | null; property?: string | null }): string {
  const row = place.id == null ? (place.type ?? "") : `${place.type} ${place.id}`;
  return visible(place.property == null ? row : `${row} · ${ENDS[place.property] ?? place.property}`);
}

export function ReviewedRows({ rows, talk }: { rows: readonly DiffRow[]; talk: Talk }) {
  const [shown, setShown] = useState(ROWS_FIRST);
  const [open, setOpen] = useState<string | null>(null);
  const said = useMemo(() => {
    const found = new Map<string, ThreadEntry[]>();
    for (const entry of talk.comments) {
      const key = placeKey(entry);
      found.set(key, [...(found.get(key) ?? []), entry]);
    }
    return found;
  }, [talk.comments]);
  if (rows.length === 0) return <Empty>No row of this kind changed.</Empty>;
  const part = rows.slice(0, shown);
  const spot = (place: Place): Spot => {
    const key = placeKey(place);
    return {
      place,
      entries: said.get(key) ?? [],
      open: open === key,
      setOpen: (to) => setOpen(to ? key : null),
      send: talk.send,
    };
  };
  return (
    <div class="reviewed" role="region" aria-label="Changed rows">
      {part.map((row, i) => (
        <div key={`${row.kind}:${row.type}:${row.id}`}>
          {part[i - 1]?.type !== row.type && <TypeHead row={row} spot={spot({ type: row.type })} />}
          <ReviewedRow row={row} spot={spot} />
        </div>
      ))}
      {rows.length > shown && (
        <div class="panel-body">
          <Button onClick={() => setShown(shown + ROWS_MORE)}>
            Show {count(Math.min(ROWS_MORE, rows.length - shown))} more of {count(rows.length)} rows
          </Button>
        </div>
      )}
    </div>
  );
}

/** A place, what was said about it, and whether somebody is about to. */
interface Spot {
  readonly place: Place;
  readonly entries: readonly ThreadEntry[];
  readonly open: boolean;
  readonly setOpen: (open: boolean) => void;
  readonly send: Talk["send"];
}

function TypeHead({ row, spot }: { row: DiffRow; spot: Spot }) {
  return (
    <div class="reviewed-type">
      <div class="row spread">
        <h3>{row.kind === "node" ? <TypeChip type={row.type} /> : row.type}</h3>
        <CommentButton spot={spot} />
      </div>
      <Said spot={spot} />
    </div>
  );
}

function ReviewedRow({ row, spot }: { row: DiffRow; spot: (place: Place) => Spot }) {
  const title = endsOf(row);
  const [names, rest] = useCells(row, title !== null);
  const about = spot({ type: row.type, id: row.id });
  const hidden = rest.flatMap((name) => spot({ type: row.type, id: row.id, property: name }).entries);
  const own = { ...about, entries: [...about.entries, ...hidden] };
  return (
    <article class={`reviewed-row reviewed-${TONES[row.operation]}`} aria-label={`${row.type} ${visible(row.id)}`}>
      <header class="reviewed-head">
        <span class={`count-${TONES[row.operation]} reviewed-sign`}>
          <span aria-hidden="true">{SIGNS[row.operation]}</span>
          <span class="hidden-visually">{WORDS[row.operation]}</span>
        </span>
        <span class="grow">
          <span class="mono reviewed-id">{title ?? visible(row.id)}</span>{" "}
          {title && <span class="faint small mono reviewed-edge">{visible(row.id)}</span>}
        </span>
        <CommentButton spot={own} />
      </header>
      <Said spot={own} />
      {names.length > 0 && (
        <div class="cells">
          {names.map((name) => (
            <ReviewedCell
              key={name}
              row={row}
              name={name}
              spot={spot({ type: row.type, id: row.id, property: name })}
            />
          ))}
        </div>
      )}
    </article>
  );
}

/** What an edge leads from and to, where the difference tells. */
function endsOf(row: DiffRow): string | null {
  const image = row.after ?? row.before;
  if (row.kind !== "edge" || row.operation === "update") return null;
  return `${valueText(image?.["src"])} → ${valueText(image?.["dst"])}`;
}

/** The properties that changed, in the order of the schema, and those that are told already: a key, ends, nothing. */
function useCells(row: DiffRow, endsAreTold: boolean): [string[], string[]] {
  const { catalog } = useHere();
  const declared = [...(catalog?.nodes ?? []), ...(catalog?.edges ?? [])].find((info) => info.name === row.type);
  const order = ["src", "dst", ...(declared?.properties ?? []).map((property) => property.name)];
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  const keys = declared?.key ?? [];
  const told = (name: string) => {
    const value = (row.after ?? row.before)?.[name];
    if (row.operation === "update") return false;
    return (
      value === null || (keys.length === 1 && keys[0] === name && value === row.id) || (endsAreTold && name in ENDS)
    );
  };
  const all = [...new Set([...Object.keys(row.before ?? {}), ...Object.keys(row.after ?? {})])]
    .filter((name) => name !== "id")
    .sort((a, b) => place(a) - place(b));
  return [all.filter((name) => !told(name)), all.filter(told)];
}

function ReviewedCell({ row, name, spot }: { row: DiffRow; name: string; spot: Spot }) {
  const values = (
    <span class="cell-values">
      {row.operation !== "insert" && <del>{text(row.before?.[name])}</del>}
      {row.operation === "update" && <span aria-hidden="true">→</span>}
      {row.operation !== "delete" && <ins>{text(row.after?.[name])}</ins>}
    </span>
  );
  return (
    <>
      <div class={spot.open ? "cell-line cell-open" : "cell-line"}>
        <span class="cell-name">{ENDS[name] ?? name}</span>
        {spot.send ? (
          <button
            type="button"
            class="cell-button"
            title="Comment on this cell"
            aria-expanded={spot.open}
            onClick={() => spot.setOpen(!spot.open)}
          >
            {values}
            <span class="hidden-visually">Comment on {placeText(spot.place)}</span>
            <RemarkSign />
          </button>
        ) : (
          <span class="cell-button">{values}</span>
        )}
      </div>
      <Said spot={spot} />
    </>
  );
}

function text(value: Json | undefined): ComponentChildren {
  return value === null || value === undefined ? <span class="faint">null</span> : valueText(value);
}

function CommentButton({ spot }: { spot: Spot }) {
  if (!spot.send) return null;
  return (
    <button
      type="button"
      class="comment-button"
      title={`Comment on ${placeText(spot.place)}`}
      aria-label={`Comment on ${placeText(spot.place)}`}
      aria-expanded={spot.open}
      onClick={() => spot.setOpen(!spot.open)}
    >
      <RemarkSign />
    </button>
  );
}

export function RemarkSign() {
  return (
    <svg class="remark-sign" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" fill="none">
      <path d="M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round" />
    </svg>
  );
}

/** What was said about a place, and the field for more. */
function Said({ spot }: { spot: Spot }) {
  const { send, place } = spot;
  if (spot.entries.length === 0 && !spot.open) return null;
  return (
    <div class="said">
      {spot.entries.map((entry, i) => (
        <Remark key={i} entry={entry} />
      ))}
      {spot.open && send && (
        <RemarkForm
          label={`Comment on ${placeText(place)}`}
          onCancel={() => spot.setOpen(false)}
          send={async (said) => {
            await send(said, place);
            spot.setOpen(false);
          }}
        />
      )}
    </div>
  );
}

function Remark({ entry }: { entry: ThreadEntry }) {
  return (
    <div class="remark">
      <Avatar name={entry.actor} />
      <div class="grow">
        <p class="small">
          <Person name={entry.actor} /> <Ago time={entry.time} />
        </p>
        <p class="prose">{visible(entry.text)}</p>
      </div>
    </div>
  );
}
