import { Empty } from "../../ui/basics";

export default function SchemaPage() {
  return (
    <div class="page">
      <h1>Schema</h1>
      <Empty>Nothing here yet.</Empty>
    </div>
  );
}
