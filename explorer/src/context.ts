/** What every page is given: the graph, where in its history we stand, what is in it, and what may be done. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Access, Catalog, GraphClient, Point } from "./api";
import type { TypeStyle, TypeStyles } from "./canvas/look";
import type { Route } from "./router";

export interface Here {
  readonly client: GraphClient;
  readonly route: Route;
  readonly point: Point; // what to hand to reads
  readonly catalog: Catalog | undefined; // undefined while it is loading
  readonly branches: readonly string[];
  readonly access: Access | undefined;
  /** Whether an action (`change`, `branch_merge`, …) may be offered here. Reading the past changes nothing. */
  readonly may: (action: string) => boolean;
  /** How types look in this graph, as somebody chose it in this browser. */
  readonly styles: TypeStyles;
  readonly setStyle: (type: string, style: TypeStyle) => void;
  /** Who writes: what the server knows, else what was said here. */
  readonly author: string;
  readonly setAuthor: (name: string) => void;
  /** Ask again what there is, after a write. */
  readonly refresh: () => void;
}

export const HereContext = createContext<Here | null>(null);

export function useHere(): Here {
  const here = useContext(HereContext);
  if (!here) throw new Error("a page stands outside of a graph");
  return here;
}
