/** `GET /history`, page by page. */
import type { Commit, GraphClient, Tag } from "../../api";

export interface History {
  readonly commits: readonly Commit[]; // newest first
  readonly parents: Readonly<Record<string, readonly string[]>>;
  readonly branches: readonly Tag[];
  readonly tags: readonly Tag[];
  readonly next: number | null;
}

const PAGE_COMMITS = 100;

export function historyOf(client: GraphClient, before: number | null = null): Promise<History> {
  return client.call("GET", "/history", { query: { limit: PAGE_COMMITS, before } });
}
