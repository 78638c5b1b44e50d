// Lists that somebody points at: no row moves under a hand. What arrives waits; what follows at an end is added.

export type Groups = Readonly<Record<string, readonly string[]>>;

export function hold(shown: Groups, latest: Groups): { ids: Record<string, string[]>; fresh: number } {
  const there = new Set(Object.values(shown).flat());
  const ids: Record<string, string[]> = {};
  let fresh = 0;
  for (const [group, now] of Object.entries(latest)) {
    const before = shown[group] ?? [];
    const last = before.at(-1);
    const end = last === undefined ? -1 : now.indexOf(last);
    const isNew = (id: string): boolean => !there.has(id);
    const after = end < 0 ? [] : now.slice(end + 1).filter(isNew);
    ids[group] = [...before, ...after];
    fresh += now.filter(isNew).length - after.length;
  }
  return { ids, fresh };
}
