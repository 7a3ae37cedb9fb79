/** Find a node: first among those that are drawn, then in the graph. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { asApiError, useRested } from "../hooks";
import { useShortcut } from "../keys";
import { toast } from "../ui/toast";
import { labelIn, type Look } from "./look";
import { type CanvasNode, nodeKey, type NodeRef, type Scene } from "./model";
import type { GraphSource } from "./source";
import { TypeDot } from "./type-dot";

const SHOWN_MAX = 8;
const REST_MILLISECONDS = 250;

interface Props {
  readonly scene: Scene;
  readonly look: Look;
  readonly source: GraphSource | undefined;
  readonly onChoose: (key: string) => void;
  readonly onBring: (ref: NodeRef) => void;
}

interface Hit {
  readonly node: CanvasNode;
  readonly here: boolean; // it is drawn already
}

export function FindNode({ scene, look, source, onChoose, onBring }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const list = useId();
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const hits = useHits(scene, look, source, text);
  useShortcut("/", "Find a node", "Graph", () => input.current?.focus());
  const choose = (hit: Hit | undefined) => {
    if (!hit) return;
    setOpen(false);
    setText("");
    input.current?.blur(); // so that keys mean the node now
    if (hit.here) onChoose(nodeKey(hit.node));
    else onBring({ type: hit.node.type, id: hit.node.id });
  };
  const keys = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && hits.length) setAt((old) => (old + step + hits.length) % hits.length);
    else if (event.key === "Enter") choose(hits[at]);
    else if (event.key === "Escape" && open) setOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = open && text.trim() !== "";
  return (
    <div
      class="find-node"
      onFocusOut={(event) => !event.currentTarget.contains(event.relatedTarget as Node) && setOpen(false)}
    >
      <input
        ref={input}
        type="search"
        list={undefined}
        role="combobox"
        aria-label="Find a node"
        aria-expanded={shown}
        aria-controls={list}
        aria-activedescendant={shown && hits[at] ? `${list}-${at}` : undefined}
        placeholder="Find a node  /"
        value={text}
        spellcheck={false}
        onFocus={() => setOpen(true)}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setOpen(true);
          setAt(0);
        }}
        onKeyDown={keys}
      />
      <ul id={list} class="menu find-hits" role="listbox" aria-label="Nodes that fit" hidden={!shown}>
        {shown && hits.length === 0 && <li class="muted find-none">No node fits.</li>}
        {shown &&
          hits.map((hit, i) => (
            <li
              key={nodeKey(hit.node)}
              id={`${list}-${i}`}
              role="option"
              aria-selected={i === at}
              onPointerDown={(event) => {
                event.preventDefault();
                choose(hit);
              }}
            >
              <TypeDot type={hit.node.type} />
              <span class="find-label">{labelIn(look, hit.node)}</span>
              <span class="muted small">
                {hit.node.type}
                {hit.here ? "" : ", not drawn yet"}
              </span>
            </li>
          ))}
      </ul>
    </div>
  );
}

/** What is drawn at once, what is in the graph when nobody types any more. */
function useHits(scene: Scene, look: Look, source: GraphSource | undefined, text: string): Hit[] {
  const wanted = text.trim().toLowerCase();
  const rested = useRested(text.trim(), REST_MILLISECONDS);
  const [far, setFar] = useState<{ text: string; nodes: CanvasNode[] }>({ text: "", nodes: [] });
  useEffect(() => {
    if (!source || rested.length < 2) return;
    let gone = false;
    source.find(rested, SHOWN_MAX).then(
      (nodes) => gone || setFar({ text: rested, nodes }),
      (error: unknown) => toast(asApiError(error).message, "bad"),
    );
    return () => {
      gone = true;
    };
  }, [rested, source]);
  if (!wanted) return [];
  const fits = (node: CanvasNode) => `${labelIn(look, node)} ${node.id}`.toLowerCase().includes(wanted);
  const near = scene.nodes.filter(fits).slice(0, SHOWN_MAX);
  const known = new Set(near.map(nodeKey));
  const more = far.text.toLowerCase() === wanted ? far.nodes.filter((node) => !known.has(nodeKey(node))) : [];
  return [
    ...near.map((node) => ({ node, here: true })),
    ...more.map((node) => ({ node, here: scene.picture.hasNode(nodeKey(node)) })),
  ].slice(0, SHOWN_MAX);
}
