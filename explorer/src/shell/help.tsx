import { keyLabel, shortcuts, type Shortcut } from "../keys";
import { Dialog } from "../ui/basics";

/** The keys that do something here. */
export function HelpSheet({ onClose }: { onClose: () => void }) {
  const groups = new Map<string, Shortcut[]>();
  for (const one of shortcuts()) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose} wide>
      <div class="help-groups">
        {[...groups].map(([group, list]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl class="help-list">
              {list.map((one) => (
                <div key={one.keys}>
                  <dt>
                    {keyLabel(one.keys)
                      .split(" ")
                      .map((key, i) => (key === "+" ? " + " : <kbd key={i}>{key}</kbd>))}
                  </dt>
                  <dd>{one.what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
