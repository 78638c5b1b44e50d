// Where this dashboard is mounted: the server writes it into the document.

export const prefix: string = (document.querySelector<HTMLMetaElement>('meta[name="everstep-at"]')?.content ?? "/").replace(/\/$/, "");
export const at = (path: string): string => prefix + path;
