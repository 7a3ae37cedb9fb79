/** The whole result as a file, also what is not shown: the query is asked again, of the commit it ran on. */
import { useState } from "preact/hooks";
import type { ReadOutput } from "../../api";
import { saveAs } from "../../clipboard";
import { useHere } from "../../context";
import { bytes, counted } from "../../format";
import { asApiError } from "../../hooks";
import { Menu } from "../../ui/menu";
import { toast } from "../../ui/toast";
import type { Outcome } from "./run";

const FORMS = [
  { name: "CSV", ending: "csv", media: "text/csv" },
  { name: "JSON", ending: "json", media: "application/json" },
  { name: "Parquet", ending: "parquet", media: "application/vnd.apache.parquet" },
] as const;
type Form = (typeof FORMS)[number];

export function DownloadMenu({ outcome }: { outcome: Outcome }) {
  const { client, route } = useHere();
  const [busy, setBusy] = useState(false);
  const { output } = outcome;
  const download = async (form: Form) => {
    setBusy(true);
    try {
      const content =
        form.ending === "json" && output.rows.length === output.row_count
          ? asJson(output)
          : await client.file(form.media, outcome.point, outcome.asked);
      const file = form.ending === "json" ? await rowsOf(content) : content;
      saveAs(file, `${route.graph}-${output.query_name}.${form.ending}`);
      toast(`${counted(output.row_count, "row")}, ${bytes(file.size)}`);
    } catch (error) {
      toast(asApiError(error).message, "bad");
    } finally {
      setBusy(false);
    }
  };
  return (
    <Menu
      label={busy ? "Preparing…" : "Download"}
      items={FORMS.map((form) => ({
        label: form.name,
        hint: counted(output.row_count, "row"),
        disabled: busy,
        run: () => void download(form),
      }))}
    />
  );
}

function asJson(output: Pick<ReadOutput, "rows">): Blob {
  return new Blob([JSON.stringify(output, null, 2)], { type: "application/json" });
}

/** Of an answer only its rows. */
async function rowsOf(content: Blob): Promise<Blob> {
  const { rows } = JSON.parse(await content.text()) as ReadOutput;
  return new Blob([JSON.stringify(rows, null, 2)], { type: "application/json" });
}
