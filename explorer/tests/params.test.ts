import { describe, expect, it } from "vitest";
import type { ParamInfo } from "../src/api";
import { parseParams } from "../src/pages/query/params";

function param(kind: string, more: Partial<ParamInfo> = {}): ParamInfo {
  return { name: "x", kind, nullable: false, ...more };
}

function value(info: ParamInfo, text: string) {
  const { values, errors } = parseParams([info], { x: text });
  return errors["x"] ? `error: ${errors["x"]}` : values["x"];
}

describe("parameters", () => {
  it("become the JSON the server takes", () => {
    expect(value(param("int"), " 42 ")).toBe(42);
    expect(value(param("bigint"), "9007199254740993")).toBe("9007199254740993");
    expect(value(param("bool"), "true")).toBe(true);
    expect(value(param("string"), "")).toBe("");
    expect(value(param("list", { item_kind: "int" }), "1, 2")).toEqual([1, 2]);
    expect(value(param("list", { item_kind: "string" }), '["a,b", "c"]')).toEqual(["a,b", "c"]);
    expect(value(param("vector", { vector_dim: 2 }), "[0.5, 1]")).toEqual([0.5, 1]);
  });

  it("say what is wrong with them", () => {
    expect(value(param("int"), "4.2")).toMatch(/whole number/);
    expect(value(param("float"), "")).toMatch(/needed/);
    expect(value(param("vector", { vector_dim: 3 }), "1, 2")).toMatch(/3 numbers/);
    expect(value(param("list", { item_kind: "int" }), "[1,")).toMatch(/no list/);
  });

  it("may be left out where null is allowed", () => {
    expect(parseParams([param("int", { nullable: true })], {})).toEqual({ values: { x: null }, errors: {} });
    expect(parseParams([param("string")], {}).errors).toHaveProperty("x");
  });
});
