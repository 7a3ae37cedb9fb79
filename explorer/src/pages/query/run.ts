/** Runs a query, and brings what it matched to a canvas. */
import type { Catalog, GraphClient, Json, Point, ReadOutput } from "../../api";
import { layOut } from "../../canvas/layout";
import { Scene } from "../../canvas/model";
import { GraphSource } from "../../canvas/source";
import { drawingQueries, matchesOf } from "../../lang/drawing";
import type { QueryText } from "../../lang/queries";

export const ROWS_MAX = 10_000;

export interface Outcome {
  readonly output: ReadOutput;
  readonly milliseconds: number;
  readonly params: Record<string, Json>;
  readonly query: QueryText | undefined; // none: a stored query, whose text is not told
}

export async function runRead(
  client: GraphClient,
  point: Point,
  text: string,
  query: QueryText,
  params: Record<string, Json>,
  signal: AbortSignal,
): Promise<Outcome> {
  const begun = performance.now();
  const body = { query: text, name: query.name, params, max_rows: ROWS_MAX, explain: true };
  const output = await client.query(point, body, signal);
  return { output, milliseconds: performance.now() - begun, params, query };
}

export async function runStored(
  client: GraphClient,
  point: Point,
  name: string,
  params: Record<string, Json>,
): Promise<Outcome> {
  const begun = performance.now();
  const output = (await client.invoke(name, point, params)) as ReadOutput;
  return { output, milliseconds: performance.now() - begun, params, query: undefined };
}

export interface Drawn {
  readonly scene: Scene;
  readonly point: Point;
  readonly layoutMilliseconds: number;
}

/** The matches of a query that has run, at the commit it ran on. None where a query binds no nodes. */
export async function draw(
  client: GraphClient,
  point: Point,
  catalog: Catalog,
  outcome: Outcome,
): Promise<Drawn | null> {
  const queries = outcome.query ? drawingQueries(outcome.query) : [];
  if (queries.length === 0) return null;
  const pinned = { ...point, at: outcome.output.graph_commit_id };
  const source = new GraphSource(client, pinned, catalog);
  const found = await Promise.all(
    queries.map(async (query) =>
      matchesOf(
        query,
        (await client.query(pinned, { query: query.text, name: query.name, params: outcome.params })).rows,
        catalog,
      ),
    ),
  );
  const refs = new Map(found.flatMap((m) => m.nodes).map((ref) => [`${ref.type}:${ref.id}`, ref]));
  const scene = new Scene();
  scene.add(
    await source.nodes([...refs.values()]),
    found.flatMap((m) => m.edges),
  );
  const begun = performance.now();
  layOut(scene.picture);
  const layoutMilliseconds = performance.now() - begun;
  performance.measure("layout", { start: begun, duration: layoutMilliseconds });
  return { scene, point: pinned, layoutMilliseconds };
}
