import { EditorView } from "@codemirror/view";

/** The editor in the colours of the page; custom properties reach into the shadow root. */
export const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "transparent", fontSize: "13.5px", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--text)", padding: "10px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--text-faint)", border: "none", paddingLeft: "6px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 6%, transparent)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 24%, transparent) !important",
  },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft) !important", outline: "none" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "8px",
    overflow: "hidden",
    boxShadow: "var(--shadow-high)",
    fontFamily: "var(--sans)",
  },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "13px", maxHeight: "240px" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 10px !important" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent-soft) !important",
    color: "var(--text) !important",
  },
  ".cm-completionDetail": { color: "var(--text-muted)", fontStyle: "normal", marginLeft: "12px" },
  ".cm-diagnostic": { padding: "8px 12px", whiteSpace: "pre-wrap", maxWidth: "520px" },
  ".cm-diagnostic-error": { borderLeft: "4px solid var(--bad)" },
  ".cm-diagnostic-warning": { borderLeft: "4px solid var(--warn)" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-lintRange": { backgroundImage: "none" },
  ".cm-lintRange-error": { textDecoration: "underline wavy var(--bad) 1.5px", textUnderlineOffset: "4px" },
  ".cm-lintRange-warning": { textDecoration: "underline wavy var(--warn) 1.5px", textUnderlineOffset: "4px" },
});
