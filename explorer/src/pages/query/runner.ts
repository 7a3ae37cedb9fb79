/** Runs what is asked, and holds what came of it. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError, ChangeOutput } from "../../api";
import { useHere } from "../../context";
import { asApiError, useEvent } from "../../hooks";
import { currentRoute, go, type Route, setParams, useRoute } from "../../router";
import { remember } from "./keep";
import type { Decision } from "./mutation";
import { paramText, type Question } from "./question";
import { type Outcome, runRead, runStored } from "./run";

export type Done = { outcome: Outcome } | { changed: ChangeOutput } | { error: ApiError };

export interface Runner {
  readonly done: Done | null;
  readonly running: boolean;
  readonly asking: boolean; // a mutation waits for a decision
  readonly tried: boolean; // somebody wanted to run: what is missing may be said
  readonly runs: number;
  readonly run: () => void;
  readonly stop: () => void;
  readonly decide: (decision: Decision | null) => void;
  readonly clear: () => void;
}

export function useRunner(question: Question): Runner {
  const here = useHere();
  const route = useRoute();
  const [done, setDone] = useState<Done | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const [asking, setAsking] = useState(false);
  const [tried, setTried] = useState(false);
  const [runs, setRuns] = useState(0);
  const ran = useRef<string | null>(null); // what the last run was asked by

  /** Do some work, unless it is stopped; only the last counts. */
  const work = async (make: (signal: AbortSignal) => Promise<Done>) => {
    running?.abort();
    const control = new AbortController();
    setRunning(control);
    const made = await make(control.signal).catch((error: unknown): Done => ({ error: asApiError(error) }));
    if (control.signal.aborted) return;
    setDone(made);
    setRunning(null);
    setRuns((n) => n + 1);
  };

  const run = useEvent((fromLink = false) => {
    setTried(true);
    if (Object.keys(question.parsed.errors).length > 0) return;
    if (question.mutation) setAsking(!fromLink && here.may("change"));
    else if (question.query || question.stored) {
      setAddress(question);
      ran.current = askedBy(currentRoute());
      void work(async (signal) => ({ outcome: await ask(question, here, signal) }));
    }
  });

  const decide = (decision: Decision | null) => {
    setAsking(false);
    if (decision) void work(async () => ({ changed: await change(question, here, decision) }));
  };

  useRunFromLink(route, ran, question.ready, () => run(true));
  const asked = askedBy(route);
  useEffect(() => {
    if (route.params["run"] === "1" && ran.current !== asked) setDone(null); // of another question
  }, [asked]);
  return {
    done,
    asking,
    tried,
    runs,
    decide,
    running: running !== null,
    run: () => run(),
    stop: () => {
      running?.abort();
      setRunning(null);
    },
    clear: () => setDone(null),
  };
}

type Place = ReturnType<typeof useHere>;

async function ask(question: Question, { client, point, route }: Place, signal: AbortSignal): Promise<Outcome> {
  const { values } = question.parsed;
  if (question.stored) return runStored(client, point, question.stored.name, values);
  const outcome = await runRead(client, point, question.draft.text, question.query!, values, signal);
  keep(question, route.graph);
  return outcome;
}

async function change(question: Question, here: Place, { branch, create, message }: Decision): Promise<ChangeOutput> {
  const { client } = here;
  const params = question.parsed.values;
  if (create) await client.createBranch(branch, here.route.branch);
  const changed = question.stored
    ? ((await client.invoke(question.stored.name, { branch }, params)) as ChangeOutput)
    : await client.mutate(branch, {
        query: question.draft.text,
        name: question.name,
        params,
        message: message || undefined,
      });
  if (!question.stored) keep(question, here.route.graph);
  if (create) go({ branch });
  here.refresh();
  return changed;
}

function keep({ draft, name, texts }: Question, graph: string): void {
  remember(graph, { text: draft.text, name, texts, at: Date.now() });
}

function setAddress({ stored, draft, texts }: Question): void {
  const same = currentRoute().params["q"] === draft.text;
  setParams(
    { q: stored ? null : draft.text, stored: stored?.name ?? null, p: paramText(texts), run: "1" },
    { replace: same },
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
