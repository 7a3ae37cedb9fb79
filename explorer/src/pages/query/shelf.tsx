/** Queries at hand: stored on the server, saved in this browser, and the last that ran. */
import { useMemo, useState } from "preact/hooks";
import type { QueryInfo } from "../../api";
import { useHere } from "../../context";
import { ago, visible } from "../../format";
import { Badge, Button, Dialog, Field } from "../../ui/basics";
import { forget, type Kept, recent, save, saved } from "./keep";

interface Props {
  readonly version: number; // grows when a query ran
  readonly stored: readonly QueryInfo[];
  readonly current: string | undefined;
  readonly onOpen: (kept: Kept) => void;
  readonly onStored: (name: string) => void;
  readonly onSave: () => Kept;
}

export function Shelf(props: Props) {
  return (
    <aside class="shelf" aria-label="Queries at hand">
      {props.stored.length > 0 && <StoredQueries {...props} />}
      <SavedQueries {...props} />
      <RecentQueries {...props} />
    </aside>
  );
}

function StoredQueries({ stored, current, onStored }: Props) {
  return (
    <section>
      <h2>Stored</h2>
      <ul class="choices">
        {stored.map(({ name, description, mutation }) => (
          <li key={name}>
            <button type="button" aria-current={name === current} title={description} onClick={() => onStored(name)}>
              {name} {mutation && <Badge>changes</Badge>}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function SavedQueries({ onOpen, onSave }: Props) {
  const { graph } = useHere().route;
  const [kept, setKept] = useState(() => saved(graph));
  const [naming, setNaming] = useState(false);
  const keep = (name: string) => {
    setKept(save(graph, { ...onSave(), name }));
    setNaming(false);
  };
  return (
    <section>
      <div class="row spread">
        <h2>Saved</h2>
        <Button small kind="quiet" onClick={() => setNaming(true)}>
          Save this
        </Button>
      </div>
      {kept.length === 0 && <p class="muted small">Queries you save stay in this browser.</p>}
      <ul class="choices">
        {kept.map((one) => (
          <li key={one.name} class="row choice-row">
            <button type="button" class="grow" onClick={() => onOpen(one)}>
              {one.name}
            </button>
            <Button
              small
              kind="quiet"
              aria-label={`Forget ${one.name}`}
              onClick={() => setKept(forget(graph, one.name))}
            >
              ✕
            </Button>
          </li>
        ))}
      </ul>
      {naming && <SaveAs initial={onSave().name} onClose={() => setNaming(false)} onSave={keep} />}
    </section>
  );
}

function RecentQueries({ version, onOpen }: Props) {
  const { graph } = useHere().route;
  const last = useMemo(() => recent(graph), [version, graph]);
  return (
    <section>
      <h2>Recent</h2>
      {last.length === 0 && <p class="muted small">What you run appears here.</p>}
      <ul class="choices">
        {last.map((one) => (
          <li key={one.at}>
            <button type="button" title={one.text} onClick={() => onOpen(one)}>
              {one.name !== BARE && <span class="recent-name">{visible(one.name)} </span>}
              <span class="muted small">{ago(one.at * 1000)}</span>
              <span class="recent-text">{visible(gist(one.text))}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What a query without a name is called. */
const BARE = "q";

export function gist(text: string): string {
  const inside = /match\s*\{([\s\S]*)/.exec(text)?.[1] ?? text;
  return inside.replace(/\s+/g, " ").trim().slice(0, 60);
}

function SaveAs({
  initial,
  onSave,
  onClose,
}: {
  initial: string;
  onSave: (name: string) => void;
  onClose: () => void;
}) {
  const [name, setName] = useState(initial);
  return (
    <Dialog title="Save the query" onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) onSave(name.trim());
        }}
      >
        <Field label="Name">
          {(id) => <input id={id} value={name} autofocus onInput={(event) => setName(event.currentTarget.value)} />}
        </Field>
        <div class="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={!name.trim()}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
