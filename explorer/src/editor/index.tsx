/** An editor for queries and schemas. It lives in a shadow root, where its style sheets need no exception from the content security policy. */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  type Completion,
  type CompletionContext,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { type Diagnostic as Mark, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Extension, Prec } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Diagnostic } from "../api";
import { useEvent } from "../hooks";
import type { Offers } from "../lang/complete";
import { parts } from "../ui/prose";
import "./editor.css";
import { look } from "./look";

interface Props {
  readonly label: string;
  readonly draft: Draft;
  readonly language: Extension;
  readonly diagnostics: readonly Diagnostic[];
  readonly readOnly?: boolean;
  readonly onChange: (text: string) => void;
  readonly onRun?: () => void;
  readonly onCursor?: (offset: number) => void;
  readonly offers?: (text: string, offset: number) => Offers | null;
  readonly goTo?: Place; // where the cursor is asked to be
}

/** A stretch of the text; a new object asks anew. */
export interface Place {
  readonly from: number;
  readonly to: number;
}

/** A text that is being edited. What is typed changes only `text`; a new `revision` replaces what the editor shows. */
export interface Draft {
  readonly text: string;
  readonly revision: number;
}

/** A draft, what typing does to it, and how to replace it. */
export function useDraft(initial: string): [Draft, (text: string) => void, (text: string) => void] {
  const [draft, setDraft] = useState<Draft>({ text: initial, revision: 0 });
  const type = useCallback((text: string) => setDraft((old) => ({ ...old, text })), []);
  const replace = useCallback(
    (text: string) => setDraft((old) => (old.text === text ? old : { text, revision: old.revision + 1 })),
    [],
  );
  return [draft, type, replace];
}

const TYPES = {
  keyword: "keyword",
  type: "type",
  edge: "method",
  property: "property",
  variable: "variable",
  function: "function",
} as const;

export function Editor(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const writable = useRef(new Compartment());
  const change = useEvent(props.onChange);
  const run = useEvent(() => props.onRun?.());
  const cursor = useEvent((offset: number) => props.onCursor?.(offset));
  const offers = useEvent((text: string, offset: number) => props.offers?.(text, offset) ?? null);

  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const made = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: props.draft.text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          bracketMatching(),
          closeBrackets(),
          indentOnInput(),
          highlightActiveLine(),
          indentUnit.of("  "),
          EditorView.lineWrapping,
          props.language,
          look,
          EditorView.contentAttributes.of({ "aria-label": props.label, spellcheck: "false" }),
          autocompletion({ override: [(context) => complete(context, offers)], icons: false }),
          Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }])),
          keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
          writable.current.of(EditorState.readOnly.of(props.readOnly ?? false)),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) change(update.state.doc.toString());
            if (update.selectionSet || update.docChanged) cursor(update.state.selection.main.head);
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (!editor || editor.state.doc.toString() === props.draft.text) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.draft.text } });
  }, [props.draft.revision]);
  useEffect(() => {
    view.current?.dispatch({ effects: writable.current.reconfigure(EditorState.readOnly.of(props.readOnly ?? false)) });
  }, [props.readOnly]);
  useEffect(() => {
    const editor = view.current;
    if (editor)
      editor.dispatch(
        setDiagnostics(
          editor.state,
          props.diagnostics.map((d) => toMark(d, editor.state.doc.length)),
        ),
      );
  }, [props.diagnostics]);

  useEffect(() => {
    const editor = view.current;
    if (!editor || !props.goTo) return;
    const end = editor.state.doc.length;
    const selection = { anchor: Math.min(props.goTo.from, end), head: Math.min(props.goTo.to, end) };
    editor.dispatch({ selection, scrollIntoView: true });
    editor.focus();
  }, [props.goTo]);

  return <div class="editor" ref={host} />;
}

function toMark(found: Diagnostic, length: number): Mark {
  const from = Math.min(found.span?.start16 ?? 0, length);
  const to = Math.min(Math.max(found.span?.end16 ?? from, from + 1), length);
  const mark: Mark = {
    from,
    to,
    severity: found.severity,
    source: found.code,
    message: [found.message, found.help].filter(Boolean).join("\n"),
    renderMessage: () => rendered([found.message, found.help].filter(Boolean).join("\n")),
  };
  const better = found.suggestion;
  if (better)
    mark.actions = [
      {
        name: `Change to ${better}`,
        apply: (view, start, end) => view.dispatch({ changes: { from: start, to: end, insert: better } }),
      },
    ];
  return mark;
}

/** What stands between backticks is code, as everywhere else. */
function rendered(message: string): HTMLElement {
  const box = document.createElement("span");
  for (const [i, part] of parts(message).entries()) {
    const piece = i % 2 ? document.createElement("code") : document.createElement("span");
    piece.textContent = part;
    box.append(piece);
  }
  return box;
}

function complete(context: CompletionContext, offers: (text: string, offset: number) => Offers | null) {
  const found = offers(context.state.doc.toString(), context.pos);
  if (!found || (found.from === context.pos && !context.explicit && !afterSign(context))) return null;
  const options = found.options.map((offer): Completion => ({
    label: offer.label,
    type: TYPES[offer.kind],
    detail: offer.detail,
  }));
  return { from: found.from, options, validFor: /^[$@\w]*$/ };
}

function afterSign(context: CompletionContext): boolean {
  return context.matchBefore(/(\.|:\s?|\$)$/) !== null;
}
