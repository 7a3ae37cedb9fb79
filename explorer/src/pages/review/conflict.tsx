/** One row both sides changed: base, ours and theirs beside each other, and the choice between them. */
import { useId, useState } from "preact/hooks";
import type { Conflict, Json, Row } from "../../api";
import { valueText, visible } from "../../format";
import { Badge, Button } from "../../ui/basics";
import { type Choice, choiceOf, type ConflictRow, type Decisions, placeOf, type Side, typed } from "./decisions";

const WORDS: Record<string, string> = {
  divergent_insert: "added twice, differently",
  divergent_update: "changed on both sides",
  delete_vs_update: "deleted on one side, changed on the other",
  orphan_edge: "an edge lost its node",
  unique_violation: "no longer unique",
  cardinality_violation: "too many or too few edges",
  value_constraint_violation: "breaks a rule",
  lost_value: "has no place in the merged schema",
  schema_conflict: "both schemas changed",
};

interface CardProps {
  readonly row: ConflictRow;
  readonly decisions: Decisions;
  readonly source: string;
  readonly target: string;
  readonly onDecide: (conflict: Conflict, choice: Choice | null) => void;
}

export function ConflictCard({ row, decisions, source, target, onDecide }: CardProps) {
  const id = useId();
  const all = (side: Side) => row.conflicts.forEach((conflict) => onDecide(conflict, side));
  const kinds = [...new Set(row.conflicts.map((conflict) => conflict.kind))];
  return (
    <section class="conflict" aria-labelledby={id}>
      <header class="conflict-head">
        <h3 id={id}>
          <span class="muted">{row.type}</span> {visible(row.id ?? "")}
        </h3>
        {kinds.map((kind) => (
          <Badge key={kind} tone="warn">
            {WORDS[kind] ?? kind}
          </Badge>
        ))}
        {row.id !== undefined && row.conflicts.length > 1 && (
          <span class="row conflict-all">
            <Button small onClick={() => all("ours")}>
              All of {target}
            </Button>
            <Button small onClick={() => all("theirs")}>
              All of {source}
            </Button>
          </span>
        )}
      </header>
      <div class="conflict-scroll" tabIndex={0} role="region" aria-labelledby={id}>
        <table class="sides">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Base</th>
              <th scope="col">Ours: {target}</th>
              <th scope="col">Theirs: {source}</th>
              <th scope="col">Other value</th>
            </tr>
          </thead>
          <tbody>
            {row.conflicts.map((conflict) => (
              <Sides
                key={placeOf(conflict)}
                conflict={conflict}
                choice={choiceOf(decisions, conflict)}
                onDecide={(choice) => onDecide(conflict, choice)}
              />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Sides({
  conflict,
  choice,
  onDecide,
}: {
  conflict: Conflict;
  choice: Choice | undefined;
  onDecide: (choice: Choice | null) => void;
}) {
  const group = useId();
  const free = conflict.field !== null && conflict.entity_id !== undefined && conflict.kind === "divergent_update";
  const what = conflict.field ?? "row";
  const side = (name: Side, value: Json) => (
    <td class={choice === name ? "side chosen-side" : "side"}>
      <label>
        {conflict.entity_id !== undefined && (
          <input
            type="radio"
            name={group}
            checked={choice === name}
            aria-label={`${what}: take ${name}`}
            onChange={() => onDecide(name)}
          />
        )}
        <Image value={value} field={conflict.field} base={conflict.base} />
      </label>
    </td>
  );
  return (
    <>
      <tr>
        <th scope="row">{conflict.field ?? <span class="muted">whole row</span>}</th>
        <td class="side">
          <Image value={conflict.base} field={conflict.field} base={conflict.base} />
        </td>
        {side("ours", conflict.ours)}
        {side("theirs", conflict.theirs)}
        <td class={typeof choice === "object" ? "side chosen-side" : "side"}>
          {free ? (
            <OtherValue conflict={conflict} choice={choice} group={group} onDecide={onDecide} />
          ) : (
            <span class="faint">–</span>
          )}
        </td>
      </tr>
      {conflict.field === null && (
        <tr class="why">
          <td colSpan={5}>{conflict.message}</td>
        </tr>
      )}
    </>
  );
}

function OtherValue({
  conflict,
  choice,
  group,
  onDecide,
}: {
  conflict: Conflict;
  choice: Choice | undefined;
  group: string;
  onDecide: (choice: Choice | null) => void;
}) {
  const [text, setText] = useState("");
  const like = conflict.ours ?? conflict.theirs ?? conflict.base;
  const take = (now: string) => onDecide(now === "" ? null : { value: typed(now, like) });
  return (
    <label>
      <input
        type="radio"
        name={group}
        checked={typeof choice === "object"}
        disabled={text === ""}
        aria-label={`${conflict.field}: take the other value`}
        onChange={() => take(text)}
      />
      <input
        class="other"
        aria-label={`${conflict.field}: other value`}
        placeholder="another value"
        value={text}
        spellcheck={false}
        onInput={(event) => {
          setText(event.currentTarget.value);
          take(event.currentTarget.value);
        }}
      />
    </label>
  );
}

/** A field's value, or a row as its fields; what differs from the base is marked. */
function Image({ value, field, base }: { value: Json; field: string | null; base: Json }) {
  if (value === null && field === null) return <em class="muted">not there</em>;
  if (field !== null || !isRow(value)) return <span class="image">{valueText(value)}</span>;
  const before = isRow(base) ? base : {};
  const shown = Object.entries(value).filter(
    ([name, one]) => name !== "id" && (one !== null || (before[name] ?? null) !== null),
  );
  return (
    <dl class="image-row">
      {shown.map(([name, one]) => {
        const differs = isRow(base) && valueText(before[name]) !== valueText(one);
        return (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{differs ? <ins>{valueText(one)}</ins> : valueText(one)}</dd>
          </div>
        );
      })}
    </dl>
  );
}

function isRow(value: Json): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One rule for all conflicts of a type; what is decided for single fields counts more. */
export function TypeRule({
  type,
  side,
  source,
  target,
  onChange,
}: {
  type: string;
  side: Side | null;
  source: string;
  target: string;
  onChange: (side: Side | null) => void;
}) {
  return (
    <label class="inline-label">
      <span>
        All of <strong>{type}</strong>
      </span>
      <select value={side ?? ""} onChange={(event) => onChange((event.currentTarget.value || null) as Side | null)}>
        <option value="">decide one by one</option>
        <option value="ours">ours: {target}</option>
        <option value="theirs">theirs: {source}</option>
      </select>
    </label>
  );
}
