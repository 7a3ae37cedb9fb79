import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api";

export interface Async<T> {
  readonly value: T | undefined; // the last one, also while the next is loading
  readonly error: ApiError | undefined;
  readonly loading: boolean;
  readonly reload: () => void;
}

/** Run `load` now and whenever `deps` change; answers that come too late are dropped. */
export function useAsync<T>(load: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[]): Async<T> {
  const [state, setState] = useState<{ value?: T; error?: ApiError; loading: boolean }>({ loading: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    setState((old) => ({ ...old, loading: true }));
    load(control.signal).then(
      (value) => control.signal.aborted || setState({ value, loading: false }),
      (error: unknown) => control.signal.aborted || setState({ error: asApiError(error), loading: false }),
    );
    return () => control.abort();
  }, [...deps, round]);
  const reload = useCallback(() => setRound((n) => n + 1), []);
  return { value: state.value, error: state.error, loading: state.loading, reload };
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ApiError(
    message,
    0,
    "explorer",
    "internal",
    "Reload the page; if it happens again, tell us what you did.",
  );
}

/** The value, once it has rested for a while. */
export function useRested<T>(value: T, milliseconds: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return rested;
}

/** A function that stays the same and always does what its newest version does. */
export function useEvent<A extends unknown[], R>(work: (...args: A) => R): (...args: A) => R {
  const latest = useRef(work);
  latest.current = work;
  return useCallback((...args: A) => latest.current(...args), []);
}

/** A value kept in the browser across visits. */
export function useStored<T>(key: string, initial: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => readStored(key, initial));
  const store = useCallback(
    (next: T) => {
      setValue(next);
      writeStored(key, next);
    },
    [key],
  );
  return [value, store];
}

export function readStored<T>(key: string, initial: T): T {
  try {
    const text = localStorage.getItem(`omnigraph.${key}`);
    return text === null ? initial : (JSON.parse(text) as T);
  } catch {
    return initial;
  }
}

export function writeStored(key: string, value: unknown): void {
  try {
    localStorage.setItem(`omnigraph.${key}`, JSON.stringify(value));
  } catch {
    // Storage may be full or forbidden; it is only a convenience.
  }
}
