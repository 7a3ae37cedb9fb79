/** The columns of a query that are whole nodes: `return { $a, $b }` gives their ids, and more can be shown of them. */
import type { Catalog } from "../api";
import { typesOfVariables } from "./complete";
import type { QueryText } from "./queries";
import { tokenize, type Token } from "./tokens";

/** The node type behind each such column, by the column's name. */
export function nodeColumns(query: QueryText | undefined, catalog: Catalog): Map<string, string> {
  const found = new Map<string, string>();
  const branch = query?.branches.length === 1 ? query.branches[0]! : undefined;
  if (!branch) return found;
  const types = typesOfVariables(branch.match.slice(1, -1), catalog);
  for (const item of itemsOf(tokenize(branch.projections))) {
    const [variable, as, name] = item;
    if (variable?.kind !== "variable" || (item.length !== 1 && !(item.length === 3 && as!.text === "as"))) continue;
    const type = types.get(variable.text);
    if (catalog.nodes.some((node) => node.name === type)) found.set(name?.text ?? variable.text.slice(1), type!);
  }
  return found;
}

/** What stands between commas, outside of brackets. */
function itemsOf(tokens: readonly Token[]): Token[][] {
  const items: Token[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (/^[({[]$/.test(token.text)) depth++;
    if (/^[)}\]]$/.test(token.text)) depth--;
    if (token.text === "," && depth === 0) items.push([]);
    else items.at(-1)!.push(token);
  }
  return items;
}
