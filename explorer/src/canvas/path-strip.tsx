/** A path, step by step: each node a button, each edge named, and a way to walk along it. */
import { useState } from "preact/hooks";
import { counted } from "../format";
import { useShortcut } from "../keys";
import { Button } from "../ui/basics";
import { labelIn, type Look } from "./look";
import { nodeKey, type Scene } from "./model";
import type { WalkedPath } from "./paths";
import { TypeDot } from "./type-dot";

interface Props {
  readonly path: WalkedPath;
  readonly scene: Scene;
  readonly look: Look;
  readonly onStep: (key: string) => void;
  readonly onFit: () => void;
  readonly onClose: () => void;
}

export function PathStrip({ path, scene, look, onStep, onFit, onClose }: Props) {
  const [at, setAt] = useState(-1);
  const go = (to: number) => {
    const node = path.nodes[to];
    if (!node) return;
    setAt(to);
    onStep(nodeKey(node));
  };
  useShortcut("]", "Next step of the path", "Graph", () => go(at + 1));
  useShortcut("[", "Step before on the path", "Graph", () => go(at - 1));
  return (
    <section class="path-strip" aria-label="Path">
      <strong>{counted(path.edges.length, "step")}</strong>
      <ol>
        {path.nodes.map((ref, i) => {
          const key = nodeKey(ref);
          const known = scene.picture.hasNode(key)
            ? scene.picture.getNodeAttribute(key, "node")
            : { ...ref, properties: {} };
          const edge = path.edges[i - 1];
          return (
            <li key={key}>
              {edge && (
                <span class="path-edge">
                  {edge.to.id === ref.id && edge.to.type === ref.type ? `${edge.type} →` : `← ${edge.type}`}
                </span>
              )}
              <button
                type="button"
                class="path-node"
                aria-current={i === at ? "step" : undefined}
                onClick={() => go(i)}
              >
                <TypeDot type={ref.type} />
                {labelIn(look, known)}
              </button>
            </li>
          );
        })}
      </ol>
      <span class="row path-tools">
        <Button small aria-label="Step before" disabled={at <= 0} onClick={() => go(at - 1)}>
          ‹
        </Button>
        <Button small aria-label="Next step" disabled={at >= path.nodes.length - 1} onClick={() => go(at + 1)}>
          ›
        </Button>
        <Button small onClick={onFit}>
          Fit path
        </Button>
        <Button small kind="quiet" aria-label="Leave the path" onClick={onClose}>
          ✕
        </Button>
      </span>
    </section>
  );
}
