/** The plan of a query as a tree: what each operator did, how many rows it gave, and how long it took. */
import type { ReadOutput } from "../../api";
import { bytes, count, counted } from "../../format";

interface Operator {
  readonly operator: string;
  readonly detail: string;
  readonly rows: number;
  readonly milliseconds: number;
  readonly requests: number;
  readonly bytes_read: number;
  readonly inputs: readonly Operator[];
  readonly [more: string]: unknown;
}

const SHOWN = new Set([
  "operator",
  "detail",
  "rows",
  "stands_for",
  "milliseconds",
  "requests",
  "bytes_read",
  "inputs",
  "text",
  "query_memory_bytes",
  "query_memory_bytes_max",
  "spilled_bytes",
]);

export function Plan({ explain }: { explain: ReadOutput["explain"] }) {
  if (!explain) return null;
  const root = explain as unknown as Operator;
  return (
    <div class="plan" tabIndex={0} role="region" aria-label="Plan of the query">
      <ul>{<Node operator={root} whole={Math.max(root.milliseconds, 0.001)} />}</ul>
    </div>
  );
}

/** What the whole query held in memory, of how much it may, and what did not fit. */
function Memory({ operator }: { operator: Operator }) {
  const [held, most, spilled] = ["query_memory_bytes", "query_memory_bytes_max", "spilled_bytes"].map(
    (name) => operator[name],
  );
  if (typeof held !== "number") return null;
  return (
    <span>
      {bytes(held)}
      {typeof most === "number" ? ` of ${bytes(most)}` : ""} of memory
      {typeof spilled === "number" && spilled > 0 ? `, ${bytes(spilled)} on disk` : ""}
    </span>
  );
}

function Node({ operator, whole }: { operator: Operator; whole: number }) {
  const more = Object.entries(operator).filter(([name, value]) => !SHOWN.has(name) && typeof value !== "object");
  return (
    <li>
      <div class="operator">
        <strong>{operator.operator}</strong> <code>{operator.detail}</code>
        <div class="operator-facts">
          <span>{counted(operator.rows, "row")}</span>
          <span>{operator.milliseconds} ms</span>
          {operator.requests > 0 && (
            <span>
              {count(operator.requests)} requests, {bytes(operator.bytes_read)}
            </span>
          )}
          <Memory operator={operator} />
          {more.map(([name, value]) => (
            <span key={name}>
              {name.replaceAll("_", " ")}: {String(value)}
            </span>
          ))}
        </div>
        <div class="share" aria-hidden="true">
          <div style={{ width: `${Math.min(100, (100 * operator.milliseconds) / whole)}%` }} />
        </div>
      </div>
      {operator.inputs.length > 0 && (
        <ul>
          {operator.inputs.map((input, i) => (
            <Node key={i} operator={input} whole={whole} />
          ))}
        </ul>
      )}
    </li>
  );
}
