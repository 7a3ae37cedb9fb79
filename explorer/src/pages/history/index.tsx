import { Empty } from "../../ui/basics";

export default function HistoryPage() {
  return (
    <div class="page">
      <h1>History</h1>
      <Empty>Nothing here yet.</Empty>
    </div>
  );
}
