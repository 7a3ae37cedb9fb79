import { Empty } from "../../ui/basics";

export default function ReviewPage() {
  return (
    <div class="page">
      <h1>Review</h1>
      <Empty>Nothing here yet.</Empty>
    </div>
  );
}
