/** The bar above every page: where we are, and where one can go. */
import { useEffect, useState } from "preact/hooks";
import { useHere } from "../context";
import { shortCommit } from "../format";
import { useShortcut } from "../keys";
import { TITLES } from "../pages";
import { PAGES, go, href, type Page } from "../router";
import { THEMES, applyTheme, theme } from "../theme";
import { Badge, Button } from "../ui/basics";
import { HelpSheet } from "./help";
import { Logo } from "./logo";
import { PointPicker } from "./picker";

const LETTERS: Record<Page, string> = { query: "q", schema: "s", history: "h", review: "r", import: "i" };

export function Header({ signOut }: { signOut?: () => void }) {
  const here = useHere();
  const { route, access } = here;
  const [open, setOpen] = useState<"none" | "picker" | "help">("none");
  const close = () => setOpen("none");
  useShortcut("?", "Show this help", "Everywhere", () => setOpen("help"));
  useShortcut("b", "Change branch or point in time", "Everywhere", () => setOpen("picker"));
  useEffect(() => {
    document.title = `${TITLES[route.page]} · ${route.graph} · omnigraph`;
  }, [route.page, route.graph]);
  return (
    <header class="top">
      <a class="brand" href="#/" title="All graphs">
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
        <span>{route.branch}</span>
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
        {access?.actor && (
          <span class="muted actor" title="Signed in as">
            {access.actor}
          </span>
        )}
        {signOut && (
          <Button kind="quiet" small onClick={signOut}>
            Sign out
          </Button>
        )}
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
