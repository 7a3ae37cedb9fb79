/** The same graph as a table, for those who read it rather than see it. */
import { useMemo } from "preact/hooks";
import { visible } from "../format";
import { useEvent } from "../hooks";
import { Button } from "../ui/basics";
import { type Column, Table } from "../ui/table";
import { labelIn, type Look, signed } from "./look";
import { type CanvasNode, nodeKey, type Scene } from "./model";
import { TypeChip } from "./type-dot";

interface Props {
  readonly scene: Scene;
  readonly look: Look;
  readonly selected: string | null;
  readonly onSelect: (key: string) => void;
  readonly onHide: (key: string) => void;
}

export function NodeList({ scene, look, selected, ...hands }: Props) {
  const { picture } = scene;
  const onSelect = useEvent(hands.onSelect);
  const onHide = useEvent(hands.onHide);
  const nodes = scene.nodes;
  const columns = useMemo(
    (): Column<CanvasNode>[] => [
      {
        name: "Node",
        cell: (node) => (
          <button
            type="button"
            class="link"
            aria-pressed={nodeKey(node) === selected}
            onClick={() => onSelect(nodeKey(node))}
          >
            {signed(labelIn(look, node), node.sign)}
          </button>
        ),
      },
      { name: "Type", cell: (node) => <TypeChip type={node.type} /> },
      { name: "Id", cell: (node) => visible(node.id) },
      { name: "Edges here", cell: (node) => edgesOf(scene, look, nodeKey(node)) },
      { name: "Degree", numeric: true, cell: (node) => picture.degree(nodeKey(node)) },
      {
        name: "Actions",
        cell: (node) => (
          <Button small kind="quiet" aria-label={`Hide ${node.id}`} onClick={() => onHide(nodeKey(node))}>
            Hide
          </Button>
        ),
      },
    ],
    [scene, look, selected],
  );
  return (
    <Table
      label="Nodes of the graph"
      columns={columns}
      rows={nodes}
      rowKey={nodeKey}
      rowClass={(node) => (nodeKey(node) === selected ? "chosen" : undefined)}
    />
  );
}

/** “Wrote → Paper A, Paper B”, for the first few. */
function edgesOf(scene: Scene, look: Look, key: string): string {
  const { picture } = scene;
  const shown = picture.mapEdges(key, (_, { edge }, from, to) => {
    const other = picture.getNodeAttribute(from === key ? to : from, "node");
    return `${edge.label ?? edge.type} ${from === key ? "→" : "←"} ${labelIn(look, other)}`;
  });
  return shown.length > 3 ? `${shown.slice(0, 3).join(", ")}, and ${shown.length - 3} more` : shown.join(", ");
}
