/** To the clipboard, also where a page has no `navigator.clipboard`: without TLS, or where a policy takes it away. */
import { toast } from "./ui/toast";

export async function copy(text: string, said = "Copied"): Promise<void> {
  if (await copied(text)) toast(said);
  else toast("The browser does not let us reach the clipboard", "bad");
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text);
  }
}

function copiedBySelection(text: string): boolean {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "hidden-visually";
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } finally {
    area.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}

/** Hand something over as a file. */
export function saveAs(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href));
}
