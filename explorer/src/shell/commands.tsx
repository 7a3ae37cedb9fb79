/** Everything one can go to, by typing a part of its name: pages, types, branches, queries. */
import { useMemo, useState } from "preact/hooks";
import { useHere } from "../context";
import { visible } from "../format";
import { sampleQuery } from "../pages/query/example";
import { recent, saved } from "../pages/query/keep";
import { gist } from "../pages/query/shelf";
import { TITLES } from "../pages";
import { go, PAGES, type Target } from "../router";
import { Dialog } from "../ui/basics";

const SHOWN_MAX = 40;

interface Command {
  readonly group: string;
  readonly name: string;
  readonly to: Target;
}

export function CommandPalette({ onClose }: { onClose: () => void }) {
  const here = useHere();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const all = useMemo(() => commandsOf(here), [here.catalog, here.branches, here.route.graph]);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = all
    .filter(({ group, name }) => words.every((word) => `${group} ${name}`.toLowerCase().includes(word)))
    .slice(0, SHOWN_MAX);
  const run = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    go(command.to);
  };
  const keys = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && fitting.length) setAt((old) => (old + step + fitting.length) % fitting.length);
    else if (event.key === "Enter") run(fitting[at]);
    else return;
    event.preventDefault();
    document.getElementById(`command-${at}`)?.scrollIntoView({ block: "nearest" });
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        role="combobox"
        type="text"
        list={undefined}
        aria-label="Find a page, type, branch or query"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={fitting[at] ? `command-${at}` : undefined}
        placeholder="A page, a type, a branch, a query"
        autofocus
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={keys}
      />
      <ul id="commands" class="commands" role="listbox" aria-label="What fits">
        {fitting.map((command, i) => (
          <li
            key={`${command.group} ${command.name} ${i}`}
            id={`command-${i}`}
            role="option"
            aria-selected={i === at}
            onClick={() => run(command)}
          >
            <span class="command-name">{command.name}</span>
            <span class="muted small">{command.group}</span>
          </li>
        ))}
      </ul>
      {fitting.length === 0 && <p class="muted">Nothing fits.</p>}
    </Dialog>
  );
}

function commandsOf({ catalog, branches, route }: ReturnType<typeof useHere>): Command[] {
  const query = (text: string): Target => ({ page: "query", params: { q: text, run: "1" } });
  const kept = [...saved(route.graph), ...recent(route.graph)];
  return [
    ...PAGES.map((page): Command => ({ group: "page", name: TITLES[page], to: { page } })),
    ...(catalog?.nodes ?? []).map((node): Command => ({
      group: "node type",
      name: node.name,
      to: query(sampleQuery(node)),
    })),
    ...(catalog?.edges ?? []).map(({ name }): Command => ({
      group: "edge type",
      name,
      to: { page: "schema", params: { type: name } },
    })),
    ...branches.map((branch): Command => ({ group: "branch", name: visible(branch), to: { branch } })),
    ...kept.map((one): Command => ({ group: "query", name: visible(gist(one.text)), to: query(one.text) })),
    { group: "server", name: "All graphs", to: { graph: "" } },
  ];
}
