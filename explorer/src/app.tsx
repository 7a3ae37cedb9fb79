/** From an address to a page: who asks, which graph, where in its history. */
import { useMemo, useState } from "preact/hooks";
import { type ApiError, Server } from "./api";
import type { TypeStyles } from "./canvas/look";
import { HereContext, type Here } from "./context";
import { useAsync, useEvent, useStored } from "./hooks";
import { PageBody } from "./pages";
import { go, href, useRoute, type Route } from "./router";
import { saveToken, savedToken } from "./session";
import { ChooseGraph } from "./shell/choose";
import { Header } from "./shell/header";
import { Login } from "./shell/login";
import { Failure, Progress } from "./ui/basics";
import { Toasts } from "./ui/toast";

export function App() {
  const route = useRoute();
  const [token, setToken] = useState(savedToken);
  const [refused, setRefused] = useState(false);
  const [author, setAuthor] = useStored("author", "");
  const said = useEvent(() => author);
  const server = useMemo(() => new Server(token, () => setRefused(true), said), [token]);
  const signIn = (next: string | null) => {
    saveToken(next);
    setToken(next);
    setRefused(false);
  };
  const signOut = token
    ? () => {
        signIn(null);
        setRefused(true);
      }
    : undefined;
  return (
    <>
      {refused ? (
        <Login failed={token !== null} onToken={signIn} />
      ) : route.graph ? (
        <InGraph
          key={`${token}/${route.graph}`}
          server={server}
          route={route}
          signOut={signOut}
          author={author}
          setAuthor={setAuthor}
        />
      ) : (
        <ChooseGraph server={server} onChoose={(graph) => go({ graph }, { replace: true })} />
      )}
      <Toasts />
    </>
  );
}

/** The graph, the branch or the point in time cannot be read: say why, and where one can go instead. */
function Lost({ error, retry, route }: { error: ApiError; retry: () => void; route: Route }) {
  const elsewhere = route.branch !== "main" || route.at !== null;
  return (
    <div class="page stack">
      <h1>{elsewhere ? "This point cannot be read" : "The graph cannot be read"}</h1>
      <Failure error={error} retry={retry} />
      <p class="row">
        {elsewhere && <a href={href({ branch: "main" })}>Go to main</a>}
        <a href="#/">All graphs</a>
      </p>
    </div>
  );
}

interface GraphProps {
  readonly server: Server;
  readonly route: Route;
  readonly signOut?: () => void;
  readonly author: string;
  readonly setAuthor: (name: string) => void;
}

function InGraph({ server, route, signOut, author, setAuthor }: GraphProps) {
  const client = useMemo(() => server.graph(route.graph), [server, route.graph]);
  const point = useMemo(() => ({ branch: route.branch, at: route.at }), [route.branch, route.at]);
  const catalog = useAsync(() => client.catalog(point), [client, point]);
  const branches = useAsync(() => client.branches(), [client]);
  const access = useAsync(() => client.access(point.branch), [client, point.branch]);
  const [styles, setStyles] = useStored<TypeStyles>(`styles.${route.graph}`, {});
  const here: Here = {
    styles,
    setStyle: (type, style) => setStyles({ ...styles, [type]: { ...styles[type], ...style } }),
    client,
    route,
    point,
    catalog: catalog.value,
    branches: branches.value ?? [route.branch],
    access: access.value,
    may: (action) => !route.at && (access.value?.actions[action] ?? false),
    author: access.value?.actor ?? author,
    setAuthor: (name) => {
      setAuthor(name);
      access.reload();
    },
    refresh: () => {
      catalog.reload();
      branches.reload();
    },
  };
  return (
    <HereContext.Provider value={here}>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the page
      </a>
      <Header signOut={signOut} />
      <main id="main" tabIndex={-1}>
        {catalog.error && <Lost error={catalog.error} retry={catalog.reload} route={route} />}
        {!catalog.error && !catalog.value && (
          <div class="page">
            <Progress label="Opening the graph" />
          </div>
        )}
        {catalog.value && <PageBody page={route.page} />}
      </main>
    </HereContext.Provider>
  );
}
