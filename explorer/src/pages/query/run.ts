/** Runs a query, and brings what it matched to a canvas. */
import type { Catalog, GraphClient, Json, Point, QueryBody, ReadOutput, StoredAsk } from "../../api";
import { arrangeAs } from "../../canvas/layout";
import { Scene } from "../../canvas/model";
import { GraphSource } from "../../canvas/source";
import { DRAWN_ROWS, drawingQueries, matchesOf } from "../../lang/drawing";
import type { QueryText } from "../../lang/queries";

export const ROWS_SHOWN = 10_000; // the rest is counted, and can be downloaded

export interface Outcome {
  readonly output: ReadOutput;
  readonly asked: QueryBody | StoredAsk; // to ask the same again
  readonly point: Point; // the commit it ran on
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
  const asked = { query: text, name: query.name, params };
  const more = { rows_shown: ROWS_SHOWN, column_types: true, explain: true };
  const output = await client.query(point, { ...asked, ...more }, signal);
  return { output, asked, point: pinned(point, output), milliseconds: performance.now() - begun, params, query };
}

export async function runStored(
  client: GraphClient,
  point: Point,
  name: string,
  params: Record<string, Json>,
): Promise<Outcome> {
  const begun = performance.now();
  const more = { rows_shown: ROWS_SHOWN, column_types: true };
  const output = (await client.invoke(name, point, params, more)) as ReadOutput;
  const asked = { stored: name, params };
  return {
    output,
    asked,
    point: pinned(point, output),
    milliseconds: performance.now() - begun,
    params,
    query: undefined,
  };
}

function pinned(point: Point, output: ReadOutput): Point {
  return { ...point, at: output.graph_commit_id };
}

export interface Drawn {
  readonly scene: Scene;
  readonly point: Point;
  readonly read: number; // matches
  readonly matches: number | null; // of all; null: nobody counted them
}

/** The matches of a query that has run, at the commit it ran on. None where a query binds no nodes. */
export async function draw(client: GraphClient, catalog: Catalog, outcome: Outcome): Promise<Drawn | null> {
  const queries = outcome.query ? drawingQueries(outcome.query) : [];
  if (queries.length === 0) return null;
  const { point, params } = outcome;
  const source = new GraphSource(client, point, catalog);
  const told = await Promise.all(
    queries.map(({ text, name }) => client.query(point, { query: text, name, params, rows_shown: DRAWN_ROWS })),
  );
  const found = queries.map((query, i) => matchesOf(query, told[i]!.rows, catalog));
  const refs = new Map(found.flatMap((m) => m.nodes).map((ref) => [`${ref.type}:${ref.id}`, ref]));
  const scene = new Scene();
  scene.add(
    await source.nodes([...refs.values()]),
    found.flatMap((m) => m.edges),
  );
  const begun = performance.now();
  arrangeAs(scene.picture, scene.layout);
  performance.measure("layout", { start: begun, duration: performance.now() - begun });
  const read = told.reduce((sum, output) => sum + output.rows.length, 0);
  const whole = told.every((output) => output.row_count < DRAWN_ROWS);
  const matches = queries.every((query) => query.keepsRows) ? outcome.output.row_count : whole ? read : null;
  return { scene, point, read, matches };
}
