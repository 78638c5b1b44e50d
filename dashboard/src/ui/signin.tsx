// Signing in, above the page: what is behind it stays as it was.

import { useState } from "preact/hooks";
import { refusal, signInWithCode, signInWithToken } from "../data/session.ts";
import { Logo } from "./marks.tsx";

export function SignIn() {
  const [value, setValue] = useState("");
  const [busy, setBusy] = useState(false);
  const send = async (): Promise<void> => {
    setBusy(true);
    const code = /[#&]code=([\w-]+)/.exec(value)?.[1];
    await (code === undefined ? signInWithToken(value) : signInWithCode(code));
    setBusy(false);
  };
  return (
    <div class="sign-in" role="dialog" aria-modal="true" aria-label="Sign in">
      <form class="card" onSubmit={(event) => { event.preventDefault(); void send(); }}>
        <div class="brand"><Logo /><span>everstep</span></div>
        <div class="field">
          <h1>Sign in</h1>
          <p class="muted">Open the link that <code>everstep serve</code> prints, ask for a fresh one with <code>everstep open</code>, or paste a token.</p>
        </div>
        <div class="field">
          <label for="token">Token or link</label>
          <input id="token" type="password" autocomplete="off" required value={value} onInput={(event) => setValue(event.currentTarget.value)} />
          {refusal.value && <p class="wrong" role="alert">{refusal.value}</p>}
        </div>
        <button type="submit" class="primary" disabled={busy}>{busy ? "Signing in…" : "Sign in"}</button>
      </form>
    </div>
  );
}
