/** What is wrong with a file, line by line. */
import type { ApiError } from "../../api";
import { counted } from "../../format";
import { helpHere } from "../../help";
import { Notice } from "../../ui/basics";
import { type Column, Table } from "../../ui/table";
import type { Problem } from "./send";

const COLUMNS: Column<Problem>[] = [
  { name: "Line", numeric: true, cell: (one) => one.line ?? "" },
  { name: "Property", cell: (one) => one.property ?? "" },
  { name: "Id", cell: (one) => one.id ?? "" },
  { name: "Problem", cell: (one) => one.message },
];

export function ProblemReport({ error, problems }: { error: ApiError; problems: readonly Problem[] }) {
  return (
    <div role="alert" class="stack">
      <Notice tone="bad">
        <p>
          <strong>{counted(problems.length, "problem")}: nothing was loaded.</strong>{" "}
          <code class="faint">{error.code}</code>
        </p>
        <p class="muted">{helpHere(error)}</p>
      </Notice>
      <Table label="Problems by line" columns={COLUMNS} rows={problems} class="problems" />
    </div>
  );
}
