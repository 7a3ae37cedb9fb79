/** Texts in Cypher: told apart as the server does it, and taken whole. What they mean is for the server to say. */
import type { QueryText } from "./queries";

const NAME = "cypher"; // as the server calls it

const BEFORE = /^(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))/;
const START =
  /^(?:optional\s+match\b|match\s*(?:\(|[a-z_`][\w`]*\s*=|(?:all)?shortestpaths?\s*\()|use\b|unwind\b|with\b|return\b(?!\s*\{)|call\b|create\b|merge\b|detach\s+delete\b)/i;
const QUOTED = /'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*"|`[^`]*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
const WRITES = /(?<![.:$\w])(?:create|merge|set|remove|delete)\b/i;

export const CYPHER_WORDS = new Set(
  "use match optional where with unwind return order by skip limit distinct union all case when then else end and or xor not in is null true false as asc ascending desc descending contains starts ends exists count call yield create merge set remove delete detach on".split(
    " ",
  ),
);

export function isCypher(text: string): boolean {
  return START.test(text.slice(begins(text)));
}

/** The whole text as one query. Nothing is drawn of it: its patterns are not read here. */
export function cypherQuery(text: string): QueryText {
  const start = begins(text);
  return {
    name: NAME,
    header: "",
    bare: true,
    start,
    body: start,
    end: text.trimEnd().length,
    mutation: WRITES.test(text.replace(QUOTED, " ")),
    branches: [],
    tail: "",
  };
}

/** Where a text begins after blanks and comments. */
function begins(text: string): number {
  let at = 0;
  for (let found = BEFORE.exec(text); found; found = BEFORE.exec(text.slice(at))) at += found[0].length;
  return at;
}
