/** The words and signs of both languages. Enough for colours, completion and drawing; what is right is for the server to say. */

export type TokenKind =
  "variable" | "type" | "word" | "string" | "number" | "annotation" | "sign" | "comment" | "broken";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const PATTERN =
  /(?<comment>\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<string>"(?:[^"\\]|\\[\s\S])*(?:"|$))|(?<variable>\$[a-z_]\w*|\$)|(?<annotation>@[a-z_]\w*)|(?<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<type>[A-Z]\w*)|(?<word>[a-z_]\w*)|(?<sign>->|!=|<=|>=|\.\.|[-+*/%=<>(){}[\],:;.|?@&])|(?<broken>\S)/gy;

/** All tokens of a text; white space is left out, comments too unless they are wanted. */
export function tokenize(text: string, withComments = false): Token[] {
  const found: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const space = /\s*/y;
    space.lastIndex = at;
    at += space.exec(text)?.[0].length ?? 0;
    if (at >= text.length) break;
    PATTERN.lastIndex = at;
    const match = PATTERN.exec(text);
    if (!match?.groups) break;
    const kind = Object.keys(match.groups).find((name) => match.groups?.[name] !== undefined) as TokenKind;
    const end = at + match[0].length;
    if (kind !== "comment" || withComments) found.push({ kind, text: match[0], start: at, end });
    at = end;
  }
  return found;
}

/** The index after the bracket that closes the one at `open`; the end of the tokens where there is none. */
export function afterBracket(tokens: readonly Token[], open: number): number {
  const opening = tokens[open]?.text ?? "";
  const closing = { "{": "}", "(": ")", "[": "]" }[opening];
  let depth = 0;
  for (let i = open; i < tokens.length; i++) {
    const { text, kind } = tokens[i]!;
    if (kind !== "sign") continue;
    if (text === opening) depth++;
    else if (text === closing && --depth === 0) return i + 1;
  }
  return tokens.length;
}
