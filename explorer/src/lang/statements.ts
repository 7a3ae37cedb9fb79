/** The statements of a mutation, in a few words each. */
import { queriesOf } from "./queries";
import { afterBracket, tokenize } from "./tokens";

export interface Statement {
  readonly verb: "insert" | "update" | "delete";
  readonly sign: "+" | "~" | "−";
  readonly type: string;
  readonly what: string;
}

const SIGNS = { insert: "+", update: "~", delete: "−" } as const;

export function statementsOf(text: string, name: string): Statement[] {
  const query = queriesOf(text).find((q) => q.name === name);
  if (!query) return [];
  const source = text.slice(query.body, query.bare ? query.end : query.end - 1);
  const tokens = tokenize(source);
  const starts = tokens.flatMap((token, i) => (token.text in SIGNS && tokens[i + 1]?.kind === "type" ? [i] : []));
  return starts.map((at, n) => {
    const verb = tokens[at]!.text as Statement["verb"];
    const end = tokens[(starts[n + 1] ?? tokens.length) - 1]!;
    const last = starts[n + 1] === undefined ? source.length : end.end;
    return { verb, sign: SIGNS[verb], type: tokens[at + 1]!.text, what: what(verb, source, tokens, at, last) };
  });
}

function what(
  verb: Statement["verb"],
  source: string,
  tokens: ReturnType<typeof tokenize>,
  at: number,
  end: number,
): string {
  if (verb !== "insert") {
    const where = tokens.findIndex((token, i) => i > at && token.text === "where");
    return where < 0 ? "" : source.slice(tokens[where]!.start, end).replace(/\s+/g, " ").trim();
  }
  let rows = 0;
  for (let i = at + 2; tokens[i]?.text === "{"; rows++) {
    i = afterBracket(tokens, i);
    if (tokens[i]?.text === ",") i++;
  }
  return rows === 1 ? "one row" : `${rows} rows`;
}
