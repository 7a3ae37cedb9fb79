/** What happened: the commits of all branches, what two points differ in, and taking a commit back. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Commit } from "../../api";
import { useHere } from "../../context";
import { ago, branchOf, shortCommit, visible, when } from "../../format";
import { asApiError, useAsync } from "../../hooks";
import { go, href, setParams, useRoute } from "../../router";
import { useReviews } from "../../reviews";
import { Badge, Button, Empty, Failure, Panel, Skeleton } from "../../ui/basics";
import { Compare } from "./compare";
import { Counts } from "./counts";
import "./history.css";
import { Drawing, ROW_PIXELS } from "./drawing";
import { type History, historyOf } from "./pages";
import { RevertDialog } from "./revert";

export default function HistoryPage() {
  const here = useHere();
  const { params } = useRoute();
  const first = useAsync(() => historyOf(here.client), [here.client]);
  const [more, setMore] = useState<History[]>([]);
  const [loading, setLoading] = useState(false);
  useEffect(() => setMore([]), [first.value]);
  const pages = useMemo(() => (first.value ? [first.value, ...more] : []), [first.value, more]);
  const commits = useMemo(() => pages.flatMap((page) => page.commits), [pages]);
  const parents = useMemo(() => Object.assign({}, ...pages.map((page) => page.parents)) as History["parents"], [pages]);
  const next = pages.at(-1)?.next ?? null;
  const { a, b, commit: chosen } = params;
  const selected = commits.find((c) => c.graph_commit_id === chosen);

  const older = async () => {
    setLoading(true);
    try {
      const page = await historyOf(here.client, next);
      setMore((old) => [...old, page]);
    } finally {
      setLoading(false);
    }
  };

  return (
    <div class="page">
      <div class="page-head">
        <h1>History</h1>
        <CompareForm a={a ?? ""} b={b ?? ""} known={first.value} />
      </div>
      {a && b && (
        <Compare a={a} b={b} onClose={() => setParams({ a: null, b: null, type: null, op: null, view: null })} />
      )}
      {first.error && <Failure error={first.error} retry={first.reload} />}
      {!first.value && !first.error && (
        <Panel label="Reading history">
          <Skeleton label="Reading history" rows={8} />
        </Panel>
      )}
      {first.value && commits.length === 0 && <Empty>Nothing happened yet.</Empty>}
      {commits.length > 0 && (
        <div class={selected ? "history with-details" : "history"}>
          <Panel label="Commits of all branches">
            <CommitList commits={commits} parents={parents} page={pages[0]} chosen={chosen} />
            {next !== null && (
              <div class="panel-body">
                <Button disabled={loading} onClick={() => void older()}>
                  {loading ? "Reading…" : "Show older commits"}
                </Button>
              </div>
            )}
          </Panel>
          {selected && (
            <CommitDetails
              key={selected.graph_commit_id}
              commit={selected}
              parents={parents[selected.graph_commit_id] ?? []}
              reload={first.reload}
            />
          )}
        </div>
      )}
    </div>
  );
}

interface ListProps {
  readonly commits: readonly Commit[];
  readonly parents: History["parents"];
  readonly page: History | undefined; // the first, which knows all names
  readonly chosen: string | undefined;
}

function CommitList({ commits, parents, page, chosen }: ListProps) {
  return (
    <div class="commits">
      <Drawing commits={commits} parents={parents} chosen={chosen} />
      <ol class="commit-list" aria-label="Commits, newest first">
        {commits.map((commit) => (
          <CommitRow
            key={commit.graph_commit_id}
            commit={commit}
            names={namesOf(page, commit)}
            chosen={commit.graph_commit_id === chosen}
          />
        ))}
      </ol>
    </div>
  );
}

interface Name {
  readonly text: string;
  readonly tag: boolean;
}

function namesOf(page: History | undefined, commit: Commit): Name[] {
  const here = (named: { name: string; graph_commit_id: string }) => named.graph_commit_id === commit.graph_commit_id;
  return [
    ...(page?.branches.filter(here) ?? []).map(({ name }) => ({ text: name, tag: false })),
    ...(page?.tags.filter(here) ?? []).map(({ name }) => ({ text: name, tag: true })),
  ];
}

function CommitRow({ commit, names, chosen }: { commit: Commit; names: readonly Name[]; chosen: boolean }) {
  const id = commit.graph_commit_id;
  return (
    <li class={chosen ? "commit chosen" : "commit"} style={{ height: `${ROW_PIXELS}px` }}>
      <button
        type="button"
        class="commit-title"
        aria-pressed={chosen}
        onClick={() => setParams({ commit: chosen ? null : id })}
      >
        {commit.message !== null ? visible(commit.message) : <span class="muted">{commit.kind}</span>}
      </button>
      {names.map(({ text, tag }) => (
        <Badge key={text} tone={tag ? "plain" : "accent"} title={tag ? "tag" : "branch"}>
          {tag ? `# ${text}` : text}
        </Badge>
      ))}
      <span class="muted commit-about">
        <Counts counts={commit.changes} />
        <span class="commit-branch">{visible(branchOf(commit))}</span>
        <span class="commit-actor">{visible(commit.actor_id ?? "nobody")}</span>
        <time title={when(commit.created_at)}>{ago(commit.created_at)}</time>
      </span>
    </li>
  );
}

function CommitDetails({
  commit,
  parents,
  reload,
}: {
  commit: Commit;
  parents: readonly string[];
  reload: () => void;
}) {
  const here = useHere();
  const [reverting, setReverting] = useState(false);
  const id = commit.graph_commit_id;
  const branch = branchOf(commit);
  const access = useAsync(() => here.client.access(branch), [here.client, branch]);
  const mayRevert = access.value?.actions["change"] === true && commit.kind !== "init";
  return (
    <Panel
      title={visible(commit.message ?? commit.kind)}
      class="commit-details"
      actions={
        <Button kind="quiet" small aria-label="Close details" onClick={() => setParams({ commit: null })}>
          ✕
        </Button>
      }
    >
      <div class="panel-body stack">
        <CommitFacts commit={commit} parents={parents} />
        <div class="row">
          {parents[0] && (
            <a class="button button-primary" href={href({ params: { commit: id, a: parents[0], b: id } })}>
              Show what changed
            </a>
          )}
          <a class="button" href={href({ page: "query", branch, at: id })}>
            Look at this state
          </a>
          {mayRevert && (
            <Button kind="danger" onClick={() => setReverting(true)}>
              Revert…
            </Button>
          )}
        </div>
      </div>
      {reverting && (
        <RevertDialog
          commit={commit}
          branch={branch}
          onClose={() => setReverting(false)}
          onDone={() => {
            setReverting(false);
            reload();
            here.refresh();
          }}
        />
      )}
    </Panel>
  );
}

function CommitFacts({ commit, parents }: { commit: Commit; parents: readonly string[] }) {
  return (
    <>
      <dl class="facts">
        <dt>Commit</dt>
        <dd class="mono">{commit.graph_commit_id}</dd>
        <dt>Branch</dt>
        <dd>{branchOf(commit)}</dd>
        <dt>By</dt>
        <dd>{visible(commit.actor_id ?? "nobody")}</dd>
        <dt>When</dt>
        <dd>{when(commit.created_at)}</dd>
        <dt>Kind</dt>
        <dd>{commit.kind}</dd>
        {parents.map((parent, i) => (
          <FactParent key={parent} label={i === 0 ? "After" : "Merged"} id={parent} />
        ))}
        {commit.proposal !== undefined && (
          <>
            <dt>Proposal</dt>
            <dd>
              <a href={href({ page: "review", params: { n: String(commit.proposal) } })}>#{commit.proposal}</a>
            </dd>
          </>
        )}
      </dl>
      <CommitChecks commit={commit} />
      {commit.changes.length > 0 && (
        <ul class="type-counts">
          {commit.changes.map((c) => (
            <li key={c.type_name}>
              <span>{c.type_name}</span>
              <Counts counts={[c]} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** What checks found in a commit: those it had to pass, else the newest run that was kept. */
function CommitChecks({ commit }: { commit: Commit }) {
  const reviews = useReviews();
  const id = commit.graph_commit_id;
  const runs = useAsync(() => reviews.checkResults(id), [reviews, id]);
  const last = runs.value?.[0];
  const ended = commit.checks ?? Object.fromEntries((last?.results ?? []).map((one) => [one.name, one.outcome]));
  const names = Object.keys(ended);
  if (names.length === 0) return null;
  return (
    <section>
      <h3>Checks</h3>
      <ul class="row commit-checks" aria-label="Checks of this commit">
        {names.map((name) => (
          <li key={name}>
            <Badge tone={ended[name] === "passed" ? "good" : ended[name] === "failed" ? "bad" : "plain"}>
              {visible(name)}: {ended[name]}
            </Badge>
          </li>
        ))}
      </ul>
      {!commit.checks && last && (
        <p class="muted small">
          run {ago(last.time)}
          {last.actor_id && ` by ${visible(last.actor_id)}`}
        </p>
      )}
    </section>
  );
}

function FactParent({ label, id }: { label: string; id: string }) {
  return (
    <>
      <dt>{label}</dt>
      <dd class="mono">
        <a href={href({ params: { commit: id } })}>{shortCommit(id)}</a>
      </dd>
    </>
  );
}

/** Two points, typed or chosen. */
function CompareForm({ a, b, known }: { a: string; b: string; known: History | undefined }) {
  const { route } = useHere();
  const other = route.branch !== "main" ? route.branch : "";
  const [from, setFrom] = useState(a || "main");
  const [to, setTo] = useState(b || other);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    setFrom(a || "main");
    setTo(b || other);
  }, [a, b]);
  const names = [...(known?.branches ?? []), ...(known?.tags ?? [])].map((n) => n.name);
  const compare = () => {
    if (!from.trim() || !to.trim()) return setProblem("Name two points");
    setProblem(undefined);
    try {
      go({ params: { ...route.params, a: from.trim(), b: to.trim() } });
    } catch (error) {
      setProblem(asApiError(error).message);
    }
  };
  return (
    <form
      class="row compare-form"
      onSubmit={(event) => {
        event.preventDefault();
        compare();
      }}
    >
      <input
        aria-label="Compare from"
        placeholder="branch, tag or commit"
        list="points"
        value={from}
        spellcheck={false}
        onInput={(e) => setFrom(e.currentTarget.value)}
      />
      <span aria-hidden="true">→</span>
      <input
        aria-label="Compare to"
        placeholder="branch, tag or commit"
        list="points"
        value={to}
        spellcheck={false}
        onInput={(e) => setTo(e.currentTarget.value)}
      />
      <datalist id="points">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <Button type="submit">Compare</Button>
      {problem && (
        <span class="field-error" role="alert">
          {problem}
        </span>
      )}
    </form>
  );
}
