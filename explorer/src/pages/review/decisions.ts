/** What was decided about conflicts, from the widest to the narrowest: by type, by row, by field. Pure. */
import type { Conflict, Json, Resolution } from "../../api";

export type Side = "ours" | "theirs";
export type Choice = Side | { readonly value: Json };

export interface Decisions {
  readonly types: Readonly<Record<string, Side>>;
  readonly rows: ReadonlyMap<string, Choice>; // by place
}

export const UNDECIDED: Decisions = { types: {}, rows: new Map() };

/** One thing to decide: a field of a row, or a row as a whole. */
export function placeOf(conflict: Conflict): string {
  return JSON.stringify([conflict.type_name, conflict.entity_id ?? null, conflict.field]);
}

export function decide(from: Decisions, conflict: Conflict, choice: Choice | null): Decisions {
  const rows = new Map(from.rows);
  if (choice === null) rows.delete(placeOf(conflict));
  else rows.set(placeOf(conflict), choice);
  return { ...from, rows };
}

export function decideType(from: Decisions, type: string, side: Side | null): Decisions {
  const { [type]: _, ...rest } = from.types;
  return { ...from, types: side === null ? rest : { ...rest, [type]: side } };
}

/** What holds for a conflict: its own decision before that of its type. */
export function choiceOf(decisions: Decisions, conflict: Conflict): Choice | undefined {
  return decisions.rows.get(placeOf(conflict)) ?? decisions.types[conflict.type_name];
}

export function isDecided(decisions: Decisions, conflict: Conflict): boolean {
  return choiceOf(decisions, conflict) !== undefined;
}

/** The decisions as the server takes them; the same document serves the command line. */
export function documentOf(decisions: Decisions): { strategy?: Record<string, Side>; resolutions?: Resolution[] } {
  const resolutions = [...decisions.rows].flatMap(([place, choice]): Resolution[] => {
    const [type, id, field] = JSON.parse(place) as [string, string | null, string | null];
    if (id === null) return [];
    const named = field === null ? { type, id } : { type, id, field };
    return [typeof choice === "string" ? { ...named, take: choice } : { ...named, value: choice.value }];
  });
  return {
    ...(Object.keys(decisions.types).length > 0 && { strategy: { ...decisions.types } }),
    ...(resolutions.length > 0 && { resolutions }),
  };
}

export interface ConflictRow {
  readonly type: string;
  readonly id: string | undefined;
  readonly conflicts: readonly Conflict[];
}

/** Conflicts by row, in the order the server tells them. */
export function byRow(conflicts: readonly Conflict[]): ConflictRow[] {
  const found = new Map<string, { type: string; id: string | undefined; conflicts: Conflict[] }>();
  for (const conflict of conflicts) {
    const key = JSON.stringify([conflict.type_name, conflict.entity_id ?? null]);
    const row = found.get(key) ?? { type: conflict.type_name, id: conflict.entity_id, conflicts: [] };
    row.conflicts.push(conflict);
    found.set(key, row);
  }
  return [...found.values()];
}

/** All conflicts ever told, each once: deciding one may bring up another. */
export function joined(known: readonly Conflict[], told: readonly Conflict[]): Conflict[] {
  const places = new Set(known.map(placeOf));
  return [...known, ...told.filter((conflict) => !places.has(placeOf(conflict)))];
}

/** What somebody typed for a field: JSON where it is some, else the text itself. */
export function typed(text: string, like: Json): Json {
  if (typeof like === "string") return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
