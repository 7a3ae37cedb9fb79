/** The properties, rules and indices of a type. */
import type { EdgeInfo, NodeInfo, PropertyInfo } from "../../api";
import { bytes, count, counted, share, valueText } from "../../format";
import { Badge } from "../../ui/basics";

export function PropertyList({
  info,
}: {
  info: { properties: readonly PropertyInfo[]; key: readonly string[]; uniques: readonly (readonly string[])[] };
}) {
  if (info.properties.length === 0) return <p class="muted small">No properties.</p>;
  return (
    <dl class="property-list">
      {info.properties.map((property) => (
        <div key={property.name} title={property.description ?? undefined}>
          <dt>{property.name}</dt>
          <dd>
            <code>
              {property.enum ? "enum" : property.type}
              {property.nullable ? "?" : ""}
            </code>
            {info.key.includes(property.name) && <Badge tone="accent">key</Badge>}
            {info.uniques.some((group) => group.length === 1 && group[0] === property.name) && <Badge>unique</Badge>}
            {property.default !== null && <span class="muted small">default {valueText(property.default)}</span>}
            {property.enum && <span class="muted small">{property.enum.join(", ")}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function RuleList({ info }: { info: NodeInfo | EdgeInfo }) {
  const rules = [
    ...(info.key.length > 1 ? [`key: ${info.key.join(", ")}`] : []),
    ...info.uniques.filter((group) => group.length > 1).map((group) => `unique together: ${group.join(", ")}`),
    ...info.ranges.map((r) => `${r.property}: ${r.minimum ?? "…"} to ${r.maximum ?? "…"}`),
    ...info.checks.map((c) => `${c.property} fits ${c.pattern}`),
  ];
  if (rules.length === 0) return null;
  return (
    <ul class="rules" aria-label="Constraints">
      {rules.map((rule) => (
        <li key={rule}>{rule}</li>
      ))}
    </ul>
  );
}

const KINDS: Record<string, string> = {
  BTREE: "sorted",
  BITMAP: "bitmap",
  TEXT: "words",
  IVF_SQ: "vectors",
  EXACT: "none needed",
};

const SMALL_ROWS = 10_000; // so few are read faster than looked up
const WELL_COVERED = 0.9; // new rows are read as they are, and covered by the next maintenance

function waiting(info: NodeInfo | EdgeInfo): string {
  return info.count > SMALL_ROWS
    ? "Maintenance builds it; until then searches read all rows"
    : `Searches read all ${counted(info.count, "row")}; maintenance builds it when there are more`;
}

export function IndexList({ info }: { info: NodeInfo | EdgeInfo }) {
  const built = new Set(info.indices.map((index) => index.property));
  const missing = info.declared_indices.filter((group) => group.some((name) => !built.has(name)));
  if (info.indices.length === 0 && missing.length === 0) return null;
  return (
    <ul class="indices" aria-label="Indices">
      {missing.map((group) => (
        <li key={group.join(" ")} title={waiting(info)}>
          <span>{group.join(", ")}</span>
          <span class="muted">index</span>
          <span class={info.count > SMALL_ROWS ? "coverage coverage-part" : "coverage muted"}>
            {info.count > SMALL_ROWS ? "not built yet" : "not needed yet"}
          </span>
        </li>
      ))}
      {info.indices.map((index) => {
        const rest = index.rows - index.covered_rows;
        const behind = index.rows > 0 && index.covered_rows / index.rows < WELL_COVERED;
        return (
          <li
            key={`${index.property} ${index.kind}`}
            title={`${count(index.covered_rows)} of ${count(index.rows)} rows, ${bytes(index.bytes)}`}
          >
            <span>{index.property}</span>
            <span class="muted">{KINDS[index.kind] ?? index.kind}</span>
            <span class={behind ? "coverage coverage-part" : "coverage"}>
              {rest ? `${share(index.covered_rows, index.rows)}, ${counted(rest, "new row")}` : "all rows"}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
