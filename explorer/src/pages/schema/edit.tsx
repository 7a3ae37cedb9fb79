/** The text of the schema: checked while it is typed, planned before anything happens, then applied as one commit. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ApiError, SchemaPlan, SchemaStep } from "../../api";
import { useHere } from "../../context";
import { Editor, useDraft } from "../../editor";
import { schemaLanguage } from "../../editor/languages";
import { counted } from "../../format";
import { asApiError, useAsync, useRested } from "../../hooks";
import { offersForSchema } from "../../lang/complete";
import { setParams } from "../../router";
import { Button, Dialog, Failure, Field, Notice, Panel, Progress } from "../../ui/basics";
import { toast } from "../../ui/toast";

const REST_MILLISECONDS = 400;

export function SchemaEditor() {
  const here = useHere();
  const { client, point } = here;
  const source = useAsync(() => client.schema(point), [client, point]);
  const [draft, type, replace] = useDraft("");
  const { text } = draft;
  const [applying, setApplying] = useState(false);
  useEffect(() => {
    if (source.value !== undefined) replace(source.value);
  }, [source.value]);
  const rested = useRested(text, REST_MILLISECONDS);
  const checked = useAsync((signal) => client.checkSchema(rested, signal), [client, rested]);
  const diagnostics = useMemo(
    () => (rested === text ? (checked.value?.diagnostics ?? []) : []),
    [checked.value, rested, text],
  );
  const sound = checked.value !== undefined && rested === text && !diagnostics.some((d) => d.severity === "error");
  const changed = source.value !== undefined && text !== source.value;
  const plan = useAsync(
    async () => (sound && changed && text ? client.planSchema(point.branch, text) : null),
    [client, point, sound, changed, text],
  );
  const writable = here.may("schema_apply");

  if (source.error) return <Failure error={source.error} retry={source.reload} />;
  if (source.value === undefined) return <Progress label="Reading the schema" />;
  return (
    <div class={changed ? "schema-edit with-plan" : "schema-edit"}>
      <Panel
        title="Text"
        class="editor-panel"
        actions={
          changed && (
            <Button small onClick={() => replace(source.value ?? "")}>
              Take back
            </Button>
          )
        }
      >
        <Editor
          label="Schema text"
          draft={draft}
          language={schemaLanguage}
          diagnostics={diagnostics}
          readOnly={!writable}
          onChange={type}
          offers={offersForSchema}
        />
        <footer class="run-bar">
          {!writable && (
            <span class="muted">
              {here.route.at ? "The past cannot be changed." : "You may not change the schema of this branch."}
            </span>
          )}
          <span class={diagnostics.length ? "problems problems-bad" : "problems"} role="status">
            {rested !== text || checked.loading
              ? ""
              : diagnostics.length
                ? counted(diagnostics.length, "problem")
                : "No problems"}
          </span>
        </footer>
      </Panel>
      {changed && (
        <Panel title={`Plan for ${point.branch}`}>
          <div class="panel-body stack">
            {!sound && <p class="muted">The plan appears once the text has no problems.</p>}
            {plan.error && <Failure error={plan.error} />}
            {sound && plan.loading && <Progress label="Planning" />}
            {sound && plan.value && <PlanSteps plan={plan.value} />}
            {sound && plan.value && plan.value.steps.length > 0 && (
              <div class="row">
                <Button kind="primary" disabled={!plan.value.supported || !writable} onClick={() => setApplying(true)}>
                  Apply…
                </Button>
                <span class="muted">Nothing was changed yet.</span>
              </div>
            )}
          </div>
        </Panel>
      )}
      {applying && plan.value && <Apply text={text} plan={plan.value} onClose={() => setApplying(false)} />}
    </div>
  );
}

const SIGNS: Record<string, string> = { add: "+", drop: "−", unsupported: "✕" };

function PlanSteps({ plan }: { plan: SchemaPlan }) {
  if (plan.steps.length === 0) return <p class="muted">Nothing changes but the text.</p>;
  return (
    <>
      {!plan.supported && (
        <Notice tone="bad">
          <strong>This plan cannot be applied.</strong>
        </Notice>
      )}
      <ul class="steps">
        {plan.steps.map((step, i) => {
          const verb = step.kind.split("_")[0] ?? "";
          return (
            <li key={i}>
              <span
                class={`sign ${verb === "add" ? "sign-insert" : verb === "drop" || verb === "unsupported" ? "sign-delete" : "sign-update"}`}
                aria-hidden="true"
              >
                {SIGNS[verb] ?? "~"}
              </span>
              <span>
                <strong>{step.kind.replaceAll("_", " ")}</strong> {describe(step)}
              </span>
            </li>
          );
        })}
      </ul>
    </>
  );
}

/** What a step is about, in words. */
function describe(step: SchemaStep): string {
  const owner = text(step["type_name"]) || text(step["name"]) || text(step["entity"]);
  const member = text(step["property_name"]);
  const place = member ? `${owner}.${member}` : owner;
  const change = step["from"] !== undefined ? `${text(step["from"])} → ${text(step["to"])}` : "";
  const more = [step["property_type"], step["reason"]].map(text);
  const rule = step["constraint"] as { kind: string; fields: string[]; pattern?: string } | undefined;
  const added = step["added_values"] as string[] | undefined;
  return [
    place,
    change,
    ...more,
    rule ? `@${rule.kind}(${[...rule.fields, ...(rule.pattern ? [rule.pattern] : [])].join(", ")})` : "",
    added?.join(", ") ?? "",
  ]
    .filter(Boolean)
    .join(" ");
}

function text(value: unknown): string {
  return value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
}

function drops(plan: SchemaPlan): boolean {
  return plan.steps.some((step) => step.kind === "drop_type" || step.kind === "drop_property");
}

function Apply({ text, plan, onClose }: { text: string; plan: SchemaPlan; onClose: () => void }) {
  const here = useHere();
  const { branch } = here.route;
  const [message, setMessage] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const apply = async () => {
    setBusy(true);
    try {
      await here.client.applySchema(branch, text, message.trim() || undefined);
      toast(`The schema of ${branch} has changed: ${counted(plan.steps.length, "step")}`);
      here.refresh();
      setParams({ edit: null });
      onClose();
    } catch (failure) {
      setError(asApiError(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Apply to ${branch}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind={drops(plan) ? "danger" : "primary"} disabled={busy} onClick={() => void apply()}>
            Apply {counted(plan.steps.length, "step")}
          </Button>
        </>
      }
    >
      <PlanSteps plan={plan} />
      {drops(plan) && (
        <Notice tone="warn">Dropped values leave the branch. History keeps them until it is cleaned up.</Notice>
      )}
      <Field label="Message" hint="It is kept in the commit.">
        {(id, describedBy) => (
          <input
            id={id}
            value={message}
            aria-describedby={describedBy}
            onInput={(event) => setMessage(event.currentTarget.value)}
          />
        )}
      </Field>
      {error && <Failure error={error} />}
    </Dialog>
  );
}
