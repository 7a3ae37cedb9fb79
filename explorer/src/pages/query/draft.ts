/** The text somebody was working on. It is kept in this browser, whatever page they look at meanwhile. */
import { readStored, writeStored } from "../../hooks";
import { recent, remember } from "./keep";
import type { Texts } from "./params";

export interface QueryDraft {
  readonly text: string;
  readonly texts: Texts;
  readonly ran: boolean; // as it stands here
  readonly view: string | null;
}

const key = (graph: string) => `draft.query.${graph}`;

export function queryDraft(graph: string): QueryDraft | null {
  return readStored<QueryDraft | null>(key(graph), null);
}

export function keepDraft(graph: string, draft: QueryDraft): void {
  writeStored(key(graph), draft);
}

/** Something else will stand in the editor: what was not run yet goes to the queries at hand. Whether it did. */
export function shelveDraft(graph: string, next: string): boolean {
  const draft = queryDraft(graph);
  if (!draft || draft.ran || draft.text === next || draft.text.trim() === "") return false;
  if (recent(graph).some((kept) => kept.text === draft.text)) return false;
  remember(graph, { text: draft.text, name: "draft", texts: draft.texts, at: Date.now() });
  return true;
}
