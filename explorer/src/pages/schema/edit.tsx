/** The text of the schema: checked while it is typed, planned before anything happens, then applied as one commit. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ApiError, Diagnostic, SchemaPlan, SchemaStep } from "../../api";
import { useHere } from "../../context";
import { type Draft, Editor, type Place, useDraft } from "../../editor";
import { schemaLanguage } from "../../editor/languages";
import { ProblemCount, ProblemList } from "../../editor/problems";
import { counted } from "../../format";
import { asApiError, type Async, readStored, useAsync, useRested, writeStored } from "../../hooks";
import { offersForSchema } from "../../lang/complete";
import { setParams } from "../../router";
import { Button, Dialog, Failure, Field, Notice, Panel, Progress } from "../../ui/basics";
import { AuthorField } from "../../shell/author";
import { toast } from "../../ui/toast";

const REST_MILLISECONDS = 400;

export function SchemaEditor() {
  const { client, point, route } = useHere();
  const source = useAsync(() => client.schema(point), [client, point]);
  const [applying, setApplying] = useState(false);
  const [draft, type, replace] = useDraft("");
  const { text } = draft;
  const [kept, setKept] = useState(false);
  const key = `draft.schema.${route.graph}.${route.branch}`;
  useEffect(() => {
    if (source.value === undefined) return;
    const draft = point.at ? "" : readStored(key, "");
    setKept(draft !== "" && draft !== source.value);
    replace(draft || source.value);
  }, [source.value]);
  useEffect(() => {
    if (source.value === undefined || point.at || text === "") return;
    if (text === source.value) setKept(false);
    writeStored(key, text === source.value ? "" : text);
  }, [text, source.value]);
  const check = useCheck(text);
  const changed = source.value !== undefined && text !== source.value;
  const plan = useAsync(
    async () => (check.sound && changed ? client.planSchema(point.branch, text) : null),
    [client, point, check.sound, changed, text],
  );
  if (source.error) return <Failure error={source.error} retry={source.reload} />;
  if (source.value === undefined) return <Progress label="Reading the schema" />;
  return (
    <div class={changed ? "schema-edit with-plan" : "schema-edit"}>
      <TextPanel
        draft={draft}
        check={check}
        kept={kept}
        onChange={type}
        onReplace={replace}
        onBack={changed ? () => replace(source.value ?? "") : null}
      />
      {changed && <PlanPanel plan={plan} sound={check.sound} onApply={() => setApplying(true)} />}
      {applying && plan.value && <Apply text={text} plan={plan.value} onClose={() => setApplying(false)} />}
    </div>
  );
}

interface Check {
  readonly checking: boolean;
  readonly sound: boolean; // checked, and without errors
  readonly diagnostics: readonly Diagnostic[];
}

/** What the compiler says about a schema, once nobody types any more. */
function useCheck(text: string): Check {
  const { client } = useHere();
  const rested = useRested(text, REST_MILLISECONDS);
  const checked = useAsync((signal) => client.checkSchema(rested, signal), [client, rested]);
  const checking = checked.loading || checked.value === undefined || rested !== text;
  const diagnostics = useMemo(
    () => (rested === text ? (checked.value?.diagnostics ?? []) : []),
    [checked.value, rested, text],
  );
  return { checking, diagnostics, sound: !checking && !diagnostics.some((d) => d.severity === "error") };
}

interface TextProps {
  readonly draft: Draft;
  readonly check: Check;
  readonly kept: boolean; // it was typed in an earlier visit
  readonly onChange: (text: string) => void;
  readonly onReplace: (text: string) => void;
  readonly onBack: (() => void) | null; // to the text in force
}

function TextPanel({ draft, check, kept, onChange, onReplace, onBack }: TextProps) {
  const { may, route } = useHere();
  const writable = may("schema_apply");
  const [place, setPlace] = useState<Place>();
  const back = onBack && (
    <Button small onClick={onBack}>
      Take back
    </Button>
  );
  return (
    <Panel title="Text" class="editor-panel" actions={back}>
      {kept && <p class="muted draft-note">This is your draft, as you left it. Nothing of it is in force yet.</p>}
      <Editor
        label="Schema text"
        draft={draft}
        language={schemaLanguage}
        diagnostics={check.diagnostics}
        readOnly={!writable}
        onChange={onChange}
        offers={offersForSchema}
        goTo={place}
      />
      <footer class="run-bar">
        {!writable && (
          <span class="muted">
            {route.at ? "The past cannot be changed." : "You may not change the schema of this branch."}
          </span>
        )}
        <ProblemCount diagnostics={check.diagnostics} checking={check.checking} />
      </footer>
      <ProblemList
        diagnostics={check.diagnostics}
        onGo={setPlace}
        onFix={({ from, to }, better) => onReplace(draft.text.slice(0, from) + better + draft.text.slice(to))}
      />
    </Panel>
  );
}

function PlanPanel({ plan, sound, onApply }: { plan: Async<SchemaPlan | null>; sound: boolean; onApply: () => void }) {
  const { may, route } = useHere();
  const found = sound ? plan.value : null;
  return (
    <Panel title={`Plan for ${route.branch}`}>
      <div class="panel-body stack">
        {!sound && <p class="muted">The plan appears once the text has no problems.</p>}
        {plan.error && <Failure error={plan.error} />}
        {sound && plan.loading && <Progress label="Planning" />}
        {found && <PlanSteps plan={found} />}
        {found && found.steps.length > 0 && (
          <div class="row">
            <Button kind="primary" disabled={!found.supported || !may("schema_apply")} onClick={onApply}>
              Apply…
            </Button>
            <span class="muted">Nothing was changed yet.</span>
          </div>
        )}
      </div>
    </Panel>
  );
}

const SIGNS: Record<string, string> = { add: "+", drop: "−", unsupported: "✕" };
const SIGN_CLASSES: Record<string, string> = { add: "sign-insert", drop: "sign-delete", unsupported: "sign-delete" };

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
              <span class={`sign ${SIGN_CLASSES[verb] ?? "sign-update"}`} aria-hidden="true">
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
      writeStored(`draft.schema.${here.route.graph}.${branch}`, "");
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
      <AuthorField />
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
