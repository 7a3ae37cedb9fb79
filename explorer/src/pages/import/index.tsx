import { Empty } from "../../ui/basics";

export default function ImportPage() {
  return (
    <div class="page">
      <h1>Import</h1>
      <Empty>Nothing here yet.</Empty>
    </div>
  );
}
