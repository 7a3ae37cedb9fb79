/** One proposal: what was said, what it changes, what the checks found, and how it gets merged. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Commit, DiffRow } from "../../api";
import { copy } from "../../clipboard";
import { useHere } from "../../context";
import { count, counted, shortCommit, visible } from "../../format";
import { type Async, useAsync } from "../../hooks";
import { useShortcut } from "../../keys";
import { href, setParams, useRoute } from "../../router";
import { isActive, type Place, type Proposal, type Review, useReviews } from "../../reviews";
import { Badge, Button, Empty, Failure, Panel, Skeleton, Tabs } from "../../ui/basics";
import { Menu } from "../../ui/menu";
import { Compare } from "../history/compare";
import { Counts } from "../history/counts";
import { Crumbs } from "./branch";
import { ReviewedRows } from "./changes";
import { Checks } from "./checks";
import { CloseDialog, ReviewDialog } from "./judge";
import { Ago, Avatar, BranchName, CommitLink, Person, StateBadge } from "./marks";
import { AfterMerge, Conflicts, useMerging } from "./merging";
import { MergeBox } from "./merge-box";
import { RemarkForm } from "./remark";
import { Thread } from "./thread";

const COMMITS_SHOWN_MAX = 50;
const TABS = ["talk", "changes", "checks", "conflicts"] as const;
type Tab = (typeof TABS)[number];

export function ProposalPage({ number }: { number: number }) {
  const reviews = useReviews();
  const found = useAsync(() => reviews.proposal(number), [reviews, number]);
  useEffect(() => {
    const look = () => document.visibilityState === "visible" && found.reload();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [found.reload]);
  if (found.value) return <Opened proposal={found.value} reload={found.reload} />;
  return (
    <div class="page">
      <Crumbs here={`#${number}`} />
      {found.error ? (
        <Failure error={found.error} retry={found.reload} />
      ) : (
        <Panel label={`Proposal ${number}`}>
          <Skeleton label="Reading the proposal" rows={8} />
        </Panel>
      )}
    </div>
  );
}

/** What one may do with a proposal, by the rights on its target. */
function useRights(proposal: Proposal) {
  const { client, author } = useHere();
  const access = useAsync(() => client.access(proposal.target), [client, proposal.target]);
  const may = (action: string) => access.value?.actions[action] === true;
  const own = author !== "" && author === proposal.author;
  const active = isActive(proposal);
  return {
    own,
    mayTalk: may("propose"),
    mayJudge: active && may("approve"),
    mayClose: active && (may("approve") || (own && may("propose"))),
    mayMerge: active && (may("merge_proposal") || may("branch_merge")),
  };
}

function Opened({ proposal, reload }: { proposal: Proposal; reload: () => void }) {
  const reviews = useReviews();
  const { params } = useRoute();
  const rights = useRights(proposal);
  const [dialog, setDialog] = useState<"none" | "review" | "close">("none");
  const { number, source, target } = proposal;
  const active = isActive(proposal);
  const verdicts = JSON.stringify(proposal.reviews.map((one) => [one.actor, one.verdict, one.head]));
  const review = useAsync(() => reviews.review(number), [reviews, number, proposal.head, proposal.state, verdicts]);
  const known = review.value;
  const merging = useMerging(
    (decided) => reviews.merge(number, { dry_run: true, head: known?.head, skip_checks: true, ...decided }),
    rights.mayMerge && known?.outcome === "conflict" && known.missing.length === 0,
    [reviews, number, known?.head],
    known?.conflicts,
  );
  const conflicts = active ? merging.known.length : 0;
  const asked = params["tab"] as Tab | undefined;
  const tab = asked && TABS.includes(asked) && (asked !== "conflicts" || conflicts > 0) ? asked : "talk";
  useShortcut("v", "Review: approve or request changes", "Proposal", () => setDialog("review"), rights.mayJudge);
  useShortcut("c", "Comment", "Proposal", () => focusComment(), rights.mayTalk);
  useShortcut("d", "See the changes", "Proposal", () => setParams({ tab: "changes" }, {}));
  const send = async (text: string, place?: Place) => {
    await reviews.comment(number, text, place);
    reload();
  };
  return (
    <div class="page">
      <ProposalHead proposal={proposal}>
        {rights.mayJudge && known && (
          <Button kind="primary" title="Approve or request changes (v)" onClick={() => setDialog("review")}>
            Review…
          </Button>
        )}
        <More proposal={proposal} mayClose={rights.mayClose} onClose={() => setDialog("close")} />
      </ProposalHead>
      <Tabs
        label="Parts of the proposal"
        value={tab}
        onChange={(to) => setParams({ tab: to === "talk" ? null : to, type: null, op: null, view: null }, {})}
        options={tabs(proposal, known, conflicts)}
      />
      <div class={tab === "changes" || tab === "conflicts" ? "proposal-wide" : "proposal-grid"}>
        <div class="stack proposal-main">
          {tab === "talk" && (
            <Conversation proposal={proposal} review={review} send={rights.mayTalk ? send : undefined}>
              {active && known && (
                <MergeBox
                  proposal={proposal}
                  review={known}
                  merging={merging}
                  mayMerge={rights.mayMerge}
                  onMerged={reload}
                />
              )}
            </Conversation>
          )}
          {tab !== "talk" && <Waiting review={review} proposal={proposal} />}
          {tab === "changes" && known && (
            <Changes proposal={proposal} review={known} send={rights.mayTalk ? send : undefined} />
          )}
          {tab === "checks" && known && (
            <Panel
              title="Checks"
              actions={
                <Button small disabled={review.loading} onClick={review.reload}>
                  {review.loading ? "Running…" : "Run again"}
                </Button>
              }
            >
              <Checks report={known.checks} changed={known.changed_checks} />
            </Panel>
          )}
          {tab === "conflicts" && <Conflicts merging={merging} source={source} target={target} />}
        </div>
        {(tab === "talk" || tab === "checks") && <Aside proposal={proposal} review={known} />}
      </div>
      {dialog === "review" && known && (
        <ReviewDialog
          proposal={proposal}
          head={known.head}
          own={rights.own}
          onClose={() => setDialog("none")}
          onDone={reload}
        />
      )}
      {dialog === "close" && <CloseDialog proposal={proposal} onClose={() => setDialog("none")} onDone={reload} />}
    </div>
  );
}

function focusComment(): void {
  setParams({ tab: null }, {});
  requestAnimationFrame(() => document.getElementById("new-comment")?.focus());
}

function tabs(proposal: Proposal, review: Review | undefined, conflicts: number) {
  const said = proposal.thread.filter((entry) => entry.kind === "commented").length;
  const rows = review && Object.values(review.counts).flatMap((one) => Object.values(one));
  const failed = review?.checks.results.filter((one) => one.outcome === "failed").length ?? 0;
  const label = (word: string, n: number | undefined, tone = "") => (
    <>
      {word}
      {n !== undefined && n > 0 && <span class={`tab-count ${tone}`}>{count(n)}</span>}
    </>
  );
  return [
    { value: "talk" as Tab, label: label("Conversation", said) },
    {
      value: "changes" as Tab,
      label: label(
        "Changes",
        rows?.reduce((a, b) => a + b, 0),
      ),
    },
    {
      value: "checks" as Tab,
      label: failed > 0 ? label("Checks", failed, "tab-bad") : label("Checks", review?.checks.results.length),
    },
    ...(conflicts > 0 ? [{ value: "conflicts" as Tab, label: label("Conflicts", conflicts, "tab-warn") }] : []),
  ];
}

function ProposalHead({ proposal, children }: { proposal: Proposal; children: ComponentChildren }) {
  return (
    <div class="page-head proposal-head">
      <div class="grow">
        <Crumbs here={`#${proposal.number}`} />
        <h1>
          {visible(proposal.title)} <span class="faint proposal-number">#{proposal.number}</span>
        </h1>
        <p class="proposal-facts">
          <StateBadge state={proposal.state} /> <Person name={proposal.author} />{" "}
          {isActive(proposal) ? "proposes" : "proposed"} to merge <BranchName name={proposal.source} /> into{" "}
          <BranchName name={proposal.target} /> <span aria-hidden="true">·</span> <Ago time={proposal.created} />
        </p>
      </div>
      <div class="row">{children}</div>
    </div>
  );
}

function More(props: { proposal: Proposal; mayClose: boolean; onClose: () => void }) {
  const { source, target } = props.proposal;
  return (
    <Menu
      label="⋯"
      name="More"
      kind="plain"
      items={[
        { label: "Copy link", run: () => void copy(location.href, "The address is on the clipboard") },
        {
          label: "Look at the branch",
          run: () => (location.hash = href({ page: "query", branch: source, params: {} })),
        },
        {
          label: `Compare with ${target}`,
          run: () => (location.hash = href({ page: "history", params: { a: target, b: source } })),
        },
        ...(props.mayClose ? [{ label: "Close proposal…", run: props.onClose }] : []),
      ]}
    />
  );
}

/** The review is still on its way, or cannot be had. */
function Waiting({ review, proposal }: { review: Async<Review>; proposal: Proposal }) {
  if (review.error?.code === "proposal_ended")
    return <Empty title={`Proposal ${proposal.number} is ${proposal.state}`}>Its branch is gone.</Empty>;
  if (review.error) return <Failure error={review.error} retry={review.reload} />;
  if (review.value) return null;
  return (
    <Panel label="Comparing">
      <Skeleton label="Comparing, and running the checks" rows={8} />
    </Panel>
  );
}

interface ConversationProps {
  readonly proposal: Proposal;
  readonly review: Async<Review>;
  readonly send: ((text: string) => Promise<void>) | undefined;
  readonly children: ComponentChildren;
}

function Conversation({ proposal, review, send, children }: ConversationProps) {
  const commits = useCommits(review.value);
  return (
    <>
      <Thread proposal={proposal} commits={commits} />
      {isActive(proposal) && <Waiting review={review} proposal={proposal} />}
      {children}
      {proposal.state === "merged" && (
        <div class="after-merge">
          <AfterMerge commit={proposal.commit} target={proposal.target} />
        </div>
      )}
      {send && (
        <div class="talk">
          <div class="talk-box grow talk-new">
            <RemarkForm
              label="Add a comment"
              placeholder="Say something about this proposal"
              id="new-comment"
              send={send}
            />
          </div>
        </div>
      )}
    </>
  );
}

/** The commits of the branch since it parted, oldest first. */
function useCommits(review: Review | undefined): readonly Commit[] {
  const { client } = useHere();
  const found = useAsync(async () => {
    if (!review) return [];
    const all = await client.commits({ at: review.head, limit: COMMITS_SHOWN_MAX });
    const end = all.findIndex((commit) => commit.graph_commit_id === review.base);
    return (end < 0 ? all : all.slice(0, end)).filter((commit) => commit.kind !== "branch");
  }, [client, review?.head, review?.base]);
  return found.value ?? NO_COMMITS;
}
const NO_COMMITS: readonly Commit[] = [];

interface ChangesProps {
  readonly proposal: Proposal;
  readonly review: Review;
  readonly send: ((text: string, place: Place) => Promise<void>) | undefined;
}

function Changes({ proposal, review, send }: ChangesProps) {
  const comments = useMemo(() => proposal.thread.filter((entry) => entry.type !== null), [proposal.thread]);
  return (
    <>
      <Compare
        a={review.base}
        b={review.head}
        title={`What ${visible(proposal.source)} changed since it parted from ${visible(proposal.target)}`}
        nothing="The branch has changed nothing."
        show={(rows: readonly DiffRow[]) => <ReviewedRows rows={rows} talk={{ comments, send }} />}
      />
    </>
  );
}

function Aside({ proposal, review }: { proposal: Proposal; review: Review | undefined }) {
  const said = new Map(proposal.reviews.map((one) => [one.actor, one]));
  const names = [...new Set([...proposal.reviewers, ...said.keys()])];
  return (
    <aside class="proposal-aside" aria-label="About the proposal">
      <section>
        <h2>Reviewers</h2>
        {names.length === 0 && <p class="muted small">Nobody was asked by name.</p>}
        <ul class="people">
          {names.map((name) => {
            const verdict = said.get(name);
            const stale = verdict?.verdict === "approved" && !verdict.current && isActive(proposal);
            return (
              <li key={name}>
                <Avatar name={name} />
                <span class="grow person-name">{visible(name)}</span>
                {!verdict && <span class="faint small">waiting</span>}
                {verdict && stale && <Badge title="Given for an earlier commit">earlier commit</Badge>}
                {verdict && !stale && (
                  <Badge tone={verdict.verdict === "approved" ? "good" : "warn"}>
                    {verdict.verdict === "approved" ? "approved" : "wants changes"}
                  </Badge>
                )}
              </li>
            );
          })}
        </ul>
      </section>
      {review && Object.keys(review.counts).length > 0 && (
        <section>
          <h2>Changes</h2>
          <ul class="type-counts">
            {Object.entries(review.counts).map(([name, one]) => (
              <li key={name}>
                <span>{name}</span>
                <Counts
                  counts={[
                    {
                      type_name: name,
                      inserted: one["inserted"] ?? 0,
                      updated: one["updated"] ?? 0,
                      deleted: one["deleted"] ?? 0,
                    },
                  ]}
                />
              </li>
            ))}
          </ul>
        </section>
      )}
      {review && review.schema.length > 0 && (
        <section>
          <h2>Schema</h2>
          <p class="small">{counted(review.schema.length, "change")} of the schema</p>
        </section>
      )}
      <section>
        <h2>Commits</h2>
        <dl class="facts small">
          {proposal.head && (
            <>
              <dt>Head</dt>
              <dd>
                <CommitLink id={proposal.head} />
              </dd>
            </>
          )}
          {review && (
            <>
              <dt>Parted at</dt>
              <dd>
                <CommitLink id={review.base} />
              </dd>
            </>
          )}
          {proposal.commit && (
            <>
              <dt>Merge</dt>
              <dd>
                <CommitLink id={proposal.commit}>{shortCommit(proposal.commit)}</CommitLink>
              </dd>
            </>
          )}
        </dl>
      </section>
    </aside>
  );
}
