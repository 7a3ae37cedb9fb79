/** Proposals and checks over the public HTTP API, typed. */
import { useMemo } from "preact/hooks";
import { type Conflict, type GraphClient, type MergeOutput, type Resolution, type Row } from "./api";
import { useHere } from "./context";

export type ProposalState = "open" | "changes_wanted" | "approved" | "merged" | "closed";

/** What a comment is about: a type, a row of it, or a cell of that. */
export interface Place {
  type: string;
  id?: string;
  property?: string;
}

export interface ReviewVerdict {
  actor: string;
  verdict: "approved" | "changes_wanted";
  head: string;
  time: string;
  current: boolean; // whether the branch is still at that commit
}

export interface ThreadEntry {
  kind: "opened" | "commented" | "approved" | "changes_wanted" | "closed" | "merging" | "merged" | "not_merged";
  actor: string | null;
  time: string;
  text: string;
  head: string | null;
  type: string | null;
  id: string | null;
  property: string | null;
  commit: string | null;
}

export interface Proposal {
  number: number;
  title: string;
  state: ProposalState;
  author: string | null;
  source: string;
  target: string;
  created: string;
  updated: string;
  head: string | null;
  reviewers: string[];
  reviews: ReviewVerdict[];
  commit: string | null;
  thread: ThreadEntry[]; // only of a proposal that was asked for by its number
}

export interface CheckResult {
  name: string;
  outcome: "passed" | "failed" | "skipped";
  severity: "error" | "warning";
  message: string;
  measure: string;
  bound: string;
  measured: number | null;
  rows: Row[];
  error: string | null;
}

export interface CheckReport {
  graph_commit_id: string;
  before: string | null;
  passed: boolean;
  results: CheckResult[];
  time: number; // microseconds; 0: not kept
  actor_id: string | null;
}

/** What a proposal would bring; `diff` from `base` to `head` has the rows. */
export interface Review {
  proposal: Proposal;
  base: string;
  head: string;
  counts: Record<string, Record<string, number>>;
  schema: Row[];
  changed_checks: Record<string, string[]>;
  outcome: string;
  conflicts: Conflict[];
  checks: CheckReport;
  missing: string[];
  mergeable: boolean;
}

export interface MergeAsk {
  dry_run?: boolean;
  head?: string;
  strategy?: Record<string, string>;
  resolutions?: Resolution[];
  skip_checks?: boolean;
  message?: string;
}

export const PROPOSALS_SHOWN_MAX = 200;

export class Reviews {
  constructor(private readonly client: GraphClient) {}

  async proposals(query: { state?: ProposalState; target?: string } = {}): Promise<Proposal[]> {
    const asked = { ...query, limit: PROPOSALS_SHOWN_MAX };
    return (await this.client.call<{ proposals: Proposal[] }>("GET", "/proposals", { query: asked })).proposals;
  }

  proposal(number: number): Promise<Proposal> {
    return this.client.call("GET", `/proposals/${number}`);
  }

  /** Runs the checks and rehearses the merge: it may take a while. */
  review(number: number): Promise<Review> {
    return this.client.call("GET", `/proposals/${number}/review`);
  }

  propose(body: {
    source: string;
    target: string;
    title: string;
    text: string;
    reviewers: string[];
  }): Promise<Proposal> {
    return this.client.call("POST", "/proposals", { body });
  }

  comment(number: number, text: string, place?: Place): Promise<Proposal> {
    return this.client.call("POST", `/proposals/${number}/comments`, { body: { text, ...place } });
  }

  approve(number: number, head: string, text: string): Promise<Proposal> {
    return this.client.call("POST", `/proposals/${number}/approve`, { body: { head, text } });
  }

  requestChanges(number: number, head: string, text: string): Promise<Proposal> {
    return this.client.call("POST", `/proposals/${number}/request-changes`, { body: { head, text } });
  }

  close(number: number, text: string): Promise<Proposal> {
    return this.client.call("POST", `/proposals/${number}/close`, { body: { text } });
  }

  /** Conflicts are an `ApiError` whose body has `merge_conflicts`. */
  merge(number: number, body: MergeAsk): Promise<MergeOutput> {
    return this.client.call("POST", `/proposals/${number}/merge`, { body });
  }

  /** What checks found in a commit whenever they were run on it, newest first. */
  async checkResults(commit: string): Promise<CheckReport[]> {
    const path = `/commits/${encodeURIComponent(commit)}/checks`;
    return (await this.client.call<{ runs: CheckReport[] }>("GET", path)).runs;
  }
}

export function useReviews(): Reviews {
  const { client } = useHere();
  return useMemo(() => new Reviews(client), [client]);
}

export function isActive({ state }: Proposal): boolean {
  return state !== "merged" && state !== "closed";
}

/** A time as the server spells it, in microseconds. */
export function micros(time: string): number {
  return Date.parse(time) * 1000;
}
