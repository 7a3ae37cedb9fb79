/** Proposals: the list, one of them (`n`), or a branch without one (`source`, `target`). */
import { useHere } from "../../context";
import { useRoute } from "../../router";
import { Empty } from "../../ui/basics";
import "../history/history.css";
import { BranchReview, Crumbs } from "./branch";
import { ProposalList } from "./list";
import { ProposalPage } from "./proposal";
import "./proposals.css";
import "./review.css";

export default function ReviewPage() {
  const here = useHere();
  const { params } = useRoute();
  const number = params["n"];
  if (number !== undefined) {
    if (/^[1-9]\d{0,11}$/.test(number)) return <ProposalPage key={number} number={Number(number)} />;
    return (
      <div class="page">
        <Crumbs />
        <Empty title="Not found">A proposal is named by its number.</Empty>
      </div>
    );
  }
  if (params["source"] === undefined && params["target"] === undefined) return <ProposalList />;
  const target = params["target"] ?? "main";
  const fallback = here.route.branch !== target ? here.route.branch : here.branches.find((name) => name !== target);
  return <BranchReview source={params["source"] ?? fallback} target={target} />;
}
