/** The public HTTP API, typed. The explorer has no other door. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Row = Record<string, Json>;
export type Op = "insert" | "update" | "delete";
export type EntityKind = "node" | "edge";

export interface Span {
  start: number;
  end: number;
  line: number;
  column: number;
  start16: number; // the same offsets as a browser counts them
  end16: number;
}

export interface Diagnostic {
  code: string;
  severity: "error" | "warning" | "info";
  message: string;
  help: string;
  label?: string;
  suggestion?: string | null;
  span?: Span | null;
}

/** A failure as the server tells it; `network` where there was no answer. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly kind: string,
    readonly help: string,
    readonly span: Span | null = null,
    readonly details: Record<string, unknown> = {},
    readonly body: Record<string, unknown> = {},
    readonly retryable = false,
  ) {
    super(message);
  }

  get diagnostics(): Diagnostic[] {
    const found = this.details["diagnostics"];
    return Array.isArray(found) ? (found as Diagnostic[]) : [];
  }

  /** Whether who asks may not, so that asking again changes nothing. */
  get denied(): boolean {
    return this.status === 403;
  }
}

// --- what there is -------------------------------------------------------------------------------------------------

export interface Health {
  status: string;
  version: string;
  source_version: string;
}

export interface PropertyInfo {
  name: string;
  type: string; // as written, without the `?`
  nullable: boolean;
  enum: string[] | null;
  default: Json;
  description: string | null;
}

export interface IndexInfo {
  property: string;
  kind: string;
  rows: number;
  covered_rows: number;
  bytes: number;
}

interface EntityInfo {
  name: string;
  count: number;
  description: string | null;
  properties: PropertyInfo[];
  key: string[];
  uniques: string[][];
  ranges: { property: string; minimum: number | null; maximum: number | null }[];
  checks: { property: string; pattern: string }[];
  declared_indices: string[][];
  indices: IndexInfo[]; // those that are built
}

export interface NodeInfo extends EntityInfo {
  kind: "node";
  implements: string[];
}

export interface EdgeInfo extends EntityInfo {
  kind: "edge";
  from: string;
  to: string;
  cardinality: string; // `0..1`; `0..` is free
}

export interface InterfaceInfo {
  name: string;
  description: string | null;
  properties: PropertyInfo[];
}

/** `GET /catalog`: the checked schema of one state, with counts. */
export interface Catalog {
  graph_commit_id: string;
  nodes: NodeInfo[];
  edges: EdgeInfo[];
  interfaces: InterfaceInfo[];
}

/** `GET /session`: who asks, and the graphs they may read. */
export interface Session {
  actor: string | null;
  authenticated: boolean;
  version: string;
  graphs: { graph_id: string }[];
}

/** `GET /permissions`: what the caller may do on a branch, or with it as the target. */
export interface Access {
  actor: string | null;
  branch: string;
  read_only: boolean;
  actions: Record<string, boolean>; // read, change, export, schema_apply, branch_create, branch_delete, branch_merge, …
}

/** `GET /entities/{type}/{id}`. */
export interface Entity {
  type: string;
  kind: EntityKind;
  id: string;
  ends: { from: string; to: string; from_type: string; to_type: string } | null;
  properties: Row;
  neighbours: Neighbours[];
  graph_commit_id: string;
}

/** How many edges of one type meet a node. */
export interface Neighbours {
  edge: string;
  direction: "out" | "in";
  type: string; // of the other ends
  count: number;
}

// --- queries -------------------------------------------------------------------------------------------------------

export interface ParamInfo {
  name: string;
  kind: string; // string, bool, int, bigint, float, date, datetime, blob, list, vector, any
  item_kind?: string;
  vector_dim?: number;
  nullable: boolean;
}

export interface QueryInfo {
  name: string;
  mutation: boolean;
  params: ParamInfo[];
  description?: string;
  instruction?: string;
}

/** `POST /query/check`, `/schema/check`: what our compiler says about a text. */
export interface Checked {
  diagnostics: Diagnostic[];
  queries: QueryInfo[];
}

export interface ReadOutput {
  query_name: string;
  target: { branch: string | null; snapshot: string | null };
  row_count: number; // of all rows, also of those that are not here
  columns?: string[];
  column_types?: string[];
  rows: Row[];
  graph_commit_id: string;
  explain?: { text: string } & Record<string, unknown>;
}

export interface QueryBody {
  query: string;
  name?: string;
  params?: Record<string, Json>;
  max_rows?: number;
  timeout?: number;
  explain?: boolean;
  rows_shown?: number;
  column_types?: boolean;
}

export interface StoredAsk {
  stored: string;
  params?: Record<string, Json>;
}

export interface ChangeOutput {
  branch: string;
  query_name: string;
  affected_nodes: number;
  affected_edges: number;
  actor_id: string | null;
  commit: Commit | null;
}

// --- versions ------------------------------------------------------------------------------------------------------

export interface TypeCounts {
  type_name: string;
  inserted: number;
  updated: number;
  deleted: number;
}

export interface Commit {
  graph_commit_id: string;
  graph_branch: string | null; // null: main
  graph_manifest_version: number;
  parent_commit_id: string | null;
  merged_parent_commit_id: string | null;
  actor_id: string | null;
  created_at: number; // microseconds
  kind: string;
  message: string | null;
  changes: TypeCounts[];
  proposal?: number; // that it merged
  checks?: Record<string, string>; // that it had to pass: how each ended
}

export interface Tag {
  name: string;
  graph_commit_id: string;
}

export interface DiffRow {
  kind: EntityKind;
  type: string;
  id: string;
  operation: Op;
  before: Row | null;
  after: Row | null;
  [more: string]: unknown;
}

export interface Diff {
  from: string;
  to: string;
  counts: Record<string, Record<string, number>>;
  schema: Row[];
  rows: DiffRow[];
  truncated: boolean;
}

export interface Conflict {
  entity_kind: EntityKind;
  type_name: string;
  entity_id?: string;
  kind: string;
  message: string;
  field: string | null;
  base: Json;
  ours: Json;
  theirs: Json;
}

export interface Resolution {
  type: string;
  id?: string;
  field?: string | null;
  [more: string]: Json | undefined;
}

export interface MergeBody {
  source: string;
  target?: string;
  delete_branch?: boolean;
  dry_run?: boolean;
  strategy?: string | Record<string, string>;
  resolutions?: Resolution[];
  message?: string;
}

export interface UndoBody {
  commit: string;
  branch?: string;
  dry_run?: boolean;
  message?: string;
}

export interface MergeOutput {
  source: string;
  target: string;
  outcome: string;
  commit: Commit | null;
  counts: TypeCounts[];
}

/** `GET /entities/{type}/{id}/history`: what commits did to one node or edge, newest first. */
export interface EntityChange {
  commit: Commit;
  operation: Op;
  before: Row | null;
  after: Row | null;
}

export interface SchemaStep {
  kind: string;
  [more: string]: Json;
}

export interface SchemaPlan {
  supported: boolean;
  step_count: number;
  steps: SchemaStep[];
}

export interface SchemaApplied extends SchemaPlan {
  applied: boolean;
  commit: Commit | null;
}

export type LoadMode = "append" | "merge" | "overwrite";

export interface LoadOutput {
  branch: string;
  branch_created: boolean;
  nodes: { name: string; entities_loaded: number }[];
  edges: { name: string; entities_loaded: number }[];
  total_entities: number;
  commit: Commit | null;
}

// --- calls ---------------------------------------------------------------------------------------------------------

export interface Point {
  branch: string;
  at?: string | null;
}

type Query = Record<string, string | number | boolean | null | undefined | readonly string[]>;

/** The contract in which a bare node variable returns the id, by which the pages look up what more they show. */
const NODES_AS_IDS = { "Omnigraph-Http-Api": "0.10" };

interface Options {
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  raw?: BodyInit;
  signal?: AbortSignal;
}

/** A server and a token; `unauthorized` is told when the token does not (or no longer) count. */
export class Server {
  constructor(
    private readonly token: string | null,
    private readonly unauthorized: () => void = () => {},
    private readonly author: () => string = () => "", // who writes, where the server does not know
    private readonly base = "",
  ) {}

  health(): Promise<Health> {
    return this.call("GET", "/healthz");
  }

  session(): Promise<Session> {
    return this.call("GET", "/session");
  }

  graph(id: string): GraphClient {
    return new GraphClient(this, id);
  }

  async call<T>(method: string, path: string, options: Options = {}): Promise<T> {
    const response = await this.fetch(method, path, options);
    return (await response.json()) as T;
  }

  /** The response itself; failures are thrown as `ApiError`. */
  async fetch(method: string, path: string, options: Options = {}): Promise<Response> {
    const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
    if (this.token) headers["Authorization"] = `Bearer ${this.token}`;
    const author = this.author();
    if (author) headers["Omnigraph-Actor"] = encodeURIComponent(author);
    if (options.body !== undefined) headers["Content-Type"] = "application/json";
    const body = options.body !== undefined ? JSON.stringify(options.body) : options.raw;
    let response: Response;
    try {
      response = await fetch(this.base + path + search(options.query), {
        method,
        headers,
        body,
        signal: options.signal,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
      });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new ApiError(
        "the server does not answer",
        0,
        "network",
        "unavailable",
        "Check that it still runs, then try again.",
      );
    }
    if (!response.ok) throw await this.failure(response);
    return response;
  }

  private async failure(response: Response): Promise<ApiError> {
    if (response.status === 401) this.unauthorized();
    let body: Record<string, unknown> = {};
    try {
      body = (await response.json()) as Record<string, unknown>;
    } catch {
      // A proxy may answer with something else than JSON; the status says enough.
    }
    return new ApiError(
      text(body["error"]) || statusText(response.status),
      response.status,
      text(body["error_code"]) || text(body["code"]) || String(response.status),
      text(body["kind"]),
      text(body["help"]) || (response.status >= 500 ? SERVER_FAILED : ""),
      (body["span"] as Span | null | undefined) ?? null,
      (body["details"] as Record<string, unknown> | undefined) ?? {},
      body,
      body["retryable"] === true,
    );
  }
}

const SERVER_FAILED = "Nothing was changed by looking. Try again; if it goes on, the log of the server says why.";

/** What an answer without words means: a proxy's, or that of a server in trouble. */
function statusText(status: number): string {
  if (status === 502 || status === 503 || status === 504) return "The server cannot be reached right now";
  return status >= 500 ? "The server failed to answer" : `The server refused the request (${status})`;
}

/** One graph of a server. */
export class GraphClient {
  constructor(
    readonly server: Server,
    readonly id: string,
  ) {}

  // reading

  catalog(point: Point): Promise<Catalog> {
    return this.call("GET", "/catalog", { query: { ...point } });
  }

  access(branch: string): Promise<Access> {
    return this.call("GET", "/permissions", { query: { branch } });
  }

  async schema(point: Point): Promise<string> {
    return (await this.call<{ schema_source: string }>("GET", "/schema", { query: { ...point } })).schema_source;
  }

  query(point: Point, body: QueryBody, signal?: AbortSignal): Promise<ReadOutput> {
    return this.call("POST", "/query", { body: { ...point, ...body }, headers: NODES_AS_IDS, signal });
  }

  checkQuery(point: Point, query: string, signal?: AbortSignal): Promise<Checked> {
    return this.call("POST", "/query/check", { body: { ...point, query }, signal });
  }

  checkSchema(schema_source: string, signal?: AbortSignal): Promise<Checked> {
    return this.call("POST", "/schema/check", { body: { schema_source }, signal });
  }

  async storedQueries(): Promise<QueryInfo[]> {
    return (await this.call<{ queries: QueryInfo[] }>("GET", "/queries")).queries;
  }

  invoke(
    name: string,
    point: Point,
    params: Record<string, Json>,
    more: { rows_shown?: number; column_types?: boolean } = {},
  ): Promise<ReadOutput | ChangeOutput> {
    const where = point.at ? { snapshot: point.at } : { branch: point.branch };
    return this.call("POST", `/queries/${encodeURIComponent(name)}`, {
      body: { params, ...where, ...more },
      headers: NODES_AS_IDS,
    });
  }

  /** The rows of a query as a file. */
  async file(media: string, point: Point, asked: QueryBody | StoredAsk, signal?: AbortSignal): Promise<Blob> {
    const stored = "stored" in asked;
    const where = stored && point.at ? { snapshot: point.at } : { ...point };
    const { stored: name, ...body } = asked as StoredAsk;
    const path = stored ? `/queries/${encodeURIComponent(name)}` : "/query";
    const options = { body: { ...where, ...body }, headers: { ...NODES_AS_IDS, Accept: media }, signal };
    return (await this.server.fetch("POST", this.path(path), options)).blob();
  }

  entity(point: Point, type: string, id: string): Promise<Entity> {
    return this.call("GET", entityPath(type, id), { query: { ...point } });
  }

  entityHistory(
    point: Point,
    type: string,
    id: string,
    limit = 20,
  ): Promise<{ changes: EntityChange[]; next: string | null }> {
    return this.call("GET", `${entityPath(type, id)}/history`, { query: { ...point, limit } });
  }

  async blob(point: Point, entity: EntityKind, type: string, id: string, property: string): Promise<Blob> {
    const where = point.at ? { snapshot: point.at } : { branch: point.branch };
    const options = {
      query: { ...where, entity, type, id, property },
      headers: { Accept: "application/octet-stream" },
    };
    return (await this.server.fetch("GET", this.path("/blob"), options)).blob();
  }

  // writing

  mutate(branch: string, body: QueryBody & { message?: string; dry_run?: boolean }): Promise<ChangeOutput> {
    return this.call("POST", "/mutate", { body: { branch, ...body } });
  }

  planSchema(branch: string, schema_source: string): Promise<SchemaPlan> {
    return this.call("POST", "/schema/plan", { body: { branch, schema_source } });
  }

  applySchema(branch: string, schema_source: string, message?: string): Promise<SchemaApplied> {
    return this.call("POST", "/schema/apply", { body: { branch, schema_source, message } });
  }

  load(
    ndjson: BodyInit,
    options: { branch: string; from?: string; mode?: LoadMode; message?: string; signal?: AbortSignal },
  ): Promise<LoadOutput> {
    const { signal, ...query } = options;
    return this.call("POST", "/load/ndjson", {
      query,
      raw: ndjson,
      signal,
      headers: { "Content-Type": "application/x-ndjson" },
    });
  }

  // versions

  async branches(): Promise<string[]> {
    return (await this.call<{ branches: string[] }>("GET", "/branches")).branches;
  }

  createBranch(name: string, from: string): Promise<unknown> {
    return this.call("POST", "/branches", { body: { name, from } });
  }

  deleteBranch(name: string): Promise<unknown> {
    return this.call("DELETE", `/branches/${encodeURIComponent(name)}`);
  }

  async tags(): Promise<Tag[]> {
    return (await this.call<{ tags: Tag[] }>("GET", "/tags")).tags;
  }

  async commits(query: {
    branch?: string;
    at?: string;
    limit?: number;
    actor?: string;
    maintenance?: boolean;
  }): Promise<Commit[]> {
    return (await this.call<{ commits: Commit[] }>("GET", "/commits", { query })).commits;
  }

  commit(id: string): Promise<Commit> {
    return this.call("GET", `/commits/${encodeURIComponent(id)}`);
  }

  diff(query: {
    a: string;
    b: string;
    branch?: string;
    types?: string[];
    op?: Op[];
    limit?: number;
    from_merge_base?: boolean; // what b did since it parted from a
  }): Promise<Diff> {
    return this.call("GET", "/diff", { query });
  }

  /** Conflicts are an `ApiError` whose body has `merge_conflicts`. */
  merge(body: MergeBody): Promise<MergeOutput> {
    return this.call("POST", "/branches/merge", { body });
  }

  revert(body: UndoBody): Promise<MergeOutput> {
    return this.call("POST", "/revert", { body });
  }

  call<T>(method: string, path: string, options: Options = {}): Promise<T> {
    return this.server.call(method, this.path(path), options);
  }

  private path(path: string): string {
    return `/graphs/${encodeURIComponent(this.id)}${path}`;
  }
}

export function conflictsOf(error: unknown): Conflict[] | null {
  if (!(error instanceof ApiError) || error.code !== "merge_conflicts") return null;
  return (error.body["merge_conflicts"] as Conflict[] | undefined) ?? [];
}

function entityPath(type: string, id: string): string {
  return `/entities/${encodeURIComponent(type)}/${encodeURIComponent(id)}`;
}

function search(query: Query | undefined): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === null || value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) found.append(name, String(one));
  }
  const text = found.toString();
  return text && `?${text}`;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
