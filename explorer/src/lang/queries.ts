/** What a text of queries consists of: for completion, for choosing one, and for drawing its matches. */
import { cypherQuery, isCypher } from "./cypher";
import { afterBracket, type Token, tokenize } from "./tokens";

export interface Binding {
  readonly variable: string; // with its $
  readonly type: string;
}

export interface Traversal {
  readonly from: string;
  readonly edges: readonly string[]; // words, as written
  readonly undirected: boolean;
  readonly hops: string; // `{1,3}`, or ""
  readonly edgeVariable: string | null;
  readonly path: string | null; // the variable of `$w = path …`
  readonly to: string;
}

export interface Pattern {
  readonly bindings: readonly Binding[];
  readonly traversals: readonly Traversal[];
}

/** One `match … return …`. */
export interface Branch extends Pattern {
  readonly match: string; // its block, with braces
  readonly projections: string; // between the braces of `return`
  readonly grouped: boolean; // aggregates, `distinct` or `having`: rows are no longer matches
}

export interface QueryText {
  readonly name: string;
  readonly header: string; // `query name(…)`
  readonly bare: boolean; // a body alone, as it may be typed anywhere
  readonly start: number;
  readonly body: number; // where its body begins
  readonly end: number;
  readonly mutation: boolean;
  readonly branches: readonly Branch[];
  readonly tail: string; // order, skip, limit
}

const AGGREGATES = new Set(["count", "sum", "avg", "min", "max", "collect"]);
const MEASURES = new Set(["count", "sum", "avg", "min", "max"]);
const OPERATOR_WORDS = new Set(["contains", "starts_with", "in", "is", "not", "and", "or"]);

const BODIES = new Set(["match", "insert", "update", "delete"]);
const BARE_NAME = "q"; // as the server calls it

/** Statements that stand alone in a text, below its settings; `explain` is told by the query behind it. */
const ALONE = new Set(["show", "branch"]);
const BRANCH_CHANGES = new Set(["create", "delete", "merge"]);

export function queriesOf(text: string): QueryText[] {
  if (isCypher(text)) return [cypherQuery(text)];
  const tokens = afterSettings(tokenize(text));
  if (BODIES.has(tokens[0]?.text ?? "")) return [bareQuery(text, tokens)];
  if (ALONE.has(tokens[0]?.text ?? "")) return [statementOf(tokens)];
  const found: QueryText[] = [];
  for (let i = 0; i < tokens.length; i++) {
    if (tokens[i]!.text !== "query" || tokens[i + 1]?.kind !== "word" || tokens[i + 2]?.text !== "(") continue;
    const afterParams = afterBracket(tokens, i + 2);
    const open = tokens.findIndex((token, at) => at >= afterParams && token.text === "{");
    if (open < 0) break;
    const end = afterBracket(tokens, open);
    found.push(queryAt(text, tokens, i, afterParams, open, end));
    i = end - 1;
  }
  return found;
}

/** What stands below `set name = value;` and `reset name;`. */
function afterSettings(tokens: Token[]): Token[] {
  let at = 0;
  while (["set", "reset"].includes(tokens[at]?.text ?? "")) {
    const end = tokens.findIndex((token, i) => i > at && token.text === ";");
    if (end < 0) break;
    at = end + 1;
  }
  return tokens.slice(at);
}

function statementOf(tokens: Token[]): QueryText {
  const { start } = tokens[0]!;
  return {
    name: BARE_NAME,
    header: tokens[0]!.text,
    bare: true,
    start,
    body: start,
    end: tokens.at(-1)!.end,
    mutation: tokens[0]!.text === "branch" && BRANCH_CHANGES.has(tokens[1]?.text ?? ""),
    branches: [],
    tail: "",
  };
}

/** The query a cursor stands in, or the nearest before it. */
export function queryAtOffset(text: string, offset: number): QueryText | undefined {
  const all = queriesOf(text);
  return all.find((q) => offset <= q.end) ?? all.at(-1);
}

function queryAt(text: string, tokens: Token[], at: number, afterParams: number, open: number, end: number): QueryText {
  return {
    name: tokens[at + 1]!.text,
    header: text.slice(tokens[at]!.start, tokens[afterParams - 1]!.end),
    bare: false,
    start: tokens[at]!.start,
    body: tokens[open]!.end,
    end: tokens[end - 1]?.end ?? text.length,
    ...bodyOf(text, tokens.slice(open + 1, end - 1)),
  };
}

function bareQuery(text: string, tokens: Token[]): QueryText {
  const { start } = tokens[0]!;
  const end = tokens.at(-1)!.end;
  return {
    name: BARE_NAME,
    header: `query ${BARE_NAME}()`,
    bare: true,
    start,
    body: start,
    end,
    ...bodyOf(text, tokens),
  };
}

function bodyOf(text: string, body: Token[]): Pick<QueryText, "mutation" | "branches" | "tail"> {
  const branches: Branch[] = [];
  let i = 0;
  while (body[i]?.text === "match" || body[i]?.text === "union" || body[i]?.text === "all") {
    if (body[i]!.text !== "match") {
      i++;
      continue;
    }
    const [branch, next] = branchAt(text, body, i);
    branches.push(branch);
    i = next;
  }
  return {
    mutation: ["insert", "update", "delete"].includes(body[0]?.text ?? ""),
    branches,
    tail: body[i] ? text.slice(body[i]!.start, body.at(-1)!.end) : "",
  };
}

function branchAt(text: string, body: Token[], at: number): [Branch, number] {
  const afterMatch = afterBracket(body, at + 1);
  const block = body.slice(at + 2, afterMatch - 1);
  let i = afterMatch;
  let grouped = false;
  let projections = "";
  if (body[i]?.text === "return") i++;
  if (body[i]?.text === "distinct") {
    grouped = true;
    i++;
  }
  if (body[i]?.text === "{") {
    const close = afterBracket(body, i);
    const inside = body.slice(i + 1, close - 1);
    projections = inside.length ? text.slice(inside[0]!.start, inside.at(-1)!.end) : "";
    grouped ||= inside.some(
      (token, n) => AGGREGATES.has(token.text) && inside[n + 1]?.text === "(" && inside[n - 1]?.text !== ".",
    );
    i = close;
  }
  if (body[i]?.text === "having" && body[i + 1]?.text === "{") {
    grouped = true;
    i = afterBracket(body, i + 1);
  }
  const match = text.slice(body[at + 1]?.start ?? 0, body[afterMatch - 1]?.end ?? text.length);
  return [{ ...patternOf(block), match, projections, grouped }, i];
}

/** The bindings and traversals of a block, also of `optional` blocks; what blocks hold that are only tested is not seen outside. */
export function patternOf(block: readonly Token[]): Pattern {
  const bindings: Binding[] = [];
  const traversals: Traversal[] = [];
  let i = 0;
  while (i < block.length) {
    const token = block[i]!;
    const tested = testedBlock(block, i);
    if (tested) {
      i = afterBracket(block, tested);
    } else if (token.text === "optional" && block[i + 1]?.text === "{") {
      i += 2;
    } else if (token.kind === "variable") {
      const [traversal, next] = traversalAt(block, i);
      if (traversal) {
        traversals.push(traversal);
        i = next;
      } else if (block[i + 1]?.text === ":" && block[i + 2]?.kind === "type") {
        bindings.push({ variable: token.text, type: block[i + 2]!.text });
        i = block[i + 3]?.text === "{" ? afterBracket(block, i + 3) : i + 3;
      } else i++;
    } else i++;
  }
  return { bindings, traversals };
}

/** Where the brace opens of a `not`, `exists` or measured block (`count {`, `sum($x.p) {`) that starts here; 0 where none does. */
function testedBlock(block: readonly Token[], at: number): number {
  const word = block[at]!.text;
  if (word === "not" || word === "exists") return block[at + 1]?.text === "{" ? at + 1 : 0;
  if (!MEASURES.has(word)) return 0;
  const brace = block[at + 1]?.text === "(" ? afterBracket(block, at + 1) : at + 1;
  return block[brace]?.text === "{" ? brace : 0;
}

function traversalAt(block: readonly Token[], start: number): [Traversal | null, number] {
  let i = start;
  let path: string | null = null;
  if (block[i + 1]?.text === "=" && ["path", "paths"].includes(block[i + 2]?.text ?? "")) {
    path = block[i]!.text;
    i += 3;
  }
  const from = block[i++];
  let edgeVariable: string | null = null;
  if (block[i]?.kind === "variable" && block[i + 1]?.text === ":") {
    edgeVariable = block[i]!.text;
    i += 2;
  }
  const undirected = block[i]?.text === "<";
  if (undirected) i++;
  const bracketed = block[i]?.text === "(";
  if (bracketed) i++;
  const edges: string[] = [];
  for (; block[i]?.kind === "word" && !OPERATOR_WORDS.has(block[i]!.text); i++) {
    edges.push(block[i]!.text);
    if (block[i + 1]?.text !== "|") {
      i++;
      break;
    }
    i++;
  }
  if (bracketed && block[i]?.text === ")") i++;
  if (undirected) {
    if (block[i]?.text !== ">") return [null, start];
    i++;
  }
  let hops = "";
  if (block[i]?.text === "{" && block[i + 1]?.kind === "number") {
    const end = afterBracket(block, i);
    hops = block
      .slice(i, end)
      .map((token) => token.text)
      .join("");
    i = end;
  }
  const to = block[i];
  if (from?.kind !== "variable" || to?.kind !== "variable" || edges.length === 0) return [null, start];
  return [{ from: from.text, edges, undirected, hops, edgeVariable, path, to: to.text }, i + 1];
}
