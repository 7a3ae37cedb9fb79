/** A form for the parameters of a query, made from its signature. */
import type { Json, ParamInfo } from "../../api";
import { Field } from "../../ui/basics";

export type Texts = Readonly<Record<string, string>>; // what was typed, by name

export interface Parsed {
  readonly values: Record<string, Json>;
  readonly errors: Record<string, string>;
}

export function parseParams(params: readonly ParamInfo[], texts: Texts): Parsed {
  const values: Record<string, Json> = {};
  const errors: Record<string, string> = {};
  for (const param of params) {
    const text = texts[param.name];
    if (text === undefined || (text === "" && param.kind !== "string")) {
      if (param.nullable) values[param.name] = null;
      else errors[param.name] = "A value is needed.";
      continue;
    }
    try {
      values[param.name] = parsed(param, text);
    } catch (error) {
      errors[param.name] = (error as Error).message;
    }
  }
  return { values, errors };
}

function parsed(param: ParamInfo, text: string): Json {
  switch (param.kind) {
    case "list":
      return listOf(text).map((item) => (typeof item === "string" ? scalar(param.item_kind ?? "string", item) : item));
    case "vector": {
      const numbers = listOf(text).map((item) => Number(item));
      if (numbers.length !== param.vector_dim || numbers.some(Number.isNaN))
        throw new Error(`It takes ${param.vector_dim} numbers.`);
      return numbers;
    }
    case "any":
      return anything(text);
    default:
      return scalar(param.kind, text);
  }
}

/** JSON where it is some; anything else is a text. */
function anything(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

function scalar(kind: string, text: string): Json {
  switch (kind) {
    case "bool":
      return text === "true";
    case "int":
      if (!/^\s*-?\d+\s*$/.test(text)) throw new Error("It takes a whole number.");
      return Number(text);
    case "bigint": // more digits than a number of JavaScript holds; the server takes text
      if (!/^\s*-?\d+\s*$/.test(text)) throw new Error("It takes a whole number.");
      return text.trim();
    case "float":
      if (text.trim() === "" || Number.isNaN(Number(text))) throw new Error("It takes a number.");
      return Number(text);
    default:
      return text;
  }
}

/** `["a", "b"]`, or what stands between commas or on lines. */
function listOf(text: string): Json[] {
  if (text.trim().startsWith("[")) {
    try {
      const found = JSON.parse(text) as Json;
      if (Array.isArray(found)) return found;
    } catch {
      throw new Error("This is no list; write [1, 2] or values between commas.");
    }
  }
  return text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter(Boolean);
}

const HINTS: Record<string, string> = {
  any: "a text, a number or JSON",
  int: "whole number",
  bigint: "whole number",
  float: "number",
  datetime: "such as 2026-05-31T12:30:00Z",
  date: "such as 2026-05-31",
  blob: "base64",
};

export function ParamsForm(props: {
  params: readonly ParamInfo[];
  texts: Texts;
  errors: Record<string, string>;
  onChange: (texts: Texts) => void;
  onRun: () => void;
}) {
  const set = (name: string, text: string) => props.onChange({ ...props.texts, [name]: text });
  return (
    <div
      class="params"
      role="group"
      aria-label="Parameters"
      onKeyDown={(event) => event.key === "Enter" && (event.preventDefault(), props.onRun())}
    >
      {props.params.map((param) => (
        <Field key={param.name} label={`$${param.name}`} hint={hintOf(param)} error={props.errors[param.name]}>
          {(id, describedBy) => (
            <Control
              id={id}
              describedBy={describedBy}
              param={param}
              text={props.texts[param.name] ?? ""}
              onText={(text) => set(param.name, text)}
            />
          )}
        </Field>
      ))}
    </div>
  );
}

function hintOf(param: ParamInfo): string {
  const one =
    param.kind === "list"
      ? `${param.item_kind} values, between commas`
      : param.kind === "vector"
        ? `${param.vector_dim} numbers`
        : (HINTS[param.kind] ?? param.kind);
  return param.nullable ? `${one}; may be empty` : one;
}

function Control({
  id,
  describedBy,
  param,
  text,
  onText,
}: {
  id: string;
  describedBy?: string;
  param: ParamInfo;
  text: string;
  onText: (text: string) => void;
}) {
  const common = { id, "aria-describedby": describedBy };
  if (param.kind === "bool") {
    return (
      <select {...common} value={text} onChange={(event) => onText(event.currentTarget.value)}>
        <option value="">–</option>
        <option value="true">true</option>
        <option value="false">false</option>
      </select>
    );
  }
  return (
    <input
      {...common}
      value={text}
      autocomplete="off"
      spellcheck={false}
      onInput={(event) => onText(event.currentTarget.value)}
    />
  );
}
