/** Which type a file is of, and which property each column fills: guessed first, then decided by a person. Pure. */
import type { Catalog, EdgeInfo, NodeInfo } from "../../api";

export type TypeInfo = NodeInfo | EdgeInfo;
export type Format = "csv" | "tsv" | "ndjson" | "parquet" | "arrow";
/** Names in the file, and what they fill; null: left out. */
export type Mapping = Readonly<Record<string, string | null>>;

const ENDINGS: Record<string, Format> = {
  csv: "csv",
  tsv: "tsv",
  tab: "tsv",
  ndjson: "ndjson",
  jsonl: "ndjson",
  json: "ndjson",
  parquet: "parquet",
  pq: "parquet",
  arrow: "arrow",
  feather: "arrow",
  ipc: "arrow",
};

export function formatOf(fileName: string): Format | null {
  return ENDINGS[fileName.toLowerCase().split(".").at(-1) ?? ""] ?? null;
}

/** What a column may fill: properties, the id, and the ends of an edge. */
export function targetsOf(type: TypeInfo): string[] {
  const ends = type.kind === "edge" ? ["from", "to"] : [];
  return [...ends, ...type.properties.map((property) => property.name), ...(type.key.length > 0 ? [] : ["id"])];
}

/** What must be filled. */
export function neededOf(type: TypeInfo): string[] {
  const ends = type.kind === "edge" ? ["from", "to"] : [];
  return [...ends, ...type.properties.filter((p) => !p.nullable && p.default === null).map((p) => p.name)];
}

/** The property each column most likely fills: the same letters, whatever the case and the signs between them. */
export function guessMapping(columns: readonly string[], type: TypeInfo): Mapping {
  const taken = new Set<string>();
  return Object.fromEntries(
    columns.map((column) => {
      const found =
        targetsOf(type).find((target) => !taken.has(target) && folded(target) === folded(column)) ??
        aliased(column, type, taken);
      if (found !== null) taken.add(found);
      return [column, found];
    }),
  );
}

/** The type that has most of the columns, if one has any; of equals, the one that needs fewer others. */
export function guessType(columns: readonly string[], catalog: Catalog): TypeInfo | undefined {
  const scored = [...catalog.nodes, ...catalog.edges].map((type) => {
    const filled = Object.values(guessMapping(columns, type)).filter((target) => target !== null);
    const missing = neededOf(type).filter((name) => !filled.includes(name)).length;
    return { type, score: filled.length - 2 * missing };
  });
  const best = scored.sort((a, b) => b.score - a.score)[0];
  return best && best.score > 0 ? best.type : undefined;
}

export function missingOf(mapping: Mapping, type: TypeInfo): string[] {
  const filled = Object.values(mapping);
  return neededOf(type).filter((name) => !filled.includes(name));
}

/** Properties that two columns would fill. */
export function twiceOf(mapping: Mapping): string[] {
  const filled = Object.values(mapping).filter((target): target is string => target !== null);
  return [...new Set(filled.filter((target, i) => filled.indexOf(target) !== i))];
}

export function branchNameFor(fileName: string, now: Date): string {
  const stem = fileName
    .replace(/\.[^.]*$/, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 40);
  const day = now.toISOString().slice(0, 10);
  return `import-${stem || "file"}-${day}`;
}

const ALIASES: Record<string, readonly string[]> = {
  from: ["src", "source", "start", "fromid"],
  to: ["dst", "target", "end", "dest", "toid"],
};

function aliased(column: string, type: TypeInfo, taken: ReadonlySet<string>): string | null {
  return targetsOf(type).find((target) => !taken.has(target) && ALIASES[target]?.includes(folded(column))) ?? null;
}

function folded(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}
