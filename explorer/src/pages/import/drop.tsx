/** Where a file is dropped, or chosen by keyboard. */
import { useRef, useState } from "preact/hooks";
import { Button } from "../../ui/basics";

const ENDINGS = ".csv,.tsv,.ndjson,.jsonl,.json,.parquet,.pq,.arrow,.feather";

export function DropZone({ onFile, problem }: { onFile: (file: File) => void; problem: string | undefined }) {
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer?.files[0];
    if (file) onFile(file);
  };
  return (
    <div
      class={over ? "drop drop-over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <p class="drop-title">Drop a file here</p>
      <p class="muted">
        CSV, NDJSON, Parquet or Arrow: rows of one type, or graph records. It is shown first; nothing is written until
        you say so.
      </p>
      <Button kind="primary" onClick={() => input.current?.click()}>
        Choose a file
      </Button>
      <input
        ref={input}
        type="file"
        accept={ENDINGS}
        class="hidden-visually"
        aria-label="File to import"
        tabIndex={-1}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (file) onFile(file);
        }}
      />
      {problem && (
        <p class="field-error" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}
