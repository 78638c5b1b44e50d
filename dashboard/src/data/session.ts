// Who is signed in. The one-time code leaves the address before anything is asked; tokens travel in a header only.

import { signal } from "@preact/signals";
import { Client, Refused } from "../client/client.ts";
import { ask } from "../client/ways.ts";
import type { Owner } from "./api.ts";
import { prefix } from "./base.ts";
import { heardFrom } from "./clock.ts";

const KEY = "everstep.token";
const url = location.origin + prefix;

export const token = signal<string | null>(read());
export const signedOut = signal<boolean>(token.value === null);
export const owner = signal<Owner | null>(null);
/** Why the last try to sign in failed. */
export const refusal = signal<string | null>(null);

function read(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(value: string | null): void {
  token.value = value;
  try {
    if (value === null) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, value);
  } catch {
    // a browser that keeps nothing: signed in until this page is closed
  }
}

export const client = (): Client => new Client({ url, token: token.value });

let source: ((path: string) => unknown) | null = null;
/** Everything is here already: nobody is asked. */
export const readFrom = (found: (path: string) => unknown): void => void (source = found);

/** Any route; whoever is not known any more signs in again, above the page as it stands. */
export async function request<Reply>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Reply> {
  if (source !== null) return given<Reply>(source(path));
  const reply = await raw(method, path, body, {}, signal);
  return (reply.status === 204 ? null : await reply.json()) as Reply;
}

function given<Reply>(found: unknown): Reply {
  if (found === undefined) throw new Error("this is not in this file");
  return found as Reply;
}

/** The reply itself: for bytes and headers. */
export async function raw(method: string, path: string, body?: unknown, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
  if (source !== null) throw new Error("this is not in this file");
  const asked = Date.now();
  const reply = await ask({ url, token: token.value }, method, path, body, signal, headers);
  heardFrom(reply, asked);
  if (reply.ok) return reply;
  const said = (await reply.json().catch(() => ({}))) as { error?: object };
  const seconds = Number.parseInt(reply.headers.get("retry-after") ?? "", 10);
  const error = new Refused(reply.status, said.error ?? {}, Number.isFinite(seconds) ? seconds : null);
  if (reply.status === 401 && token.value !== null) signedOut.value = true;
  throw error;
}

export const get = <Reply>(path: string, signal?: AbortSignal): Promise<Reply> => request<Reply>("GET", path, undefined, signal);
export const post = <Reply>(path: string, body: unknown = {}): Promise<Reply> => request<Reply>("POST", path, body);

/** Exchange the code of the address for a session; before the first request the code is gone from there. */
export async function begin(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) {
    history.replaceState(history.state, "", location.pathname + location.search);
    await signInWithCode(code);
  } else if (token.value !== null) await look();
}

export async function signInWithCode(code: string): Promise<void> {
  const before = token.value;
  try {
    token.value = null;
    const issued = await post<{ value: string }>("/v1/sessions", { code });
    keep(issued.value);
    await look();
  } catch (error) {
    token.value = before;
    if (before !== null && (await look())) return;
    refusal.value = said(error);
    signedOut.value = true;
  }
}

export async function signInWithToken(value: string): Promise<void> {
  const before = token.value;
  token.value = value.trim();
  if (await look()) keep(token.value);
  else {
    token.value = before;
    refusal.value = refusal.value ?? "this token is not known here";
  }
}

/** Who one is; whether the token is good. */
async function look(): Promise<boolean> {
  try {
    owner.value = await get<Owner>("/v1/owner");
    refusal.value = null;
    signedOut.value = false;
    return true;
  } catch (error) {
    if (error instanceof Refused && error.status === 401) {
      refusal.value = null;
      signedOut.value = true;
      return false;
    }
    return token.value !== null; // nobody answers: the page says so by itself
  }
}

export async function signOut(): Promise<void> {
  try {
    await request("DELETE", "/v1/sessions/current");
  } catch {
    // a token that was pasted is no session; forgetting it here is all there is to do
  }
  keep(null);
  owner.value = null;
  signedOut.value = true;
}

export const may = (scope: string): boolean => owner.value?.scopes.includes(scope) ?? true;

export const said = (error: unknown): string => (error instanceof Error ? error.message : String(error));
