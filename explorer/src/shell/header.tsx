/** The bar above every page: where we are, and where one can go. */
import { useEffect, useState } from "preact/hooks";
import { useHere } from "../context";
import { shortCommit, visible } from "../format";
import { keyLabel, useShortcut } from "../keys";
import { TITLES } from "../pages";
import { PAGES, go, href, type Page } from "../router";
import { THEMES, applyTheme, theme } from "../theme";
import { Badge, Button } from "../ui/basics";
import { CommandPalette } from "./commands";
import { HelpSheet } from "./help";
import { Logo } from "./logo";
import { PointPicker } from "./picker";

const LETTERS: Record<Page, string> = { home: "o", query: "q", schema: "s", history: "h", review: "r", import: "i" };

export function Header({ signOut }: { signOut?: () => void }) {
  const here = useHere();
  const { route, access } = here;
  const [open, setOpen] = useState<"none" | "picker" | "help" | "commands">("none");
  const close = () => setOpen("none");
  useShortcut("?", "Show this help", "Everywhere", () => setOpen("help"));
  useShortcut("mod+k", "Go to a page, type, branch or query", "Everywhere", () => setOpen("commands"));
  useShortcut("b", "Change branch or point in time", "Everywhere", () => setOpen("picker"));
  useEffect(() => {
    document.title = `${TITLES[route.page]} · ${route.graph} · omnigraph`;
  }, [route.page, route.graph]);
  return (
    <header class="top">
      <a class="brand" href={href({ page: "home", params: {} })} title="Home of this graph">
        <Logo />
        <span>{route.graph}</span>
      </a>
      <Button
        class="point"
        aria-haspopup="dialog"
        onClick={() => setOpen("picker")}
        title="Change branch or point in time (b)"
      >
        <BranchSign />
        <span>{visible(route.branch)}</span>
        {route.at && <span class="mono">@ {shortCommit(route.at)}</span>}
      </Button>
      {route.at && <Badge tone="warn">read-only: the past</Badge>}
      {!route.at && access?.read_only && (
        <Badge tone="warn" title="A policy or the server allows reading only">
          read-only
        </Badge>
      )}
      <nav aria-label="Pages">
        {PAGES.map((page) => (
          <PageLink key={page} page={page} current={route.page} />
        ))}
      </nav>
      <div class="row top-end">
        {here.author && (
          <span class="muted actor" title={access?.actor ? "Signed in as" : "Your commits are by"}>
            {visible(here.author)}
          </span>
        )}
        {signOut && (
          <Button kind="quiet" small onClick={signOut}>
            Sign out
          </Button>
        )}
        <Button
          kind="quiet"
          small
          class="go-to"
          title="Go to a page, type, branch or query"
          onClick={() => setOpen("commands")}
        >
          Go to <kbd aria-hidden="true">{keyLabel("mod+k").replaceAll(" ", "")}</kbd>
        </Button>
        <ThemeButton />
        <Button
          kind="quiet"
          small
          aria-label="Keyboard shortcuts"
          title="Keyboard shortcuts (?)"
          onClick={() => setOpen("help")}
        >
          ?
        </Button>
      </div>
      {open === "picker" && <PointPicker onClose={close} />}
      {open === "help" && <HelpSheet onClose={close} />}
      {open === "commands" && <CommandPalette onClose={close} />}
    </header>
  );
}

function PageLink({ page, current }: { page: Page; current: Page }) {
  useShortcut(`g ${LETTERS[page]}`, `Go to ${TITLES[page]}`, "Pages", () => go({ page }));
  return (
    <a href={href({ page })} aria-current={page === current ? "page" : undefined}>
      {TITLES[page]}
    </a>
  );
}

function ThemeButton() {
  const [now, setNow] = useState(theme);
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length] ?? "system";
  const change = () => {
    applyTheme(next);
    setNow(next);
  };
  useShortcut("t", "Change between light, dark and system colours", "Everywhere", change);
  const sign = { system: "◐", light: "☀", dark: "☾" }[now];
  return (
    <Button
      kind="quiet"
      small
      aria-label={`Colours: ${now}. Change to ${next}`}
      title={`Colours: ${now} (t)`}
      onClick={change}
    >
      {sign}
    </Button>
  );
}

function BranchSign() {
  return (
    <svg
      viewBox="0 0 16 16"
      width="14"
      height="14"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
    >
      <circle cx="4.5" cy="3.5" r="1.8" />
      <circle cx="4.5" cy="12.5" r="1.8" />
      <circle cx="11.5" cy="5.5" r="1.8" />
      <path d="M4.5 5.3v5.4M11.5 7.3c0 2.6-3.6 2.4-6.4 3.6" />
    </svg>
  );
}
