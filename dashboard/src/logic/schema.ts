// Forms from JSON Schema: flat things get fields of their own, everything deeper is edited as JSON. The server validates.

import type { Json, JsonObject, Schema } from "../data/api.ts";

export type Kind = "text" | "long" | "number" | "boolean" | "enum" | "date" | "list" | "json";

const LONG = 80;

export function kindOf(schema: Schema, value?: Json): Kind {
  if (schema.enum !== undefined) return "enum";
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  switch (type) {
    case "string":
      if (schema.format === "date") return "date";
      return (typeof value === "string" && (value.length > LONG || value.includes("\n"))) || (schema.maxLength ?? 0) > LONG ? "long" : "text";
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    case "array":
      return schema.items !== undefined && ["text", "number"].includes(kindOf(schema.items)) ? "list" : "json";
    case undefined:
      if (typeof value === "string") return value.length > LONG || value.includes("\n") ? "long" : "text";
      if (typeof value === "number") return "number";
      if (typeof value === "boolean") return "boolean";
      return "json";
    default:
      return "json";
  }
}

/** A schema that can have a field for each of its parts. */
export const isFlat = (schema: Schema): boolean => schema.properties !== undefined && Object.keys(schema.properties).length > 0;

/** What is typed, as it stands in the field. */
export function toField(kind: Kind, value: Json | undefined): string {
  if (value === undefined || (value === null && kind !== "json")) return "";
  if (kind === "list") return (value as Json[]).map(String).join("\n");
  if (kind === "json" || kind === "enum") return JSON.stringify(value, null, 2);
  return String(value);
}

export type Read = { value: Json | undefined } | { wrong: string };

/** What was typed, as a value; an empty field is no value. */
export function fromField(kind: Kind, text: string, schema: Schema): Read {
  if (text === "" && kind !== "text" && kind !== "long") return { value: undefined };
  switch (kind) {
    case "number": {
      const number = Number(text);
      return Number.isFinite(number) ? { value: number } : { wrong: "this is not a number" };
    }
    case "boolean":
      return { value: text === "true" };
    case "list": {
      const lines = text.split("\n").filter((line) => line.trim() !== "");
      return { value: kindOf(schema.items ?? {}) === "number" ? lines.map(Number) : lines };
    }
    case "enum":
    case "json":
      try {
        return { value: JSON.parse(text) as Json };
      } catch {
        return { wrong: "this is not JSON" };
      }
    default:
      return { value: text };
  }
}

export interface Change {
  name: string;
  before: Json | undefined;
  after: Json;
}

/** Which fields were changed. */
export const changes = (before: JsonObject, after: JsonObject): Change[] =>
  Object.entries(after).filter(([name, value]) => JSON.stringify(before[name]) !== JSON.stringify(value)).map(([name, value]) => ({ name, before: before[name], after: value }));
