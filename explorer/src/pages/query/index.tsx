/** Ask the graph. The text, the values and the view are in the address, so a link shows the same to somebody else. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ApiError, ChangeOutput, QueryInfo, ReadOutput } from "../../api";
import { useHere } from "../../context";
import { Editor, useDraft } from "../../editor";
import { queryLanguage } from "../../editor/languages";
import { counted } from "../../format";
import { asApiError, useAsync, useEvent, useRested } from "../../hooks";
import { keyLabel, useShortcut } from "../../keys";
import { offersForQuery } from "../../lang/complete";
import { queryAtOffset, queriesOf } from "../../lang/queries";
import { currentRoute, go, href, type Route, setParams, useRoute } from "../../router";
import { Button, Empty, Failure, Notice, Panel, Progress } from "../../ui/basics";
import { toast } from "../../ui/toast";
import { exampleQuery } from "./example";
import { type Kept, remember } from "./keep";
import { ConfirmMutation, type Decision } from "./mutation";
import { ParamsForm, parseParams, type Texts } from "./params";
import "./query.css";
import { Results, type View, VIEWS } from "./results";
import { type Outcome, runRead } from "./run";
import { Shelf } from "./shelf";

const REST_MILLISECONDS = 300;

type Done = { outcome: Outcome } | { changed: ChangeOutput } | { error: ApiError };

export default function QueryPage() {
  const here = useHere();
  const { client, point, catalog } = here;
  const route = useRoute();
  const example = useMemo(() => (catalog ? exampleQuery(catalog) : ""), []);
  const [draft, type, replace] = useDraft(route.params["q"] ?? example);
  const { text } = draft;
  const [texts, setTexts] = useState<Texts>(() => readTexts(route.params["p"]));
  const [cursor, setCursor] = useState(0);
  const storedQueries = useAsync(() => client.storedQueries(), [client]);
  const stored = storedQueries.value?.find((q) => q.name === route.params["stored"]) ?? null;
  const [shownErrors, setShownErrors] = useState(false);
  const [done, setDone] = useState<Done | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const [asking, setAsking] = useState(false);
  const ran = useRef<string | null>(null); // what the last run was asked by
  const [shelfVersion, setShelfVersion] = useState(0);

  const rested = useRested(text, REST_MILLISECONDS);
  const checked = useAsync((signal) => client.checkQuery(point, rested, signal), [client, point, rested]);
  const diagnostics = useMemo(() => (rested === text ? checked.value?.diagnostics ?? [] : []), [checked.value, rested, text]);
  const queries = useMemo(() => queriesOf(text), [text]);
  const query = queryAtOffset(text, cursor);
  const info = stored ?? checked.value?.queries.find((q) => q.name === query?.name);
  const params = useMemo(() => info?.params ?? [], [info]);
  const parsed = useMemo(() => parseParams(params, texts), [params, texts]);
  const view = VIEWS.find((v) => v === route.params["view"]) ?? (query?.branches.some((b) => b.grouped) || stored ? "table" : "graph");

  useEffect(() => {
    const wanted = route.params["q"];
    if (wanted !== undefined) replace(wanted);
    setTexts(readTexts(route.params["p"]));
  }, [route.params["q"], route.params["p"]]);

  /** Run what the cursor stands in; `quiet` for a link, which never changes anything. */
  const run = useEvent((quiet = false) => {
    setShownErrors(true);
    if (Object.keys(parsed.errors).length > 0) return;
    if (!(stored?.mutation ?? query?.mutation)) void read();
    else if (!quiet && here.may("change")) setAsking(true);
  });

  const read = async () => {
    if (!query && !stored) return;
    running?.abort();
    const control = new AbortController();
    setRunning(control);
    setParams({ q: stored ? null : text, stored: stored?.name ?? null, p: Object.keys(texts).length ? JSON.stringify(texts) : null, run: "1" }, { replace: currentRoute().params["q"] === text });
    ran.current = askedBy(currentRoute());
    try {
      const outcome = stored ? await runStored(stored) : await runRead(client, point, text, query!, parsed.values, control.signal);
      if (!control.signal.aborted) setDone({ outcome });
      if (!stored) keep(query!.name);
    } catch (error) {
      if (!control.signal.aborted) setDone({ error: asApiError(error) });
    } finally {
      if (!control.signal.aborted) setRunning(null);
    }
  };

  const runStored = async (wanted: QueryInfo): Promise<Outcome> => {
    const begun = performance.now();
    const output = (await client.invoke(wanted.name, point, parsed.values)) as ReadOutput;
    return { output, milliseconds: performance.now() - begun, params: parsed.values, query: undefined };
  };

  const mutate = async ({ branch, create, message }: Decision) => {
    setAsking(false);
    setRunning(new AbortController());
    try {
      if (create) await client.createBranch(branch, here.route.branch);
      const changed = stored
        ? ((await client.invoke(stored.name, { branch }, parsed.values)) as ChangeOutput)
        : await client.mutate(branch, { query: text, name: query!.name, params: parsed.values, message: message || undefined });
      if (!stored) keep(query!.name);
      if (create) go({ branch });
      here.refresh();
      setDone({ changed });
    } catch (error) {
      setDone({ error: asApiError(error) });
    } finally {
      setRunning(null);
    }
  };

  const keep = (name: string) => {
    remember(here.route.graph, { text, name, texts, at: Date.now() });
    setShelfVersion((n) => n + 1);
  };

  const open = (kept: Pick<Kept, "text" | "texts">) => {
    replace(kept.text);
    setTexts(kept.texts);
    setDone(null);
    setParams({ q: kept.text, p: Object.keys(kept.texts).length ? JSON.stringify(kept.texts) : null, view: null, run: null, stored: null }, { replace: false });
  };

  const openStored = (name: string | null) => {
    setDone(null);
    setTexts({});
    setParams({ q: null, p: null, view: null, run: null, stored: name }, { replace: false });
  };

  useShortcut("mod+Enter", "Run the query", "Query", () => run());
  useShortcut("Escape", "Stop waiting for the answer", "Query", () => { running?.abort(); setRunning(null); }, running !== null);
  const compiled = checked.value !== undefined && !checked.loading && rested === text && text === route.params["q"];
  useRunFromLink(route, ran, route.params["stored"] ? stored !== null : compiled, () => run(true));

  const mutation = stored?.mutation ?? query?.mutation ?? false;
  const refused = mutation && !here.may("change");
  return (
    <div class="page query-page">
      <h1 class="hidden-visually">Query</h1>
      <div class="query-grid">
        <Shelf version={shelfVersion} stored={storedQueries.value ?? []} current={stored?.name} onOpen={open} onStored={openStored}
          onSave={() => ({ text, name: query?.name ?? "query", texts, at: Date.now() })} />
        <div class="stack grow">
          <Panel label="Editor" class="editor-panel">
            {stored ? (
              <StoredHead stored={stored} onLeave={() => openStored(null)} />
            ) : (
              <Editor label="Query text" draft={draft} language={queryLanguage} diagnostics={diagnostics} onChange={type} onRun={() => run()}
                onCursor={setCursor} offers={(now, offset) => (catalog ? offersForQuery(now, offset, catalog) : null)} />
            )}
            {params.length > 0 && <ParamsForm params={params} texts={texts} errors={shownErrors ? parsed.errors : {}} onChange={setTexts} onRun={() => run()} />}
            <footer class="run-bar">
              <Button kind="primary" onClick={() => run()} disabled={running !== null || refused || (!stored && !query)}>
                {mutation ? "Run…" : "Run"} <kbd class="on-primary" aria-hidden="true">{keyLabel("mod+Enter")}</kbd>
              </Button>
              {running && <Button onClick={() => { running.abort(); setRunning(null); }}>Stop</Button>}
              {queries.length > 1 && !stored && <span class="muted">Runs <code>{query?.name}</code>, where the cursor stands</span>}
              {refused && <span class="muted">{here.route.at ? "The past cannot be changed." : "You may not change this branch."}</span>}
              <Problems diagnostics={diagnostics} checking={checked.loading || rested !== text} />
            </footer>
          </Panel>
          {running && <Progress label="Running" />}
          {!running && done && "error" in done && <RunFailure error={done.error} onLimit={() => { replace(withLimit(text, query?.end)); }} />}
          {!running && done && "changed" in done && done.changed.branch === here.route.branch && <Changed changed={done.changed} />}
          {!running && done && "outcome" in done && <Results outcome={done.outcome} view={view as View} onView={(next) => setParams({ view: next })} />}
          {!running && !done && <Empty>Run a query to see what it finds. <kbd>?</kbd> shows all keys.</Empty>}
        </div>
      </div>
      {asking && (query || stored) && <ConfirmMutation text={text} name={stored?.name ?? query!.name} params={parsed.values} stored={stored !== null} onRun={(decision) => void mutate(decision)} onClose={() => setAsking(false)} />}
    </div>
  );
}

/** A link that says so runs its query once everything is there, and again when it leads to another branch or point in time. */
function useRunFromLink(route: Route, ran: { current: string | null }, ready: boolean, run: () => void): void {
  const asked = askedBy(route);
  const wanted = route.params["run"] === "1";
  useEffect(() => {
    if (!wanted || !ready || ran.current === asked) return;
    ran.current = asked;
    run();
  }, [wanted, ready, asked]);
}

function askedBy({ branch, at, params }: Route): string {
  return JSON.stringify([branch, at, params["q"], params["stored"], params["p"]]);
}

function Problems({ diagnostics, checking }: { diagnostics: readonly { severity: string }[]; checking: boolean }) {
  const errors = diagnostics.filter((d) => d.severity === "error").length;
  const text = checking ? "" : errors ? counted(errors, "problem") : "No problems";
  return <span class={errors ? "problems problems-bad" : "problems"} role="status">{text}</span>;
}

function StoredHead({ stored, onLeave }: { stored: QueryInfo; onLeave: () => void }) {
  return (
    <div class="panel-body stored-head">
      <div class="row spread"><h2>{stored.name}</h2><Button small onClick={onLeave}>Back to the editor</Button></div>
      <p class="muted">{stored.description ?? "A query stored on the server."}</p>
    </div>
  );
}

function RunFailure({ error, onLimit }: { error: ApiError; onLimit: () => void }) {
  const tooMany = error.code === "limit_exceeded" && error.details["limit"] === "max_rows";
  return (
    <>
      <Failure error={error} />
      {tooMany && <div class="row"><Button onClick={onLimit}>Add a limit of 1,000</Button></div>}
    </>
  );
}

function Changed({ changed }: { changed: ChangeOutput }) {
  if (!changed.commit) return <Notice>Nothing matched, so nothing was changed and no commit was made.</Notice>;
  const id = changed.commit.graph_commit_id;
  const copy = () => void navigator.clipboard.writeText(id).then(() => toast("Copied"));
  return (
    <Notice tone="good">
      <p><strong>{counted(changed.affected_nodes, "node")} and {counted(changed.affected_edges, "edge")} changed</strong> on {changed.branch}</p>
      <p class="row">
        Commit <code>{id}</code> <Button small kind="quiet" onClick={copy}>Copy</Button>
        {changed.branch !== "main" && <a href={href({ page: "review", params: { source: changed.branch, target: "main" } })}>Review and merge</a>}
      </p>
    </Notice>
  );
}

function withLimit(text: string, end: number | undefined): string {
  const close = text.lastIndexOf("}", end === undefined ? undefined : end - 1);
  return close < 0 ? text : `${text.slice(0, close).trimEnd()}\n  limit 1000\n${text.slice(close)}`;
}

function readTexts(json: string | undefined): Texts {
  try {
    const found: unknown = JSON.parse(json ?? "{}");
    return found && typeof found === "object" && !Array.isArray(found) ? Object.fromEntries(Object.entries(found).map(([k, v]) => [k, String(v)])) : {};
  } catch {
    return {};
  }
}
