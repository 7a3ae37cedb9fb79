/** Which graph of the server. */
import { useEffect } from "preact/hooks";
import type { Server } from "../api";
import { useAsync } from "../hooks";
import { formatRoute, resolve, currentRoute } from "../router";
import { Failure, Progress } from "../ui/basics";
import { Logo } from "./logo";

export function ChooseGraph({ server, onChoose }: { server: Server; onChoose: (graph: string) => void }) {
  const graphs = useAsync(async () => (await server.session()).graphs, [server]);
  const only = graphs.value?.length === 1 ? graphs.value[0] : undefined;
  useEffect(() => {
    if (only) onChoose(only.graph_id);
  }, [only]);
  if (graphs.loading || only)
    return (
      <main class="centred">
        <Progress label="Looking for graphs" />
      </main>
    );
  return (
    <main class="centred">
      <div class="card">
        <Logo />
        <h1>Choose a graph</h1>
        {graphs.value?.length === 0 && <p class="muted">There is none here that you may read.</p>}
        {graphs.value ? (
          <ul class="links">
            {graphs.value.map(({ graph_id }) => (
              <li key={graph_id}>
                <a href={formatRoute(resolve(currentRoute(), { graph: graph_id }))}>{graph_id}</a>
              </li>
            ))}
          </ul>
        ) : (
          graphs.error && <Failure error={graphs.error} retry={graphs.reload} />
        )}
      </div>
    </main>
  );
}
