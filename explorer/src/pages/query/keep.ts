/** Queries kept in this browser: those that ran, and those somebody wants to keep. Never on the server. */
import { readStored, writeStored } from "../../hooks";
import type { Texts } from "./params";

export interface Kept {
  readonly text: string;
  readonly name: string;
  readonly texts: Texts;
  readonly at: number; // milliseconds
}

const RECENT_MAX = 50;

export function recent(graph: string): Kept[] {
  return readStored<Kept[]>(`recent.${graph}`, []);
}

export function remember(graph: string, kept: Kept): Kept[] {
  const others = recent(graph).filter((old) => old.text !== kept.text || old.name !== kept.name);
  const next = [kept, ...others].slice(0, RECENT_MAX);
  writeStored(`recent.${graph}`, next);
  return next;
}

export function saved(graph: string): Kept[] {
  return readStored<Kept[]>(`saved.${graph}`, []);
}

export function save(graph: string, kept: Kept): Kept[] {
  const next = [kept, ...saved(graph).filter((old) => old.name !== kept.name)];
  writeStored(`saved.${graph}`, next);
  return next;
}

export function forget(graph: string, name: string): Kept[] {
  const next = saved(graph).filter((old) => old.name !== name);
  writeStored(`saved.${graph}`, next);
  return next;
}
