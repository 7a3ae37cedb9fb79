/** All proposals, by state; where there is none yet, how to make one. */
import { useMemo, useRef, useState } from "preact/hooks";
import { useHere } from "../../context";
import { count, visible } from "../../format";
import { useAsync } from "../../hooks";
import { useShortcut } from "../../keys";
import { go, href, setParams, useRoute } from "../../router";
import { isActive, PROPOSALS_SHOWN_MAX, type Proposal, type ProposalState, useReviews } from "../../reviews";
import { Button, Empty, Failure, Panel, Skeleton, Tabs } from "../../ui/basics";
import { Ago, Avatar, BranchName, Person, STATES } from "./marks";
import { ProposeDialog } from "./propose";

const FILTERS = ["active", "approved", "changes_wanted", "merged", "closed", "all"] as const;
type Filter = (typeof FILTERS)[number];
const WORDS: Record<Filter, string> = {
  active: "Open",
  approved: "Approved",
  changes_wanted: "Changes wanted",
  merged: "Merged",
  closed: "Closed",
  all: "All",
};
const NOTHING: Record<Filter, string> = {
  active: "Nothing waits for a review.",
  approved: "Nothing is approved and not merged.",
  changes_wanted: "Nobody asked for changes.",
  merged: "No proposal was merged yet.",
  closed: "No proposal was closed without a merge.",
  all: "",
};

function passes(filter: Filter, proposal: Proposal): boolean {
  if (filter === "all") return true;
  return filter === "active" ? isActive(proposal) : proposal.state === filter;
}

/** Those of a filter; asked for by state only where there are more than one answer holds. */
function useProposals(filter: Filter) {
  const reviews = useReviews();
  const all = useAsync(() => reviews.proposals(), [reviews]);
  const cut = (all.value?.length ?? 0) >= PROPOSALS_SHOWN_MAX;
  const some = useAsync(async () => {
    if (!cut || filter === "all") return undefined;
    const states: ProposalState[] = filter === "active" ? ["open", "changes_wanted", "approved"] : [filter];
    const found = await Promise.all(states.map((state) => reviews.proposals({ state })));
    return found.flat().sort((a, b) => b.number - a.number);
  }, [reviews, filter, cut]);
  return { all, cut, shown: cut && filter !== "all" ? some.value : all.value };
}

export function ProposalList() {
  const here = useHere();
  const { params } = useRoute();
  const asked = params["state"] as Filter | undefined;
  const filter = asked && FILTERS.includes(asked) ? asked : "active";
  const { all, cut, shown } = useProposals(filter);
  const [words, setWords] = useState("");
  const [proposing, setProposing] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const mayPropose = here.may("propose") && here.branches.length > 1;
  const other = here.route.branch !== "main" ? here.route.branch : here.branches.find((name) => name !== "main");
  const found = useMemo(
    () => (shown ?? []).filter((one) => passes(filter, one) && contains(one, words)),
    [shown, filter, words],
  );
  const step = (by: number) => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>("a.proposal-title") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
  };
  useShortcut("j", "Next proposal", "Proposals", () => step(1));
  useShortcut("k", "Previous proposal", "Proposals", () => step(-1));
  useShortcut("/", "Search the list", "Proposals", () => field.current?.focus());
  useShortcut("n", "Propose a branch", "Proposals", () => setProposing(true), mayPropose);
  const none = all.value?.length === 0;
  return (
    <div class="page">
      <div class="page-head">
        <h1>Review</h1>
        <div class="row">
          {other && (
            <a class="button" href={href({ page: "review", params: { source: other, target: "main" } })}>
              Review a branch
            </a>
          )}
          {mayPropose && (
            <Button kind="primary" title="Propose a branch (n)" onClick={() => setProposing(true)}>
              Propose a branch
            </Button>
          )}
        </div>
      </div>
      {here.route.branch !== "main" && all.value && <OnBranch branch={here.route.branch} known={all.value} />}
      <Panel label="Proposals">
        {!none && (
          <div class="list-head">
            <Tabs
              label="Proposals by state"
              value={filter}
              onChange={(to) => setParams({ state: to === "active" ? null : to })}
              options={FILTERS.map((value) => ({ value, label: <FilterLabel {...{ value, cut }} all={all.value} /> }))}
            />
            <input
              ref={field}
              type="search"
              class="list-search"
              aria-label="Search proposals"
              placeholder="Search title, author or branch"
              value={words}
              onInput={(event) => setWords(event.currentTarget.value)}
            />
          </div>
        )}
        {all.error && (
          <div class="panel-body">
            <Failure error={all.error} retry={all.reload} />
          </div>
        )}
        {!all.error && !shown && <Skeleton label="Reading proposals" rows={6} />}
        {none && <Beginning mayPropose={mayPropose} onPropose={() => setProposing(true)} />}
        {shown && !none && found.length === 0 && (
          <Empty title={words ? "Nothing found" : undefined}>
            {words ? "No proposal here has these words." : NOTHING[filter]}
          </Empty>
        )}
        {found.length > 0 && (
          <ul class="proposals" ref={list} aria-label={`${WORDS[filter]} proposals`}>
            {found.map((one) => (
              <ProposalRow key={one.number} proposal={one} />
            ))}
          </ul>
        )}
        {cut && <p class="muted small panel-body">The newest {count(PROPOSALS_SHOWN_MAX)} are shown.</p>}
      </Panel>
      {proposing && <ProposeDialog source={other ?? ""} target="main" onClose={() => setProposing(false)} />}
    </div>
  );
}

function contains(proposal: Proposal, words: string): boolean {
  const text = [`#${proposal.number}`, proposal.title, proposal.author, proposal.source, proposal.target].join("\n");
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.toLowerCase().includes(word));
}

function FilterLabel({ value, all, cut }: { value: Filter; all: Proposal[] | undefined; cut: boolean }) {
  const n = all?.filter((one) => passes(value, one)).length ?? 0;
  return (
    <>
      {WORDS[value]}
      {all && !cut && n > 0 && <span class="tab-count">{count(n)}</span>}
    </>
  );
}

/** What the branch one looks at has to do with this page. */
function OnBranch({ branch, known }: { branch: string; known: readonly Proposal[] }) {
  const offered = known.find((one) => one.source === branch && isActive(one));
  return (
    <div class="on-branch">
      <BranchName name={branch} />
      {offered ? (
        <span>
          is proposed:{" "}
          <a href={href({ page: "review", params: { n: String(offered.number) } })}>
            #{offered.number} {visible(offered.title)}
          </a>
        </span>
      ) : (
        <span>
          is not proposed.{" "}
          <a href={href({ page: "review", params: { source: branch, target: "main" } })}>See what it brings to main</a>
        </span>
      )}
    </div>
  );
}

function Beginning({ mayPropose, onPropose }: { mayPropose: boolean; onPropose: () => void }) {
  return (
    <Empty title="No proposals yet">
      <p class="beginning">
        A proposal offers a branch for merging: others see what it changes, what the checks say, comment on a row or a
        cell, approve, and merge it as one commit.
      </p>
      {mayPropose ? (
        <Button kind="primary" onClick={onPropose}>
          Propose a branch
        </Button>
      ) : (
        <p>Make a branch, change something on it, and propose it here.</p>
      )}
    </Empty>
  );
}

function ProposalRow({ proposal }: { proposal: Proposal }) {
  const { word, tone, sign } = STATES[proposal.state];
  const address = { page: "review", params: { n: String(proposal.number) } } as const;
  return (
    <li
      class="proposal-row"
      onClick={(event) => {
        if (!(event.target as HTMLElement).closest("a")) go(address);
      }}
    >
      <span class={`state-sign state-${tone}`} title={word}>
        <span aria-hidden="true">{sign}</span>
        <span class="hidden-visually">{word}</span>
      </span>
      <div class="grow">
        <p class="proposal-line">
          <a class="proposal-title" href={href(address)}>
            {visible(proposal.title)}
          </a>{" "}
          <span class="faint">#{proposal.number}</span>
        </p>
        <p class="muted small proposal-line">
          <Person name={proposal.author} /> · <BranchName name={proposal.source} /> <span aria-hidden="true">→</span>{" "}
          <BranchName name={proposal.target} /> · updated <Ago time={proposal.updated} />
        </p>
      </div>
      <Verdicts proposal={proposal} />
    </li>
  );
}

function Verdicts({ proposal }: { proposal: Proposal }) {
  if (proposal.reviews.length === 0) return null;
  return (
    <ul class="row verdicts" aria-label="Reviews">
      {proposal.reviews.map((review) => {
        const word = review.verdict === "approved" ? "approved" : "wants changes";
        const stale = review.verdict === "approved" && !review.current && isActive(proposal);
        const tone = stale ? "plain" : review.verdict === "approved" ? "good" : "warn";
        return (
          <li
            key={review.actor}
            class={`verdict-mark verdict-${tone}`}
            title={`${visible(review.actor)} ${word}${stale ? " an earlier commit" : ""}`}
          >
            <Avatar name={review.actor} />
            <span aria-hidden="true">{review.verdict === "approved" ? "✓" : "±"}</span>
            <span class="hidden-visually">
              {visible(review.actor)} {word} {stale ? "an earlier commit" : ""}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
