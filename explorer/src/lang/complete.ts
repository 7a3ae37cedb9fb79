/** What may come next in a text, from the schema. Pure: the editor turns it into a list. */
import type { Catalog, PropertyInfo } from "../api";
import { edgeWord } from "../canvas/source";
import { edgeOf } from "./drawing";
import { patternOf } from "./queries";
import { tokenize, type Token } from "./tokens";

export interface Offer {
  readonly label: string;
  readonly kind: "keyword" | "type" | "edge" | "property" | "variable" | "function";
  readonly detail?: string;
}

export interface Offers {
  readonly from: number; // where the word that is being typed begins
  readonly options: Offer[];
}

const CLAUSES = [
  "match",
  "return",
  "order",
  "limit",
  "skip",
  "having",
  "union",
  "not",
  "exists",
  "optional",
  "distinct",
  "insert",
  "update",
  "delete",
  "set",
  "where",
  "query",
];
const WORDS = [
  "and",
  "or",
  "in",
  "contains",
  "starts_with",
  "is null",
  "is not null",
  "as",
  "desc",
  "asc",
  "path",
  "paths",
  "true",
  "false",
  "null",
];
const FUNCTIONS = [
  "count",
  "sum",
  "avg",
  "min",
  "max",
  "collect",
  "lower",
  "upper",
  "trim",
  "length",
  "concat",
  "substring",
  "regex_match",
  "year",
  "month",
  "day",
  "hour",
  "minute",
  "second",
  "date_add",
  "date_sub",
  "days_between",
  "now",
  "coalesce",
  "cast",
  "type",
  "entity",
  "nodes",
  "edges",
  "date",
  "datetime",
  "search",
  "search_all",
  "phrase",
  "prefix",
  "fuzzy",
  "search_query",
  "highlight",
  "bm25",
  "nearest",
  "rrf",
];
const BASES = ["String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime", "Vector", "Blob"];
const SCHEMA_WORDS = ["node", "edge", "interface", "implements", "enum"];
const ANNOTATIONS = [
  "@key",
  "@unique",
  "@index",
  "@default",
  "@embed",
  "@metric",
  "@description",
  "@instruction",
  "@rename_from",
  "@range",
  "@check",
  "@card",
];

export function offersForQuery(text: string, offset: number, catalog: Catalog): Offers | null {
  const tokens = tokenize(text.slice(0, offset), true);
  const last = tokens.at(-1);
  if (last?.kind === "comment" || (last?.kind === "string" && !/^".*"$/s.test(last.text))) return null;
  const typing = last && last.end === offset && /^[\w$@]/.test(last.text) ? last : undefined;
  const before = typing ? tokens.slice(0, -1) : tokens;
  return { from: typing ? typing.start : offset, options: optionsFor(text, before, typing, catalog) };
}

function optionsFor(text: string, before: Token[], typing: Token | undefined, catalog: Catalog): Offer[] {
  const [last, previous, third] = [before.at(-1), before.at(-2), before.at(-3)];
  const types = typesOfVariables(text, catalog);
  if (last?.text === "." && previous?.kind === "variable")
    return [
      ...properties(propertiesOf(types.get(previous.text), catalog)),
      { label: "id", kind: "property", detail: "String" },
    ];
  if (last?.text === ":" && previous?.kind === "variable" && insideParams(before))
    return BASES.map((label) => ({ label, kind: "type" }));
  if (last?.text === ":" && previous?.kind === "variable")
    return third?.kind === "variable" ? edgesFrom(types.get(third.text), catalog) : nodeTypes(catalog);
  if (["insert", "update", "delete"].includes(last?.text ?? ""))
    return [
      ...nodeTypes(catalog),
      ...catalog.edges.map((e): Offer => ({ label: e.name, kind: "type", detail: "edge" })),
    ];
  if (typing?.kind === "variable") return variables(text);
  const fields = fieldsHere(before, catalog);
  if (fields) return properties(fields);
  const general = [
    ...variables(text),
    ...FUNCTIONS.map((label): Offer => ({ label, kind: "function" })),
    ...[...CLAUSES, ...WORDS].map((label): Offer => ({ label, kind: "keyword" })),
  ];
  return last?.kind === "variable" ? [...edgesFrom(types.get(last.text), catalog), ...general] : general;
}

/** Inside `Type { … }` of a pattern or an insert, names of properties stand where a value does not. */
function fieldsHere(before: readonly Token[], catalog: Catalog): PropertyInfo[] | null {
  let depth = 0;
  for (let i = before.length - 1; i >= 0; i--) {
    const { text } = before[i]!;
    if (text === "}") depth++;
    if (text === "{" && depth-- === 0) {
      const owner = before[i - 1];
      const at = before.at(-1)?.text;
      return owner?.kind === "type" && (at === "{" || at === ",") ? propertiesOf(owner.text, catalog) : null;
    }
  }
  return null;
}

function insideParams(before: readonly Token[]): boolean {
  const open = before.findLastIndex((token) => token.text === "(" || token.text === "{" || token.text === "}");
  return before[open]?.text === "(" && before[open - 2]?.text === "query";
}

/** The type of every variable of a text, as far as bindings and walks tell. */
export function typesOfVariables(text: string, catalog: Catalog): Map<string, string> {
  const { bindings, traversals } = patternOf(tokenize(text));
  const found = new Map(bindings.map((b) => [b.variable, b.type]));
  for (const traversal of traversals) {
    const edge = edgeOf(catalog, traversal.edges[0] ?? "");
    if (!edge) continue;
    const backwards = found.get(traversal.from) === edge.to && edge.from !== edge.to;
    const [from, to] = backwards ? [edge.to, edge.from] : [edge.from, edge.to];
    if (!found.has(traversal.from)) found.set(traversal.from, from);
    if (!found.has(traversal.to)) found.set(traversal.to, to);
    if (traversal.edgeVariable) found.set(traversal.edgeVariable, edge.name);
  }
  return found;
}

function propertiesOf(type: string | undefined, catalog: Catalog): PropertyInfo[] {
  const all = [...catalog.nodes, ...catalog.interfaces, ...catalog.edges];
  return all.find((info) => info.name === type)?.properties ?? [];
}

function properties(infos: readonly PropertyInfo[]): Offer[] {
  return infos.map((p) => ({ label: p.name, kind: "property", detail: `${p.type}${p.nullable ? "?" : ""}` }));
}

function nodeTypes(catalog: Catalog): Offer[] {
  return [
    ...catalog.nodes.map((n): Offer => ({ label: n.name, kind: "type", detail: "node" })),
    ...catalog.interfaces.map((i): Offer => ({ label: i.name, kind: "type", detail: "interface" })),
  ];
}

function edgesFrom(type: string | undefined, catalog: Catalog): Offer[] {
  const fitting = catalog.edges.filter((e) => type === undefined || e.from === type || e.to === type);
  return fitting.map((e) => ({ label: edgeWord(e.name), kind: "edge", detail: `${e.from} → ${e.to}` }));
}

function variables(text: string): Offer[] {
  const names = new Set(
    tokenize(text)
      .filter((t) => t.kind === "variable" && t.text.length > 1)
      .map((t) => t.text),
  );
  return [...names].map((label) => ({ label, kind: "variable" }));
}

export function offersForSchema(text: string, offset: number): Offers | null {
  const tokens = tokenize(text.slice(0, offset), true);
  const last = tokens.at(-1);
  if (last?.kind === "comment" || (last?.kind === "string" && !/^".*"$/s.test(last.text))) return null;
  const typing = last && last.end === offset && /^[\w@]/.test(last.text) ? last : undefined;
  const own = tokenize(text).filter(
    (t, i, all) => t.kind === "type" && ["node", "edge", "interface"].includes(all[i - 1]?.text ?? ""),
  );
  const options = [
    ...own.map((t): Offer => ({ label: t.text, kind: "type" })),
    ...BASES.map((label): Offer => ({ label, kind: "type" })),
    ...SCHEMA_WORDS.map((label): Offer => ({ label, kind: "keyword" })),
    ...ANNOTATIONS.map((label): Offer => ({ label, kind: "keyword" })),
  ];
  return { from: typing ? typing.start : offset, options };
}
