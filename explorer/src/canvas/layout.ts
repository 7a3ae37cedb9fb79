/** Where nodes go: forces, until they rest or the time is over. Pinned nodes stay. */
import forceAtlas2 from "graphology-layout-forceatlas2";
import type { Picture } from "./model";

const BUDGET_MILLISECONDS = 350;
const STEP_ITERATIONS = 20;
const ITERATIONS_MAX = 400;

export function layOut(picture: Picture, budget = BUDGET_MILLISECONDS): void {
  if (picture.order === 0) return;
  const settings = {
    ...forceAtlas2.inferSettings(picture),
    gravity: 1,
    scalingRatio: 12,
    slowDown: 2,
    barnesHutOptimize: false,
  };
  const end = performance.now() + budget;
  for (let done = 0; done < ITERATIONS_MAX && performance.now() < end; done += STEP_ITERATIONS) {
    forceAtlas2.assign(picture, { iterations: STEP_ITERATIONS, settings });
  }
}
