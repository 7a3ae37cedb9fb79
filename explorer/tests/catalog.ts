import type { Catalog, EdgeInfo, NodeInfo, PropertyInfo } from "../src/api";

function property(name: string, type = "String"): PropertyInfo {
  return { name, type, nullable: false, enum: null, default: null, description: null };
}

const bare = {
  count: 0,
  description: null,
  key: [],
  uniques: [],
  ranges: [],
  checks: [],
  declared_indices: [],
  indices: [],
};

function node(name: string, ...properties: PropertyInfo[]): NodeInfo {
  return { ...bare, kind: "node", name, properties, implements: [] };
}

function edge(name: string, from: string, to: string): EdgeInfo {
  return { ...bare, kind: "edge", name, from, to, cardinality: "0..", properties: [property("since", "Date")] };
}

export const CATALOG: Catalog = {
  graph_commit_id: "c.1",
  nodes: [node("Person", property("name"), property("age", "I32")), node("City", property("name"))],
  edges: [edge("Knows", "Person", "Person"), edge("LivesIn", "Person", "City")],
  interfaces: [],
};
