/** A table of any length: only the rows in sight exist. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Json, Row } from "../api";
import { isNumeric, valueText, visible } from "../format";

const ROW_PIXELS = 33;
const SPARE_ROWS = 12;

export interface Column<T> {
  readonly name: string;
  readonly head?: ComponentChildren;
  readonly type?: string; // shown below the name
  readonly numeric?: boolean;
  readonly sortable?: boolean;
  readonly cell: (row: T, index: number) => ComponentChildren;
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly rowKey?: (row: T, index: number) => string | number;
  readonly rowClass?: (row: T, index: number) => string | undefined;
  readonly class?: string;
  readonly sort?: Sort | null;
  readonly onSort?: (name: string) => void;
  readonly onWindow?: (first: number, end: number) => void; // which rows are in sight
}

export interface Sort {
  readonly name: string;
  readonly down: boolean;
}

export function Table<T>(props: TableProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, rows: 60 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      const first = Math.max(0, Math.floor(element.scrollTop / ROW_PIXELS) - SPARE_ROWS);
      const rows = Math.ceil(element.clientHeight / ROW_PIXELS) + 2 * SPARE_ROWS;
      setView((old) => (old.first === first && old.rows === rows ? old : { first, rows }));
    };
    measure();
    element.addEventListener("scroll", measure, { passive: true });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", measure);
      observer.disconnect();
    };
  }, []);
  const end = Math.min(props.rows.length, view.first + view.rows);
  useEffect(() => props.onWindow?.(view.first, end), [view.first, end, props.rows]);
  const shown = props.rows.slice(view.first, end);
  return (
    <div class={`table-box ${props.class ?? ""}`} ref={box} tabIndex={0} role="region" aria-label={props.label}>
      <table aria-rowcount={props.rows.length + 1}>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <Head key={column.name} column={column} sort={props.sort} onSort={props.onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer rows={view.first} />
          {shown.map((row, i) => {
            const index = view.first + i;
            return (
              <tr
                key={props.rowKey?.(row, index) ?? index}
                aria-rowindex={index + 2}
                class={props.rowClass?.(row, index)}
              >
                {props.columns.map((column) => (
                  <td key={column.name} class={column.numeric ? "numeric" : undefined}>
                    {column.cell(row, index)}
                  </td>
                ))}
              </tr>
            );
          })}
          <Spacer rows={props.rows.length - end} />
        </tbody>
      </table>
    </div>
  );
}

function Head<T>({
  column,
  sort,
  onSort,
}: {
  column: Column<T>;
  sort: Sort | null | undefined;
  onSort: ((name: string) => void) | undefined;
}) {
  const sorted = sort?.name === column.name ? (sort.down ? "descending" : "ascending") : undefined;
  const name = column.head ?? column.name;
  const type = column.type && <span class="column-type">{column.type}</span>;
  return (
    <th scope="col" class={column.numeric ? "numeric" : undefined} aria-sort={sorted}>
      {column.sortable && onSort ? (
        <button type="button" class="sorter" onClick={() => onSort(column.name)}>
          {name} <span aria-hidden="true">{sorted === "ascending" ? "↑" : sorted === "descending" ? "↓" : ""}</span>
        </button>
      ) : (
        name
      )}
      {type}
    </th>
  );
}

function Spacer({ rows }: { rows: number }) {
  return rows > 0 ? <tr aria-hidden="true" class="spacer" style={{ height: `${rows * ROW_PIXELS}px` }} /> : null;
}

export function Value({ value }: { value: Json | undefined }) {
  if (value === null || value === undefined) return <span class="faint">null</span>;
  const text = valueText(value);
  return (
    <span class="value" title={text.length > 40 ? text.slice(0, 2000) : undefined}>
      {text}
    </span>
  );
}

/** Rows as a query gives them. */
export function RowsTable({
  label,
  columns,
  rows,
  types,
}: {
  label: string;
  columns: readonly string[];
  rows: readonly Row[];
  types?: Readonly<Record<string, string>>;
}) {
  const made = columns.map((name): Column<Row> => valueColumn(name, rows, types?.[name]));
  return <Table label={label} columns={made} rows={rows} />;
}

export function valueColumn(name: string, rows: readonly Row[], type?: string): Column<Row> {
  return {
    name,
    type,
    head: visible(name),
    numeric: isNumeric(rows.find((row) => row[name] !== null)?.[name]),
    cell: (row) => <Value value={row[name]} />,
  };
}

/** Rows by one column: numbers by size, everything else as text, and what is missing last. */
export function sortedBy(rows: readonly Row[], { name, down }: Sort): Row[] {
  const order = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [one, other] = [a[name] ?? null, b[name] ?? null];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    if (typeof one === "number" && typeof other === "number") return order * (one - other);
    return order * COLLATE.compare(valueText(one), valueText(other));
  });
}

const COLLATE = new Intl.Collator("en", { numeric: true });
