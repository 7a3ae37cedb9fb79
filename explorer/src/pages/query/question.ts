/** What is being asked: a text and the query in it where the cursor stands, or a stored query; and the values for it. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Diagnostic, ParamInfo, QueryInfo } from "../../api";
import { useHere } from "../../context";
import { type Draft, useDraft } from "../../editor";
import { useAsync, useRested } from "../../hooks";
import { queryAtOffset, type QueryText } from "../../lang/queries";
import { setParams, useRoute } from "../../router";
import { keepDraft, queryDraft, shelveDraft } from "./draft";
import { exampleQuery } from "./example";
import type { Kept } from "./keep";
import { type Parsed, parseParams, type Texts } from "./params";

const REST_MILLISECONDS = 300;

export interface Question {
  readonly draft: Draft;
  readonly query: QueryText | undefined; // where the cursor stands
  readonly stored: QueryInfo | null; // asked instead of the text
  readonly storedQueries: readonly QueryInfo[];
  readonly name: string;
  readonly mutation: boolean;
  readonly params: readonly ParamInfo[];
  readonly texts: Texts;
  readonly parsed: Parsed;
  readonly diagnostics: readonly Diagnostic[];
  readonly checking: boolean;
  readonly shelved: number; // drafts that gave way to something else
  readonly ready: boolean; // what the address asks for is here and understood
  readonly type: (text: string) => void;
  readonly replace: (text: string) => void;
  readonly setTexts: (texts: Texts) => void;
  readonly setCursor: (offset: number) => void;
  readonly open: (kept: Pick<Kept, "text" | "texts">) => void;
  readonly openStored: (name: string | null) => void;
}

export function useQuestion(): Question {
  const { client, catalog } = useHere();
  const route = useRoute();
  const example = useMemo(() => (catalog ? exampleQuery(catalog) : ""), []);
  const left = useMemo(() => queryDraft(route.graph), []);
  const linked = route.params["q"] !== undefined || route.params["stored"] !== undefined;
  const [draft, type, replace] = useDraft(route.params["q"] ?? left?.text ?? example);
  const [texts, setTexts] = useState<Texts>(() => (linked ? readTexts(route.params["p"]) : (left?.texts ?? {})));
  const [cursor, setCursor] = useState(0);
  const [shelved, setShelved] = useState(0);
  const shelve = (next: string) => shelveDraft(route.graph, next) && setShelved((n) => n + 1);
  const storedQueries = useAsync(() => client.storedQueries(), [client]);
  const stored = storedQueries.value?.find((q) => q.name === route.params["stored"]) ?? null;
  const check = useCheck(draft.text);
  const query = queryAtOffset(draft.text, cursor);
  const info = stored ?? check.queries.find((q) => q.name === query?.name);
  const params = useMemo(() => info?.params ?? [], [info]);
  const parsed = useMemo(() => parseParams(params, texts), [params, texts]);

  useEffect(() => {
    if (!linked && left?.ran) setParams({ q: left.text, p: paramText(left.texts), view: left.view, run: "1" });
  }, []);
  useEffect(() => {
    const asked = route.params["q"];
    if (asked === undefined) return;
    shelve(asked);
    replace(asked);
    setTexts(readTexts(route.params["p"]));
  }, [route.params["q"], route.params["p"]]);
  useEffect(() => {
    if (draft.text === example || stored) return;
    const ran = route.params["run"] === "1" && route.params["q"] === draft.text;
    keepDraft(route.graph, { text: draft.text, texts, ran, view: route.params["view"] ?? null });
  }, [draft.text, texts, route.params["run"], route.params["q"], route.params["view"]]);

  return {
    draft,
    query,
    stored,
    params,
    texts,
    parsed,
    type,
    replace,
    setTexts,
    setCursor,
    shelved,
    storedQueries: storedQueries.value ?? [],
    name: stored?.name ?? query?.name ?? "query",
    mutation: stored?.mutation ?? query?.mutation ?? false,
    diagnostics: check.diagnostics,
    checking: check.checking,
    ready: route.params["stored"] ? stored !== null : !check.checking && draft.text === route.params["q"],
    open: (kept) => {
      shelve(kept.text);
      replace(kept.text);
      setTexts(kept.texts);
      setParams({ q: kept.text, p: paramText(kept.texts), view: null, run: null, stored: null }, { replace: false });
    },
    openStored: (name) => {
      setTexts({});
      setParams({ q: null, p: null, view: null, run: null, stored: name }, { replace: false });
    },
  };
}

/** What the compiler says about a text, once nobody types any more. */
function useCheck(text: string) {
  const { client, point } = useHere();
  const rested = useRested(text, REST_MILLISECONDS);
  const checked = useAsync((signal) => client.checkQuery(point, rested, signal), [client, point, rested]);
  const checking = checked.loading || rested !== text || checked.value === undefined;
  const diagnostics = useMemo(
    () => (rested === text ? (checked.value?.diagnostics ?? []) : []),
    [checked.value, rested, text],
  );
  return { checking, diagnostics, queries: checked.value?.queries ?? [] };
}

/** The values as the address holds them. */
export function paramText(texts: Texts): string | null {
  return Object.keys(texts).length > 0 ? JSON.stringify(texts) : null;
}

function readTexts(json: string | undefined): Texts {
  try {
    const found: unknown = JSON.parse(json ?? "{}");
    if (!found || typeof found !== "object" || Array.isArray(found)) return {};
    return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, String(value)]));
  } catch {
    return {};
  }
}
