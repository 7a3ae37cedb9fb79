/** The address is the state: graph, page, branch or point in time, and what the page adds.
 *
 * `#/GRAPH/PAGE?branch=…&at=…&…`. It stands behind the `#`, so a server never sees a query in its log.
 */
import { useEffect, useState } from "preact/hooks";

export const PAGES = ["home", "query", "schema", "history", "review", "import"] as const;
export type Page = (typeof PAGES)[number];
export type Params = Readonly<Record<string, string>>;

export interface Route {
  readonly graph: string; // "": none chosen yet
  readonly page: Page;
  readonly branch: string;
  readonly at: string | null; // a commit, tag or time: read-only
  readonly params: Params;
}

export interface Target {
  graph?: string;
  page?: Page;
  branch?: string;
  at?: string | null;
  params?: Params;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [graph = "", page = ""] = path.split("/").map(decoded);
  const search = new URLSearchParams(query);
  const branch = search.get("branch") || "main";
  const at = search.get("at") || null;
  search.delete("branch");
  search.delete("at");
  return { graph, page: isPage(page) ? page : "home", branch, at, params: Object.fromEntries(search) };
}

export function formatRoute(route: Route): string {
  const search = new URLSearchParams();
  if (route.branch !== "main") search.set("branch", route.branch);
  if (route.at) search.set("at", route.at);
  for (const [name, value] of Object.entries(route.params)) search.set(name, value);
  const query = search.toString();
  return `#/${encodeURIComponent(route.graph)}/${route.page}${query ? `?${query}` : ""}`;
}

/** The route a target leads to from here. Another page starts without parameters. */
export function resolve(from: Route, to: Target): Route {
  const samePage = (to.page ?? from.page) === from.page && (to.graph ?? from.graph) === from.graph;
  return {
    graph: to.graph ?? from.graph,
    page: to.page ?? from.page,
    branch: to.branch ?? (to.graph === undefined ? from.branch : "main"),
    at: to.at !== undefined ? to.at : to.branch === undefined && to.graph === undefined ? from.at : null,
    params: to.params ?? (samePage ? from.params : {}),
  };
}

export function currentRoute(): Route {
  return parseRoute(location.hash);
}

/** The address of a target, for links. */
export function href(to: Target): string {
  return formatRoute(resolve(currentRoute(), to));
}

export function go(to: Target, options: { replace?: boolean } = {}): void {
  const hash = href(to);
  if (hash === location.hash) return;
  if (options.replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  dispatchEvent(new PopStateEvent("popstate"));
}

/** Change some parameters of the page; null takes one away. */
export function setParams(
  patch: Record<string, string | null>,
  options: { replace?: boolean } = { replace: true },
): void {
  const params: Record<string, string> = { ...currentRoute().params };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null || value === "") delete params[name];
    else params[name] = value;
  }
  go({ params }, options);
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    addEventListener("popstate", update);
    addEventListener("hashchange", update);
    update(); // it may have changed before anybody listened
    return () => {
      removeEventListener("popstate", update);
      removeEventListener("hashchange", update);
    };
  }, []);
  return parseRoute(hash);
}

function isPage(text: string): text is Page {
  return (PAGES as readonly string[]).includes(text);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
