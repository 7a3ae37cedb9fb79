/** Colours for both languages. */
import {
  HighlightStyle,
  LanguageSupport,
  StreamLanguage,
  syntaxHighlighting,
  type StringStream,
} from "@codemirror/language";
import { Tag, tags } from "@lezer/highlight";
import { CYPHER_WORDS } from "../lang/cypher";

const QUERY_WORDS = new Set(
  "query match return distinct order limit skip having union all not exists optional and or in is null true false as asc desc contains starts_with path insert update delete set where from to".split(
    " ",
  ),
);
/** They begin a line of settings or a statement; elsewhere they are names. */
const LINE_WORDS = new Set("set reset show explain branch".split(" "));
const SCHEMA_WORDS = new Set("node edge interface implements enum true false".split(" "));
const annotation = Tag.define(tags.meta);

interface State {
  inComment: boolean;
  inString: boolean;
}

function reader(words: ReadonlySet<string>) {
  return (stream: StringStream, state: State): string | null => {
    if (state.inComment) return restOfComment(stream, state);
    if (state.inString) return restOfString(stream, state);
    const first = stream.sol();
    if (stream.eatSpace()) return null;
    if (stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.inComment = true;
      return restOfComment(stream, state);
    }
    if (stream.match(/^'(?:[^'\\]|\\.)*'/)) return "string"; // of Cypher
    if (stream.eat('"')) {
      state.inString = true;
      return restOfString(stream, state);
    }
    if (stream.match(/^\$\w*/)) return "variableName";
    if (stream.match(/^@\w+/)) return "annotation";
    if (stream.match(/^\d+(\.\d+)?([eE][+-]?\d+)?/)) return "number";
    const upper = stream.match(/^[A-Z]\w*/) as RegExpMatchArray | null;
    if (upper) return words === QUERY_WORDS && isUpperWord(upper[0]) ? "keyword" : "typeName";
    const word = stream.match(/^[a-z_]\w*/) as RegExpMatchArray | null;
    if (word) return words.has(word[0]) || (first && LINE_WORDS.has(word[0])) ? "keyword" : "propertyName";
    stream.next();
    return null;
  };
}

/** Words of Cypher are written in capitals, as no type is. */
function isUpperWord(word: string): boolean {
  return word === word.toUpperCase() && CYPHER_WORDS.has(word.toLowerCase());
}

function restOfComment(stream: StringStream, state: State): string {
  if (stream.skipTo("*/")) {
    stream.match("*/");
    state.inComment = false;
  } else stream.skipToEnd();
  return "comment";
}

function restOfString(stream: StringStream, state: State): string {
  for (let next = stream.next(); next; next = stream.next()) {
    if (next === "\\") stream.next();
    else if (next === '"') {
      state.inString = false;
      break;
    }
  }
  return "string";
}

function language(name: string, words: ReadonlySet<string>): LanguageSupport {
  const made = StreamLanguage.define<State>({
    name,
    startState: () => ({ inComment: false, inString: false }),
    copyState: (state) => ({ ...state }),
    token: reader(words),
    tokenTable: { annotation },
    languageData: { commentTokens: { line: "//" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
  });
  return new LanguageSupport(made, syntaxHighlighting(colours));
}

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--syntax-keyword)", fontWeight: "600" },
  { tag: tags.typeName, color: "var(--syntax-type)" },
  { tag: tags.variableName, color: "var(--syntax-variable)" },
  { tag: tags.string, color: "var(--syntax-string)" },
  { tag: tags.number, color: "var(--syntax-number)" },
  { tag: tags.comment, color: "var(--syntax-comment)", fontStyle: "italic" },
  { tag: annotation, color: "var(--syntax-annotation)" },
]);

export const queryLanguage = language("gq", QUERY_WORDS);
export const schemaLanguage = language("pg", SCHEMA_WORDS);
