/** What the colours mean. Where they mean types, each is a button: colour, caption and size of a type, kept for this graph. */
import { useHere } from "../context";
import { count } from "../format";
import { Menu } from "../ui/menu";
import { type Legend, PALETTE, type TypeStyle } from "./look";
import type { Scene } from "./model";

const SHOWN_MAX = 12;
const SIZES = [
  { name: "Small", value: 0.7 },
  { name: "Normal", value: 1 },
  { name: "Large", value: 1.6 },
] as const;

export function TypeLegend({ legend, scene, byType }: { legend: readonly Legend[]; scene: Scene; byType: boolean }) {
  return (
    <ul class="legend" aria-label="Colours">
      {legend.slice(0, SHOWN_MAX).map((one) => (
        <li key={one.text}>{byType ? <TypeMenu one={one} scene={scene} /> : <Entry one={one} />}</li>
      ))}
      {legend.length > SHOWN_MAX && <li class="muted">and {legend.length - SHOWN_MAX} more</li>}
    </ul>
  );
}

function Entry({ one }: { one: Legend }) {
  return (
    <>
      <span class="dot" style={{ background: one.colour }} />
      <span class="legend-text">{one.text}</span> <span class="faint">{count(one.count)}</span>
    </>
  );
}

function TypeMenu({ one, scene }: { one: Legend; scene: Scene }) {
  const { styles, setStyle } = useHere();
  const type = one.text;
  const style = styles[type] ?? {};
  const properties = [
    ...new Set(scene.nodes.filter((node) => node.type === type).flatMap((node) => Object.keys(node.properties))),
  ];
  const set = (patch: TypeStyle) => {
    setStyle(type, patch);
    scene.changed();
  };
  return (
    <Menu
      label={<Entry one={one} />}
      name={`${type} ${count(one.count)}: how it looks`}
      kind="quiet"
      class="menu-left menu-up"
    >
      {() => (
        <>
          <div class="swatches" role="radiogroup" aria-label="Colour">
            {PALETTE.map((colour, i) => (
              <button
                key={colour}
                type="button"
                role="radio"
                class="swatch"
                aria-label={`Colour ${i + 1}`}
                aria-checked={colour === one.colour}
                style={{ background: colour }}
                onClick={() => set({ colour })}
              />
            ))}
          </div>
          <label class="inline-label spread">
            Caption
            <select value={style.labelBy ?? ""} onChange={(e) => set({ labelBy: e.currentTarget.value || undefined })}>
              <option value="">key</option>
              {properties.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <label class="inline-label spread">
            Size
            <select value={style.size ?? 1} onChange={(e) => set({ size: Number(e.currentTarget.value) })}>
              {SIZES.map(({ name, value }) => (
                <option key={name} value={value}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </>
      )}
    </Menu>
  );
}
