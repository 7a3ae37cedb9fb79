/** Files on their way to the server, with how far they are. */
import { ApiError, type GraphClient, type LoadOutput, type Row } from "../../api";
import { savedToken } from "../../session";
import type { Format } from "./mapping";

export interface Preview {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly Row[];
  readonly graph_records: boolean; // each says itself what it is
}

export interface Target {
  readonly type?: string; // none: graph records
  readonly format: Format;
  readonly columns?: string;
  readonly branch: string;
  readonly from?: string;
  readonly mode: string;
  readonly message?: string;
  readonly check?: boolean;
}

const PREVIEW_BYTES = 1 << 20;

/** The first rows of a file; of text only the first part is sent. */
export async function preview(client: GraphClient, file: File, format: Format, branch: string): Promise<Preview> {
  const whole = format === "parquet" || format === "arrow" || file.size <= PREVIEW_BYTES;
  const part = whole ? file : await wholeLines(file.slice(0, PREVIEW_BYTES));
  return client.call("POST", "/import/preview", {
    query: { format, branch },
    raw: part,
    headers: { "Content-Type": "application/octet-stream" },
  });
}

async function wholeLines(part: Blob): Promise<Blob> {
  const bytes = new Uint8Array(await part.arrayBuffer());
  const end = bytes.lastIndexOf(10);
  return new Blob([bytes.slice(0, end < 0 ? bytes.length : end + 1)]);
}

/** Send a file; `progress` is told the share that was sent, from 0 to 1. */
export function send(
  client: GraphClient,
  file: File,
  target: Target,
  progress: (share: number) => void,
  signal: AbortSignal,
): Promise<LoadOutput> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(target))
    if (value !== undefined && value !== "") query.set(name, String(value));
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/graphs/${encodeURIComponent(client.id)}/import?${query}`);
    request.responseType = "json";
    request.setRequestHeader("Content-Type", "application/octet-stream");
    const token = savedToken();
    if (token) request.setRequestHeader("Authorization", `Bearer ${token}`);
    request.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    request.upload.onload = () => progress(1);
    request.onload = () => (request.status < 300 ? resolve(request.response as LoadOutput) : reject(failure(request)));
    request.onerror = () =>
      reject(
        new ApiError(
          "the server does not answer",
          0,
          "network",
          "unavailable",
          "Check that it still runs, then try again.",
        ),
      );
    request.onabort = () => reject(new ApiError("stopped", 0, "stopped", "invalid", "Nothing was loaded."));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

function failure(request: XMLHttpRequest): ApiError {
  const body = (request.response ?? {}) as Record<string, unknown>;
  const text = (name: string) => (typeof body[name] === "string" ? (body[name] as string) : "");
  const message = text("error") || `the server answered ${request.status}`;
  return new ApiError(
    message,
    request.status,
    text("error_code"),
    text("kind"),
    text("help"),
    null,
    (body["details"] as Record<string, unknown> | undefined) ?? {},
    body,
  );
}

export interface Problem {
  readonly line: number | null;
  readonly id: string | null;
  readonly property: string | null;
  readonly message: string;
}

/** What is wrong with the rows of a file, each with its line. */
export function problemsOf(error: ApiError | undefined): Problem[] {
  const found = error?.details["violations"];
  return Array.isArray(found) ? (found as Problem[]) : [];
}
