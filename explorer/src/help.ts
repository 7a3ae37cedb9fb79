/** Help for those who read it here: what the server says is written for programs, too. */
import type { ApiError } from "./api";

const HERE: Record<string, string> = {
  branch_not_found: "Choose another branch with b, or in the bar above.",
  commit_not_found: "It may have been cleaned up. Choose another point in time with b.",
  commit_pruned: "Cleanup took it. Choose a newer point in time with b, or keep such points with a tag.",
  input_invalid: "Fix the lines listed below, then choose the file again.",
  query_kind_mismatch:
    "The text begins with a mutation: run it with the button, which asks before it changes anything.",
  policy_denied: "Ask the owner of this graph's policy, or work on a branch of your own.",
  unauthenticated: "Sign in again with a token that counts.",
  merge_conflicts: "Both sides changed the same. Decide each conflict in Review.",
};

/** The help of a failure, in the words of the explorer where it has some. */
export function helpHere(error: ApiError): string {
  if (error.code === "limit_exceeded" && error.details["limit"] === "max_rows")
    return "Add a limit, ask for fewer columns or count instead.";
  return HERE[error.code] ?? error.help;
}
