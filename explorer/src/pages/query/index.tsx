import { Empty } from "../../ui/basics";

export default function QueryPage() {
  return (
    <div class="page">
      <h1>Query</h1>
      <Empty>Nothing here yet.</Empty>
    </div>
  );
}
