/** What was said and done about a proposal, with the commits of its branch, in the order of time. */
import { useMemo } from "preact/hooks";
import type { Commit } from "../../api";
import { ago, visible, when } from "../../format";
import { href } from "../../router";
import { micros, type Proposal, type ThreadEntry } from "../../reviews";
import { Badge } from "../../ui/basics";
import { Counts } from "../history/counts";
import { placeText } from "./changes";
import { Ago, Avatar, CommitLink, Person } from "./marks";

type Happened = { at: number; entry: ThreadEntry } | { at: number; commit: Commit };

export function Thread({ proposal, commits }: { proposal: Proposal; commits: readonly Commit[] }) {
  const all = useMemo(() => inOrder(proposal.thread, commits), [proposal.thread, commits]);
  return (
    <ol class="thread" aria-label="Conversation">
      {all.map((one, i) => (
        <li key={i} class="thread-item">
          {"commit" in one ? <Pushed commit={one.commit} /> : <Entry entry={one.entry} proposal={proposal} />}
        </li>
      ))}
    </ol>
  );
}

/** The description first; an attempt to merge says nothing that its end does not say. */
function inOrder(thread: readonly ThreadEntry[], commits: readonly Commit[]): Happened[] {
  const [first, ...rest] = thread.filter((entry) => entry.kind !== "merging");
  const told: Happened[] = rest.map((entry) => ({ at: micros(entry.time), entry }));
  const pushed: Happened[] = commits.map((commit) => ({ at: commit.created_at, commit }));
  const later = [...pushed, ...told].sort((a, b) => a.at - b.at);
  return first ? [{ at: micros(first.time), entry: first }, ...later] : later;
}

function Pushed({ commit }: { commit: Commit }) {
  const title = (commit.message ?? commit.kind).split("\n", 1)[0] ?? "";
  return (
    <div class="event">
      <span class="event-sign" aria-hidden="true">
        •
      </span>
      <p class="grow">
        <Person name={commit.actor_id} /> committed{" "}
        <a href={href({ page: "history", params: { commit: commit.graph_commit_id } })}>{visible(title)}</a>{" "}
        <Counts counts={commit.changes} />{" "}
        <time class="muted" title={when(commit.created_at)}>
          {ago(commit.created_at)}
        </time>
      </p>
    </div>
  );
}

const DONE: Partial<Record<ThreadEntry["kind"], { sign: string; tone: string; word: string }>> = {
  approved: { sign: "✓", tone: "good", word: "approved" },
  changes_wanted: { sign: "±", tone: "warn", word: "asked for changes" },
  closed: { sign: "✕", tone: "plain", word: "closed this" },
  merged: { sign: "⇥", tone: "accent", word: "merged this" },
  not_merged: { sign: "!", tone: "warn", word: "tried to merge this" },
};

function Entry({ entry, proposal }: { entry: ThreadEntry; proposal: Proposal }) {
  const done = DONE[entry.kind];
  if (!done) return <Card entry={entry} proposal={proposal} />;
  const isVerdict = entry.kind === "approved" || entry.kind === "changes_wanted";
  const stale = isVerdict && entry.head !== proposal.head;
  return (
    <>
      <div class="event">
        <span class={`event-sign event-${done.tone}`} aria-hidden="true">
          {done.sign}
        </span>
        <p class="grow">
          <Person name={entry.actor} /> {done.word}
          {isVerdict && entry.head && (
            <>
              {" "}
              at <CommitLink id={entry.head} />
            </>
          )}
          {entry.commit && (
            <>
              {" "}
              as <CommitLink id={entry.commit} />
            </>
          )}
          {entry.kind === "not_merged" && entry.text && `: ${visible(entry.text)}`} <Ago time={entry.time} />{" "}
          {stale && <Badge title="The branch has other commits now">an earlier commit</Badge>}
        </p>
      </div>
      {entry.text.trim() !== "" && entry.kind !== "not_merged" && <Card entry={entry} proposal={proposal} nested />}
    </>
  );
}

function Card({ entry, proposal, nested }: { entry: ThreadEntry; proposal: Proposal; nested?: boolean }) {
  const opened = entry.kind === "opened";
  const place = entry.type !== null;
  return (
    <article class={nested ? "talk talk-nested" : "talk"}>
      {!nested && <Avatar name={entry.actor} />}
      <div class="talk-box grow">
        {!nested && (
          <header class="talk-head">
            <Person name={entry.actor} /> {opened ? "proposed this" : "commented"}
            {place && (
              <>
                {" "}
                on{" "}
                <a class="place" href={placeLink(proposal, entry)}>
                  {placeText(entry)}
                </a>
              </>
            )}{" "}
            <Ago time={entry.time} />
          </header>
        )}
        <p class="prose talk-text">
          {entry.text.trim() === "" ? <span class="faint">No description.</span> : visible(entry.text)}
        </p>
      </div>
    </article>
  );
}

function placeLink(proposal: Proposal, entry: ThreadEntry): string {
  const type = entry.type ?? "";
  return href({ page: "review", params: { n: String(proposal.number), tab: "changes", type } });
}
