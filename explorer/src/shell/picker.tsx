/** Choose a branch, a tag, or one of the last commits; or make a branch. */
import { useState } from "preact/hooks";
import { useHere } from "../context";
import { ago, branchOf, shortCommit, visible } from "../format";
import { asApiError, useAsync } from "../hooks";
import { go } from "../router";
import { Badge, Button, Dialog, Failure, Field } from "../ui/basics";
import { toast } from "../ui/toast";
import type { ApiError } from "../api";

const COMMITS_SHOWN = 30;

export function PointPicker({ onClose }: { onClose: () => void }) {
  const here = useHere();
  const { route } = here;
  const [filter, setFilter] = useState("");
  const fits = (text: string) => text.toLowerCase().includes(filter.trim().toLowerCase());
  const pick = (branch: string, at: string | null) => {
    go({ branch, at });
    onClose();
  };
  const typed = filter.trim();
  return (
    <Dialog title="Branch or point in time" onClose={onClose} wide>
      <Field
        label="Find"
        hint="A branch, a tag, a commit, or a time such as 2026-11-01; main~2 is two commits before the head."
      >
        {(id, describedBy) => (
          <input
            id={id}
            value={filter}
            autofocus
            spellcheck={false}
            aria-describedby={describedBy}
            onInput={(event) => setFilter(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && typed && pick(...chosen(typed, here.branches, route.branch))}
          />
        )}
      </Field>
      <div class="picker">
        <Names fits={fits} pick={pick} />
        <Commits fits={fits} pick={pick} />
      </div>
      {here.may("branch_create") && <NewBranch onDone={(name) => pick(name, null)} />}
    </Dialog>
  );
}

interface ListProps {
  readonly fits: (text: string) => boolean;
  readonly pick: (branch: string, at: string | null) => void;
}

/** Branches, and tags where there are some. */
function Names({ fits, pick }: ListProps) {
  const { client, route, branches } = useHere();
  const tags = useAsync(() => client.tags(), [client]);
  const fitting = (tags.value ?? []).filter((tag) => fits(tag.name));
  return (
    <section aria-label="Branches">
      <h3>Branches</h3>
      <ul class="choices">
        {branches.filter(fits).map((name) => (
          <li key={name}>
            <button type="button" aria-current={name === route.branch && !route.at} onClick={() => pick(name, null)}>
              {visible(name)}
            </button>
          </li>
        ))}
      </ul>
      {fitting.length > 0 && <h3>Tags</h3>}
      <ul class="choices">
        {fitting.map(({ name }) => (
          <li key={name}>
            <button type="button" aria-current={name === route.at} onClick={() => pick(route.branch, name)}>
              {visible(name)}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The last commits of the branch. */
function Commits({ fits, pick }: ListProps) {
  const { client, route } = useHere();
  const { branch, at } = route;
  const commits = useAsync(() => client.commits({ branch, limit: COMMITS_SHOWN }), [client, branch]);
  const fitting = (commits.value ?? []).filter((c) =>
    fits(`${c.graph_commit_id} ${c.message ?? ""} ${c.actor_id ?? ""}`),
  );
  return (
    <section aria-label="Commits">
      <h3>Commits of {branch}</h3>
      <ul class="choices">
        {fitting.map((commit) => (
          <li key={commit.graph_commit_id}>
            <button
              type="button"
              aria-current={commit.graph_commit_id === at}
              onClick={() => pick(branch, commit.graph_commit_id)}
            >
              <span class="mono">{shortCommit(commit.graph_commit_id)}</span> {visible(commit.message ?? commit.kind)}{" "}
              <span class="muted">{visible([commit.actor_id, ago(commit.created_at)].filter(Boolean).join(" "))}</span>
              {branchOf(commit) !== branch && <Badge>{branchOf(commit)}</Badge>}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function chosen(text: string, branches: readonly string[], branch: string): [string, string | null] {
  return branches.includes(text) ? [text, null] : [branch, text];
}

function NewBranch({ onDone }: { onDone: (name: string) => void }) {
  const here = useHere();
  const [name, setName] = useState("");
  const [error, setError] = useState<ApiError>();
  const create = async () => {
    try {
      await here.client.createBranch(name.trim(), here.route.branch);
    } catch (failure) {
      setError(asApiError(failure));
      return;
    }
    here.refresh();
    toast(`Branch ${name.trim()} starts at ${here.route.branch}`);
    onDone(name.trim());
  };
  return (
    <form
      class="row new-branch"
      onSubmit={(event) => {
        event.preventDefault();
        void create();
      }}
    >
      <Field label={`New branch from ${here.route.branch}`}>
        {(id) => (
          <input id={id} value={name} spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />
        )}
      </Field>
      <Button type="submit" disabled={!name.trim()}>
        Create
      </Button>
      {error && <Failure error={error} />}
    </form>
  );
}
