/** Choose a branch, a tag, or one of the last commits; make and delete branches. */
import { useState } from "preact/hooks";
import { useHere } from "../context";
import { ago, branchOf, shortCommit } from "../format";
import { asApiError, useAsync } from "../hooks";
import { go } from "../router";
import { Badge, Button, Dialog, Failure, Field } from "../ui/basics";
import { toast } from "../ui/toast";
import type { ApiError } from "../api";

const COMMITS_SHOWN = 30;

export function PointPicker({ onClose }: { onClose: () => void }) {
  const here = useHere();
  const { client, route } = here;
  const [filter, setFilter] = useState("");
  const tags = useAsync(() => client.tags(), [client]);
  const commits = useAsync(
    () => client.commits({ branch: route.branch, limit: COMMITS_SHOWN }),
    [client, route.branch],
  );
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
        <section aria-label="Branches">
          <h3>Branches</h3>
          <ul class="choices">
            {here.branches.filter(fits).map((name) => (
              <li key={name}>
                <button
                  type="button"
                  aria-current={name === route.branch && !route.at}
                  onClick={() => pick(name, null)}
                >
                  {name}
                </button>
              </li>
            ))}
          </ul>
          {(tags.value ?? []).some((t) => fits(t.name)) && <h3>Tags</h3>}
          <ul class="choices">
            {(tags.value ?? [])
              .filter((t) => fits(t.name))
              .map((tag) => (
                <li key={tag.name}>
                  <button
                    type="button"
                    aria-current={tag.name === route.at}
                    onClick={() => pick(route.branch, tag.name)}
                  >
                    {tag.name}
                  </button>
                </li>
              ))}
          </ul>
        </section>
        <section aria-label="Commits">
          <h3>Commits of {route.branch}</h3>
          <ul class="choices">
            {(commits.value ?? [])
              .filter((c) => fits(`${c.graph_commit_id} ${c.message ?? ""} ${c.actor_id ?? ""}`))
              .map((commit) => (
                <li key={commit.graph_commit_id}>
                  <button
                    type="button"
                    aria-current={commit.graph_commit_id === route.at}
                    onClick={() => pick(route.branch, commit.graph_commit_id)}
                  >
                    <span class="mono">{shortCommit(commit.graph_commit_id)}</span> {commit.message ?? commit.kind}
                    <span class="muted">
                      {" "}
                      {commit.actor_id ?? ""} {ago(commit.created_at)}
                    </span>
                    {branchOf(commit) !== route.branch && <Badge>{branchOf(commit)}</Badge>}
                  </button>
                </li>
              ))}
          </ul>
        </section>
      </div>
      {here.may("branch_create") && <NewBranch onDone={(name) => pick(name, null)} />}
    </Dialog>
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
