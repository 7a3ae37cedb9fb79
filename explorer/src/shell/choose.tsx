/** Which graph of the server; who may not list them has to know a name. */
import { useEffect, useState } from "preact/hooks";
import type { Server } from "../api";
import { useAsync } from "../hooks";
import { formatRoute, resolve, currentRoute } from "../router";
import { Button, Failure, Field, Progress } from "../ui/basics";
import { Logo } from "./logo";

export function ChooseGraph({ server, onChoose }: { server: Server; onChoose: (graph: string) => void }) {
  const graphs = useAsync(() => server.graphs(), [server]);
  const only = graphs.value?.length === 1 ? graphs.value[0] : undefined;
  useEffect(() => {
    if (only) onChoose(only.graph_id);
  }, [only]);
  if (graphs.loading || only) return <main class="centred"><Progress label="Looking for graphs" /></main>;
  return (
    <main class="centred">
      <div class="card">
        <Logo />
        <h1>Choose a graph</h1>
        {graphs.value ? (
          <ul class="links">
            {graphs.value.map(({ graph_id }) => (
              <li key={graph_id}><a href={formatRoute(resolve(currentRoute(), { graph: graph_id }))}>{graph_id}</a></li>
            ))}
          </ul>
        ) : graphs.error && !graphs.error.denied ? (
          <Failure error={graphs.error} retry={graphs.reload} />
        ) : (
          <AskName onChoose={onChoose} />
        )}
      </div>
    </main>
  );
}

function AskName({ onChoose }: { onChoose: (graph: string) => void }) {
  const [name, setName] = useState("");
  return (
    <form onSubmit={(event) => { event.preventDefault(); if (name.trim()) onChoose(name.trim()); }}>
      <p class="muted">You may not list the graphs of this server. If you know the name of one, open it.</p>
      <Field label="Name of the graph">
        {(id) => <input id={id} value={name} autofocus spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />}
      </Field>
      <Button kind="primary" type="submit" disabled={!name.trim()}>Open</Button>
    </form>
  );
}
