/** Columns of the file on the left, what they fill on the right. */
import { valueText } from "../../format";
import { type Mapping, neededOf, targetsOf, type TypeInfo } from "./mapping";
import type { Preview } from "./send";

interface Props {
  readonly found: Preview;
  readonly type: TypeInfo;
  readonly mapping: Mapping;
  readonly onChange: (mapping: Mapping) => void;
}

export function MappingTable({ found, type, mapping, onChange }: Props) {
  const needed = neededOf(type);
  const kindOf = (name: string) => type.properties.find((property) => property.name === name)?.type ?? "text";
  return (
    <div class="table-box mapping" tabIndex={0} role="region" aria-label="Columns and what they fill">
      <table>
        <thead>
          <tr>
            <th scope="col">Column</th>
            <th scope="col">Holds</th>
            <th scope="col">For example</th>
            <th scope="col">Fills</th>
          </tr>
        </thead>
        <tbody>
          {found.columns.map(({ name, type: holds }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="muted">{holds}</td>
              <td class="mono">{valueText(found.rows.find((row) => row[name] !== null)?.[name])}</td>
              <td>
                <select
                  aria-label={`${name} fills`}
                  value={mapping[name] ?? ""}
                  onChange={(event) => onChange({ ...mapping, [name]: event.currentTarget.value || null })}
                >
                  <option value="">nothing: left out</option>
                  {targetsOf(type).map((target) => (
                    <option key={target} value={target}>
                      {target}: {kindOf(target)}
                      {needed.includes(target) ? ", needed" : ""}
                    </option>
                  ))}
                </select>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
