/** A branch without a proposal: what it brings, what both sides changed, and merging it where that is allowed. */
import { useState } from "preact/hooks";
import type { ApiError, MergeOutput } from "../../api";
import { useHere } from "../../context";
import { visible } from "../../format";
import { asApiError, useAsync } from "../../hooks";
import { href, setParams } from "../../router";
import { useReviews, isActive, type Proposal } from "../../reviews";
import { AuthorField } from "../../shell/author";
import { Badge, Button, Empty, Failure, Field, Panel } from "../../ui/basics";
import { toast } from "../../ui/toast";
import { Compare } from "../history/compare";
import { documentOf } from "./decisions";
import { AfterMerge, Conflicts, MergeCounts, type Merging, useMerging, Verdict } from "./merging";
import { ProposeDialog } from "./propose";

export function BranchReview({ source, target }: { source: string | undefined; target: string }) {
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <Crumbs />
          <h1>Review a branch</h1>
        </div>
        <div class="row">
          <BranchChoice label="Merge" value={source ?? ""} onChange={(name) => setParams({ source: name, target })} />
          <span aria-hidden="true">→</span>
          <BranchChoice
            label="into"
            value={target}
            onChange={(name) => setParams({ target: name, ...(source && { source }) })}
          />
        </div>
      </div>
      {!source && <Empty>There is only one branch. Make another, change something on it, and review it here.</Empty>}
      {source && source === target && <Empty>A branch cannot be merged into itself: choose another.</Empty>}
      {source && source !== target && <Reviewed key={`${source}\0${target}`} source={source} target={target} />}
    </div>
  );
}

export function Crumbs({ here }: { here?: string }) {
  return (
    <nav class="crumbs" aria-label="Where this is">
      <a href={href({ page: "review", params: {} })}>Review</a>
      {here && (
        <>
          <span aria-hidden="true"> / </span>
          <span>{here}</span>
        </>
      )}
    </nav>
  );
}

function BranchChoice({ label, value, onChange }: { label: string; value: string; onChange: (name: string) => void }) {
  const { branches } = useHere();
  const names = branches.includes(value) || !value ? branches : [...branches, value];
  return (
    <label class="inline-label">
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function Reviewed({ source, target }: { source: string; target: string }) {
  const here = useHere();
  const { client } = here;
  const reviews = useReviews();
  const [merged, setMerged] = useState<MergeOutput>();
  const [proposing, setProposing] = useState(false);
  const access = useAsync(() => client.access(target), [client, target]);
  const known = useAsync(() => reviews.proposals({ target }), [reviews, target]);
  const offered = known.value?.find((one) => one.source === source && isActive(one));
  const mayMerge = access.value?.actions["branch_merge"] === true;
  const mayPropose = access.value?.actions["propose"] === true && known.value !== undefined && !offered;
  const merging = useMerging(
    (decided) => client.merge({ source, target, dry_run: true, ...decided }),
    mayMerge && !merged,
    [client, source, target, merged],
  );
  if (merged) return <Merged merged={merged} source={source} target={target} />;
  const propose = mayPropose && (
    <Button kind={mayMerge ? "plain" : "primary"} onClick={() => setProposing(true)}>
      Propose…
    </Button>
  );
  return (
    <>
      <Panel label="What the merge will do" class="verdict">
        {offered && <Offered proposal={offered} />}
        <div class="panel-body">
          {access.value && !mayMerge ? (
            <OnlyLooking source={source} target={target} propose={propose} />
          ) : (
            <Verdict merging={merging} target={target} error={access.error} />
          )}
        </div>
        {mayMerge && (
          <MergeForm
            source={source}
            target={target}
            merging={merging}
            propose={propose}
            onMerged={(done) => {
              setMerged(done);
              here.refresh();
            }}
          />
        )}
      </Panel>
      {merging.known.length > 0 && <Conflicts merging={merging} source={source} target={target} />}
      <Compare
        a={target}
        b={source}
        fromMergeBase
        title={`What ${source} brings to ${target}`}
        nothing={`${target} has everything ${source} did.`}
      />
      <p class="muted small">
        Only what {source} did since the two parted is shown; what {target} did meanwhile stays as it is.{" "}
        <a href={href({ page: "history", params: { a: target, b: source } })}>Compare the two states instead</a>
      </p>
      {proposing && <ProposeDialog source={source} target={target} onClose={() => setProposing(false)} />}
    </>
  );
}

function Offered({ proposal }: { proposal: Proposal }) {
  return (
    <div class="panel-body offered">
      <Badge tone="accent">proposed</Badge>
      <a href={href({ page: "review", params: { n: String(proposal.number) } })}>
        #{proposal.number} {visible(proposal.title)}
      </a>
    </div>
  );
}

/** Whoever may not merge sees what the branch did all the same, and nothing that would be refused. */
function OnlyLooking(props: { source: string; target: string; propose: preact.ComponentChildren }) {
  const { source, target, propose } = props;
  return (
    <div class="verdict-line" role="status">
      <Badge>look only</Badge>
      <span>
        You may see what {source} brings, but not merge it into <strong>{target}</strong> directly.{" "}
        {propose ? "Propose it, and others can review it." : "Somebody with the right to merge can open this address."}
      </span>
      {propose}
    </div>
  );
}

interface FormProps {
  readonly source: string;
  readonly target: string;
  readonly merging: Merging;
  readonly propose: preact.ComponentChildren;
  readonly onMerged: (done: MergeOutput) => void;
}

function MergeForm({ source, target, merging, propose, onMerged }: FormProps) {
  const { client } = useHere();
  const [message, setMessage] = useState(`Merge ${source} into ${target}`);
  const [remove, setRemove] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const access = useAsync(() => client.access(source), [client, source]);
  const mayRemove = access.value?.actions["branch_delete"] === true && source !== "main";
  const merge = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const done = await client.merge({
        source,
        target,
        message,
        ...(remove && { delete_branch: true }),
        ...documentOf(merging.decisions),
      });
      toast(`Merged ${source} into ${target}`);
      onMerged(done);
    } catch (failure) {
      setError(asApiError(failure));
      setBusy(false);
    }
  };
  return (
    <form
      class="panel-body merge-form"
      onSubmit={(event) => {
        event.preventDefault();
        void merge();
      }}
    >
      <AuthorField />
      <Field label="Message">
        {(id) => <input id={id} value={message} onInput={(e) => setMessage(e.currentTarget.value)} />}
      </Field>
      {mayRemove && (
        <label class="check">
          <input type="checkbox" checked={remove} onChange={(e) => setRemove(e.currentTarget.checked)} /> Delete{" "}
          {source} afterwards
        </label>
      )}
      {propose}
      <Button type="submit" kind="primary" disabled={!merging.ready || busy}>
        {busy ? "Merging…" : `Merge into ${target}`}
      </Button>
      {error && <Failure error={error} />}
    </form>
  );
}

function Merged({ merged, source, target }: { merged: MergeOutput; source: string; target: string }) {
  return (
    <Panel label="Merged">
      <div class="panel-body stack">
        <div class="verdict-line" role="status">
          <Badge tone="good">merged</Badge>
          <span>
            {source} is in {target} now.
          </span>
        </div>
        <MergeCounts merged={merged} />
        <AfterMerge commit={merged.commit?.graph_commit_id} target={target} />
      </div>
    </Panel>
  );
}
