// The filter box: words with a colon are filters, everything else is looked for in titles, ids and errors.

export const FILTERS = ["status", "plan", "tool", "reason", "label", "since"] as const;
export type FilterName = (typeof FILTERS)[number];
export type Filter = Partial<Record<FilterName, string>> & { q?: string; needs_you?: string };

const TOKEN = /(?:([a-z_]+):)?(?:"([^"]*)"|(\S+))/g;

export function parse(text: string): Filter {
  const found: Filter = {};
  const rest: string[] = [];
  for (const [whole, name, quoted, plain] of text.matchAll(TOKEN)) {
    const value = quoted ?? plain ?? "";
    if (name === "needs" && value === "you") found.needs_you = "1";
    else if (name !== undefined && (FILTERS as readonly string[]).includes(name)) found[name as FilterName] = value;
    else rest.push(whole);
  }
  if (rest.length) found.q = rest.join(" ").replaceAll('"', "");
  return found;
}

/** In words, for whoever found nothing. */
export function inWords(filter: Filter): string {
  const { q, needs_you, ...named } = filter;
  const parts = Object.entries(named).map(([name, value]) => `${name} ${value}`);
  if (needs_you) parts.push("needs you");
  if (q) parts.push(`“${q}”`);
  return parts.join(", ");
}
