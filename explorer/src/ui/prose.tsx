/** Sentences of the server: what stands between backticks is code. */
import { visible } from "../format";

export function Prose({ text }: { text: string }) {
  return <>{parts(text).map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}</>;
}

/** Plain text and code in turn. */
export function parts(text: string): string[] {
  const found = visible(text).split("`");
  return found.length % 2 ? found : [visible(text)];
}
