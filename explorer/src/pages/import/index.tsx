/** A file becomes rows of one type: looked at, mapped, checked, and loaded to a branch of its own. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, type Catalog, type LoadOutput } from "../../api";
import { useHere } from "../../context";
import { bytes, counted } from "../../format";
import { asApiError, useAsync } from "../../hooks";
import { href } from "../../router";
import { AuthorField } from "../../shell/author";
import { Badge, Button, Empty, Failure, Field, Notice, Panel, Progress } from "../../ui/basics";
import { RowsTable } from "../../ui/table";
import { DropZone } from "./drop";
import "./import.css";
import {
  branchNameFor,
  type Format,
  formatOf,
  guessMapping,
  guessType,
  type Mapping,
  missingOf,
  twiceOf,
  type TypeInfo,
} from "./mapping";
import { MappingTable } from "./mapping-table";
import { type Preview, preview, problemsOf, send, type Target } from "./send";
import { ProblemReport } from "./report";

interface Chosen {
  readonly file: File;
  readonly format: Format;
}

export default function ImportPage() {
  const here = useHere();
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [refused, setRefused] = useState<string>();
  const mayWrite = here.may("change") || here.may("branch_create");
  const take = (file: File) => {
    const format = formatOf(file.name);
    setRefused(format ? undefined : `${file.name}: files end in .csv, .tsv, .ndjson, .parquet or .arrow`);
    setChosen(format && { file, format });
  };
  return (
    <div class="page">
      <div class="page-head">
        <h1>Import</h1>
        {chosen && <Button onClick={() => setChosen(null)}>Choose another file</Button>}
      </div>
      {here.access && !mayWrite && (
        <Notice tone="warn">
          You may read this {here.route.at ? "state, but it is the past" : "branch, but not change it"}: a file can be
          looked at and checked against the schema, not loaded.
        </Notice>
      )}
      {!chosen && <DropZone onFile={take} problem={refused} />}
      {chosen && <Look key={`${chosen.file.name}${chosen.file.lastModified}`} {...chosen} />}
    </div>
  );
}

function Look({ file, format }: Chosen) {
  const { client, point, catalog } = useHere();
  const found = useAsync(() => preview(client, file, format, point.branch), [client, file, format]);
  if (found.error) return <Failure error={found.error} />;
  if (!found.value || !catalog) return <Progress label={`Looking at ${file.name}`} />;
  return <Prepared file={file} format={format} found={found.value} catalog={catalog} />;
}

interface PreparedProps extends Chosen {
  readonly found: Preview;
  readonly catalog: Catalog;
}

function Prepared({ file, format, found, catalog }: PreparedProps) {
  const names = useMemo(() => found.columns.map((column) => column.name), [found]);
  const guessed = useMemo(() => (found.graph_records ? undefined : guessType(names, catalog)), [found, catalog]);
  const [type, setType] = useState<TypeInfo | undefined>(guessed);
  const [mapping, setMapping] = useState<Mapping>(guessed ? guessMapping(names, guessed) : {});
  const choose = (name: string) => {
    const next = [...catalog.nodes, ...catalog.edges].find((one) => one.name === name);
    setType(next);
    setMapping(next ? guessMapping(names, next) : {});
  };
  const missing = type ? missingOf(mapping, type) : [];
  const twice = twiceOf(mapping);
  const complete = found.graph_records || (type !== undefined && missing.length === 0 && twice.length === 0);
  return (
    <>
      <Panel
        title={
          <>
            {file.name}{" "}
            <span class="muted">
              {bytes(file.size)}, {format}
            </span>
          </>
        }
      >
        {found.rows.length === 0 ? (
          <Empty>The file has no rows.</Empty>
        ) : (
          <RowsTable label={`First rows of ${file.name}`} columns={names} rows={found.rows} />
        )}
        <p class="muted panel-body preview-note">The first {counted(found.rows.length, "row")}.</p>
      </Panel>
      <Panel title="What it is">
        <div class="panel-body stack">
          {found.graph_records ? (
            <Notice>
              Every line says itself what it is: nodes have a type, edges have two ends. There is nothing to map.
            </Notice>
          ) : (
            <>
              <TypeChoice catalog={catalog} chosen={type?.name} onChoose={choose} />
              {type && <MappingTable found={found} type={type} mapping={mapping} onChange={setMapping} />}
              {missing.length > 0 && (
                <Notice tone="warn">
                  No column fills {missing.join(", ")}, which every {type?.name} needs.
                </Notice>
              )}
              {twice.length > 0 && <Notice tone="warn">Two columns fill {twice.join(", ")}.</Notice>}
            </>
          )}
        </div>
      </Panel>
      <Destination
        file={file}
        format={format}
        type={type?.name}
        mapping={found.graph_records ? null : mapping}
        complete={complete}
      />
    </>
  );
}

interface TypeChoiceProps {
  readonly catalog: Catalog;
  readonly chosen: string | undefined;
  readonly onChoose: (name: string) => void;
}

function TypeChoice({ catalog, chosen, onChoose }: TypeChoiceProps) {
  return (
    <Field label="Rows are of type">
      {(id) => (
        <select id={id} value={chosen ?? ""} onChange={(event) => onChoose(event.currentTarget.value)}>
          <option value="">choose a type</option>
          <optgroup label="Nodes">
            {catalog.nodes.map((one) => (
              <option key={one.name} value={one.name}>
                {one.name}
              </option>
            ))}
          </optgroup>
          <optgroup label="Edges">
            {catalog.edges.map((one) => (
              <option key={one.name} value={one.name}>
                {one.name}: {one.from} → {one.to}
              </option>
            ))}
          </optgroup>
        </select>
      )}
    </Field>
  );
}

interface DestinationProps extends Chosen {
  readonly type: string | undefined;
  readonly mapping: Mapping | null;
  readonly complete: boolean;
}

type Doing = { readonly what: "check" | "load"; readonly share: number; readonly control: AbortController };
type Done = { readonly checked: LoadOutput } | { readonly loaded: LoadOutput } | { readonly error: ApiError };

function Destination({ file, format, type, mapping, complete }: DestinationProps) {
  const here = useHere();
  const { route } = here;
  const [fresh, setFresh] = useState(here.may("branch_create"));
  const [name, setName] = useState(() => branchNameFor(file.name, new Date()));
  const [mode, setMode] = useState("merge");
  const [message, setMessage] = useState(`Import ${file.name}`);
  const branch = fresh ? name.trim() : route.branch;
  const target: Target = {
    ...(type && { type }),
    format,
    branch,
    mode,
    message,
    ...(fresh && { from: route.branch }),
    ...(mapping && { columns: JSON.stringify(mapping) }),
  };
  const { doing, done, run } = useSending(file, target);
  const mayLoad = !route.at && (fresh ? here.may("branch_create") : here.may("change"));
  const ready = complete && !doing && branch !== "";
  return (
    <Panel title="Where it goes">
      <div class="panel-body stack">
        <div class="destination">
          <BranchChoice fresh={fresh} name={name} onFresh={setFresh} onName={setName} />
          <Field label="Rows that are there already">
            {(id) => (
              <select id={id} value={mode} onChange={(e) => setMode(e.currentTarget.value)}>
                <option value="merge">are updated</option>
                <option value="append">are an error</option>
                <option value="overwrite">are replaced, all of the type</option>
              </select>
            )}
          </Field>
          <AuthorField />
          <Field label="Message">
            {(id) => <input id={id} value={message} onInput={(e) => setMessage(e.currentTarget.value)} />}
          </Field>
        </div>
        <div class="row">
          <Button disabled={!ready} onClick={() => void run("check")}>
            Check
          </Button>
          {mayLoad && (
            <Button kind="primary" disabled={!ready} onClick={() => void run("load")}>
              Load to {branch || "…"}
            </Button>
          )}
          {doing && (
            <Button kind="quiet" onClick={() => doing.control.abort()}>
              Stop
            </Button>
          )}
        </div>
        {doing && <Sending name={file.name} share={doing.share} />}
        {done && <Outcome done={done} />}
      </div>
    </Panel>
  );
}

/** Sends the file, to be checked or loaded, and tells how far it is. */
function useSending(file: File, target: Target) {
  const { client, refresh } = useHere();
  const [doing, setDoing] = useState<Doing | null>(null);
  const [done, setDone] = useState<Done | null>(null);
  const run = async (what: Doing["what"]) => {
    const control = new AbortController();
    const progress = (share: number) => setDoing((old) => old && { ...old, share });
    setDone(null);
    setDoing({ what, share: 0, control });
    try {
      const told = await send(client, file, { ...target, check: what === "check" }, progress, control.signal);
      setDone(what === "check" ? { checked: told } : { loaded: told });
      if (what === "load") refresh();
    } catch (error) {
      setDone({ error: asApiError(error) });
    } finally {
      setDoing(null);
    }
  };
  return { doing, done, run };
}

interface BranchProps {
  readonly fresh: boolean;
  readonly name: string;
  readonly onFresh: (fresh: boolean) => void;
  readonly onName: (name: string) => void;
}

function BranchChoice({ fresh, name, onFresh, onName }: BranchProps) {
  const here = useHere();
  return (
    <fieldset>
      <legend>Branch</legend>
      {here.may("branch_create") && (
        <label class="check">
          <input type="radio" name="where" checked={fresh} onChange={() => onFresh(true)} /> A new branch, to review
          before it is merged
        </label>
      )}
      {fresh && (
        <input
          aria-label="Name of the new branch"
          value={name}
          spellcheck={false}
          onInput={(e) => onName(e.currentTarget.value)}
        />
      )}
      <label class="check">
        <input type="radio" name="where" checked={!fresh} onChange={() => onFresh(false)} /> {here.route.branch} itself
      </label>
    </fieldset>
  );
}

function Sending({ name, share }: { name: string; share: number }) {
  const sent = share >= 1;
  return (
    <Progress label={sent ? "The server reads and validates" : `Sending ${name}`} share={sent ? undefined : share} />
  );
}

/** How it ended, brought into sight: it stands below a form that may be long. */
function Outcome({ done }: { done: Done }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.scrollIntoView({ block: "nearest" }), [done]);
  return (
    <div ref={box}>
      <Told done={done} />
    </div>
  );
}

function Told({ done }: { done: Done }) {
  if ("error" in done) {
    const problems = problemsOf(done.error);
    return problems.length > 0 ? (
      <ProblemReport error={done.error} problems={problems} />
    ) : (
      <Failure error={done.error} />
    );
  }
  const told = "checked" in done ? done.checked : done.loaded;
  const parts = [...told.nodes, ...told.edges].map((one) => counted(one.entities_loaded, `${one.name} row`));
  if ("checked" in done)
    return (
      <div role="status">
        <Notice tone="good">
          <span>
            <Badge tone="good">valid</Badge> {parts.join(", ")} can be loaded. Nothing was changed.
          </span>
        </Notice>
      </div>
    );
  return (
    <div role="status">
      <Notice tone="good">
        <span>
          <Badge tone="good">loaded</Badge> {parts.join(", ")} to <strong>{told.branch}</strong>
          {told.branch_created ? ", a new branch" : ""}.
        </span>
        <span class="row">
          {told.branch !== "main" && (
            <a class="button" href={href({ page: "review", branch: told.branch, params: { source: told.branch } })}>
              Review it
            </a>
          )}
          <a class="button" href={href({ page: "query", branch: told.branch })}>
            Query it
          </a>
        </span>
      </Notice>
    </div>
  );
}
