/** The pages, each loaded when it is first shown. */
import type { ComponentType } from "preact";
import { useAsync } from "../hooks";
import type { Page } from "../router";
import { Failure, Progress } from "../ui/basics";

const LOADERS: Record<Page, () => Promise<{ default: ComponentType }>> = {
  home: () => import("./home"),
  query: () => import("./query"),
  schema: () => import("./schema"),
  history: () => import("./history"),
  review: () => import("./review"),
  import: () => import("./import"),
};

export const TITLES: Record<Page, string> = {
  home: "Home",
  query: "Query",
  schema: "Schema",
  history: "History",
  review: "Review",
  import: "Import",
};

export function PageBody({ page }: { page: Page }) {
  const loaded = useAsync(async () => ({ page, Body: (await LOADERS[page]()).default }), [page]);
  if (loaded.error)
    return (
      <div class="page">
        <Failure error={loaded.error} retry={loaded.reload} />
      </div>
    );
  if (!loaded.value || loaded.value.page !== page)
    return (
      <div class="page">
        <Progress label="Loading" />
      </div>
    );
  const { Body } = loaded.value;
  return <Body />;
}
