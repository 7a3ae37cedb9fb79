/** The colour of a type beside its name: the same in pictures, tables, schema and details. */
import { useMemo } from "preact/hooks";
import { useHere } from "../context";
import { lookOf, typeColour } from "./look";

export function useTypeColour(): (type: string) => string {
  const { catalog, styles } = useHere();
  const look = useMemo(() => lookOf(catalog, styles), [catalog, styles]);
  return (type) => typeColour(look, type);
}

export function TypeDot({ type }: { type: string }) {
  const colour = useTypeColour();
  return <span class="dot" title={type} style={{ background: colour(type) }} />;
}

export function TypeChip({ type }: { type: string }) {
  return (
    <span class="type-chip">
      <TypeDot type={type} />
      {type}
    </span>
  );
}
