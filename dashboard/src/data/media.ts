// How wide the window is, where a page is another one and not only drawn differently.

import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 899px)");
export const narrow = signal(query.matches);
query.addEventListener("change", () => (narrow.value = query.matches));
