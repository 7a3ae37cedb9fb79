/** A table of any length: only the rows in sight exist. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Json, Row } from "../api";
import { isNumeric, valueText } from "../format";

const ROW_PIXELS = 33;
const SPARE_ROWS = 12;

export interface Column<T> {
  readonly name: string;
  readonly head?: ComponentChildren;
  readonly numeric?: boolean;
  readonly cell: (row: T, index: number) => ComponentChildren;
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly rowKey?: (row: T, index: number) => string | number;
  readonly rowClass?: (row: T, index: number) => string | undefined;
  readonly class?: string;
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
  const shown = props.rows.slice(view.first, end);
  return (
    <div class={`table-box ${props.class ?? ""}`} ref={box} tabIndex={0} role="region" aria-label={props.label}>
      <table aria-rowcount={props.rows.length + 1}>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th key={column.name} scope="col" class={column.numeric ? "numeric" : undefined}>
                {column.head ?? column.name}
              </th>
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
}: {
  label: string;
  columns: readonly string[];
  rows: readonly Row[];
}) {
  const made = columns.map((name): Column<Row> => ({
    name,
    numeric: isNumeric(rows.find((row) => row[name] !== null)?.[name]),
    cell: (row) => <Value value={row[name]} />,
  }));
  return <Table label={label} columns={made} rows={rows} />;
}
