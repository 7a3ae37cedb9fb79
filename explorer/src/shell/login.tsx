import { useState } from "preact/hooks";
import { Button, Field } from "../ui/basics";
import { Logo } from "./logo";

export function Login({ failed, onToken }: { failed: boolean; onToken: (token: string) => void }) {
  const [token, setToken] = useState("");
  return (
    <main class="centred">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim()) onToken(token.trim());
        }}
      >
        <Logo />
        <h1>Sign in</h1>
        <p class="muted">
          This server asks for a token. It is kept in this tab only, and forgotten when the tab is closed.
        </p>
        <Field label="Token" error={failed ? "The server does not accept this token." : undefined}>
          {(id, describedBy) => (
            <input
              id={id}
              type="password"
              autocomplete="off"
              spellcheck={false}
              autofocus
              value={token}
              aria-describedby={describedBy}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
          )}
        </Field>
        <Button kind="primary" type="submit" disabled={!token.trim()}>
          Sign in
        </Button>
      </form>
    </main>
  );
}
