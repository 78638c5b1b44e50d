// Fields for a schema. It reports the value whenever it changes; what is wrong stays in the form.

import { useEffect, useId, useState } from "preact/hooks";
import type { Json, JsonObject, Schema } from "../data/api.ts";
import { fromField, kindOf, toField } from "../logic/schema.ts";
import { visible } from "../logic/text.ts";

export interface FieldsProps {
  schema: Schema;
  initial: JsonObject;
  /** Null while something is wrong. */
  onChange: (value: JsonObject | null) => void;
}

export function Fields({ schema, initial, onChange }: FieldsProps) {
  const names = Object.keys(schema.properties ?? {});
  const [typed, setTyped] = useState<Record<string, string>>(() =>
    Object.fromEntries(names.map((name) => [name, toField(kindOf(schema.properties?.[name] ?? {}, initial[name]), initial[name] ?? schema.properties?.[name]?.default)])));
  const read = Object.fromEntries(names.map((name) => {
    const one = schema.properties?.[name] ?? {};
    return [name, fromField(kindOf(one, initial[name]), typed[name] ?? "", one)];
  }));
  const needed = new Set(schema.required ?? []);
  const text = JSON.stringify(read);
  useEffect(() => {
    const value: JsonObject = {};
    for (const name of names) {
      const one = read[name];
      if (one === undefined || "wrong" in one) return onChange(null);
      const empty = one.value === "" && !needed.has(name) && initial[name] === undefined && schema.properties?.[name]?.default === undefined;
      if (one.value === undefined && needed.has(name)) return onChange(null);
      if (one.value !== undefined && !empty) value[name] = one.value;
    }
    onChange(value);
  }, [text]);
  return (
    <>
      {names.map((name) => {
        const one = read[name];
        return <Field key={name} name={name} schema={schema.properties?.[name] ?? {}} hint={initial[name]} required={needed.has(name)} text={typed[name] ?? ""} wrong={one && "wrong" in one ? one.wrong : null} onInput={(value) => setTyped((before) => ({ ...before, [name]: value }))} />;
      })}
    </>
  );
}

interface FieldProps {
  name: string;
  schema: Schema;
  hint?: Json | undefined;
  required: boolean;
  text: string;
  wrong: string | null;
  onInput: (text: string) => void;
}

export function Field({ name, schema, hint, required, text, wrong, onInput }: FieldProps) {
  const id = useId();
  const kind = kindOf(schema, hint);
  const common = { id, value: text, required, onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value) };
  const label = <>{visible(schema.title ?? name)}{!required && <span class="hint"> optional</span>}</>;
  const notes = [schema.description, schema.minLength ? `at least ${schema.minLength} characters` : "", kind === "list" ? "one per line" : "", kind === "json" ? "as JSON" : ""].filter(Boolean).join("; ");
  if (kind === "enum" || kind === "boolean") {
    const choices: Json[] = kind === "boolean" ? [true, false] : (schema.enum ?? []);
    return (
      <fieldset class="field">
        <legend>{label}</legend>
        <div class="choices">
          {choices.map((one) => {
            const value = kind === "boolean" ? String(one) : JSON.stringify(one, null, 2);
            return <label key={value}><input type="radio" name={id} value={value} checked={text === value} onChange={() => onInput(value)} />{kind === "boolean" ? (one ? "yes" : "no") : visible(String(one))}</label>;
          })}
        </div>
        {notes && <span class="hint">{visible(notes)}</span>}
      </fieldset>
    );
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {kind === "long" || kind === "list" || kind === "json" ? <textarea {...common} rows={Math.min(14, Math.max(3, text.split("\n").length + 1))} class={kind === "json" ? "mono" : ""} spellcheck={kind === "long"} />
        : kind === "number" ? <input {...common} type="number" step={schema.type === "integer" ? 1 : "any"} />
        : kind === "date" ? <input {...common} type="date" /> : schema.format === "email" ? <input {...common} type="email" /> : <input {...common} type="text" />}
      {notes && <span class="hint" id={`${id}-hint`}>{visible(notes)}</span>}
      {wrong && <span class="wrong">{wrong}</span>}
    </div>
  );
}

/** One value of any shape, as JSON. */
export function JsonField({ label, hint, initial, onChange }: { label: string; hint?: string; initial: Json | undefined; onChange: (value: Json | undefined) => void }) {
  const [text, setText] = useState(initial === undefined ? "" : JSON.stringify(initial, null, 2));
  const read = fromField("json", text, {});
  useEffect(() => onChange("wrong" in read ? undefined : read.value), [text]);
  return <Field name={label} schema={{ title: label, description: hint ?? "" }} required text={text} wrong={"wrong" in read ? read.wrong : null} onInput={setText} />;
}
