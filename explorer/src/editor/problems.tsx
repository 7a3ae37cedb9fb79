/** What is wrong with a text, as a list: each leads to its place, and some can be put right at once. */
import type { Diagnostic } from "../api";
import { counted } from "../format";
import { Button } from "../ui/basics";
import { Prose } from "../ui/prose";
import type { Place } from ".";

const SHOWN_MAX = 6;

interface Props {
  readonly diagnostics: readonly Diagnostic[];
  readonly onGo: (place: Place) => void;
  readonly onFix: (place: Place, better: string) => void;
}

/** How many there are, in a word. */
export function ProblemCount({ diagnostics, checking }: { diagnostics: readonly Diagnostic[]; checking: boolean }) {
  const errors = diagnostics.filter((d) => d.severity === "error").length;
  const rest = diagnostics.length - errors;
  const text = errors ? counted(errors, "problem") : rest ? counted(rest, "remark") : "No problems";
  return (
    <span class={errors ? "problems problems-bad" : "problems"} role="status">
      {checking ? "" : text}
    </span>
  );
}

export function ProblemList({ diagnostics, onGo, onFix }: Props) {
  if (diagnostics.length === 0) return null;
  return (
    <ol class="problem-list" aria-label="Problems">
      {diagnostics.slice(0, SHOWN_MAX).map((found, i) => (
        <Problem key={i} found={found} onGo={onGo} onFix={onFix} />
      ))}
      {diagnostics.length > SHOWN_MAX && <li class="muted small">and {diagnostics.length - SHOWN_MAX} more</li>}
    </ol>
  );
}

function Problem({ found, onGo, onFix }: { found: Diagnostic } & Pick<Props, "onGo" | "onFix">) {
  const { span, suggestion } = found;
  const place = span ? { from: span.start16, to: span.end16 } : { from: 0, to: 0 };
  return (
    <li class={`problem problem-${found.severity}`}>
      <button type="button" class="problem-go" onClick={() => onGo({ ...place })}>
        {span && (
          <span class="problem-place">
            line {span.line}:{span.column}
          </span>
        )}
        <span>
          <Prose text={found.message} />
          {found.help && (
            <span class="muted">
              {" "}
              <Prose text={found.help} />
            </span>
          )}
        </span>
      </button>
      {suggestion && (
        <Button small onClick={() => onFix(place, suggestion)}>
          Change to {suggestion}
        </Button>
      )}
    </li>
  );
}
