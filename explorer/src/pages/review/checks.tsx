/** What checks found: which failed, by how much, and the rows they are about. */
import type { CheckReport, CheckResult } from "../../reviews";
import { counted, valueText, visible } from "../../format";
import { Badge, Empty } from "../../ui/basics";
import { Sign } from "./marks";

export function broken(report: CheckReport): CheckResult[] {
  return report.results.filter((one) => one.outcome === "failed" && one.severity === "error");
}

/** How they ended, in a few words. */
export function checksInShort(report: CheckReport): string {
  const failed = report.results.filter((one) => one.outcome === "failed").length;
  if (report.results.length === 0) return "There are no checks";
  return failed > 0
    ? `${failed} of ${counted(report.results.length, "check")} failed`
    : `${counted(report.results.length, "check")} passed`;
}

export function Checks({ report, changed }: { report: CheckReport; changed?: Record<string, string[]> }) {
  const edits = Object.entries(changed ?? {}).filter(([, names]) => names.length > 0);
  return (
    <>
      {edits.length > 0 && (
        <p class="notice check-edits">
          This branch changes the checks:{" "}
          {edits.map(([what, names]) => `${what} ${names.map(visible).join(", ")}`).join("; ")}. What it loosens is
          still judged as the target has it.
        </p>
      )}
      {report.results.length === 0 ? (
        <Empty title="No checks">
          Checks are queries that must find nothing. Keep them in a file and bring them into force with{" "}
          <code>omnigraph check --apply</code>.
        </Empty>
      ) : (
        <ul class="checks" aria-label="Checks">
          {sorted(report.results).map((one) => (
            <CheckRow key={one.name} result={one} />
          ))}
        </ul>
      )}
    </>
  );
}

function sorted(results: readonly CheckResult[]): CheckResult[] {
  const rank = (one: CheckResult) => (one.outcome === "failed" ? (one.severity === "error" ? 0 : 1) : 2);
  return [...results].sort((a, b) => rank(a) - rank(b));
}

function CheckRow({ result }: { result: CheckResult }) {
  const failed = result.outcome === "failed";
  const tone = failed ? (result.severity === "error" ? "bad" : "warn") : result.outcome === "passed" ? "good" : "plain";
  return (
    <li class="check-row">
      <div class="check-head">
        <Sign tone={tone} word={result.outcome} />
        <div class="grow">
          <p>
            <code class="check-name">{visible(result.name)}</code>{" "}
            {result.message && result.message !== result.name && <span>{visible(result.message)}</span>}
          </p>
          {failed && <p class="muted small">{found(result)}</p>}
          {result.outcome === "skipped" && <p class="muted small">There is nothing to compare with.</p>}
        </div>
        {result.severity === "warning" && <Badge tone={failed ? "warn" : "plain"}>warning</Badge>}
      </div>
      {result.rows.length > 0 && <Offending result={result} />}
    </li>
  );
}

const MEASURES: Record<string, string> = {
  rows: "rows found",
  new_rows: "new rows",
  lost_rows: "rows lost",
};

function found(result: CheckResult): string {
  if (result.error) return visible(result.error);
  const measured = result.measured === null ? "unknown" : Number(result.measured.toPrecision(6));
  const share = result.bound.includes("%") ? "%" : "";
  return `${MEASURES[result.measure] ?? result.measure}: ${measured}${share}; allowed: ${result.bound}`;
}

function Offending({ result }: { result: CheckResult }) {
  const columns = Object.keys(result.rows[0] ?? {});
  return (
    <div class="table-box offending" tabIndex={0} role="region" aria-label={`Rows found by ${visible(result.name)}`}>
      <table>
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col">
                {visible(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {result.rows.map((row, i) => (
            <tr key={i}>
              {columns.map((name) => (
                <td key={name}>{valueText(row[name])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {result.measured !== null && result.measured > result.rows.length && !result.bound.includes("%") && (
        <p class="muted small offending-more">The first {result.rows.length} are shown.</p>
      )}
    </div>
  );
}
