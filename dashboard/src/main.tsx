import { render } from "preact";
import { App } from "./app.tsx";
import { helped } from "./data/large.ts";
import { begin, token } from "./data/session.ts";
import { worked } from "./worker/worked.ts";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/tasks.css";
import "./style/task.css";
import "./style/inbox.css";
import "./style/places.css";

helped(worked);
const place = document.querySelector("#app");
if (place) {
  const known = token.value !== null && !location.hash.includes("code=");
  if (!known) await begin(); // nobody sees a sign-in that is over in a moment
  render(<App />, place);
  if (known) void begin(); // what the page shows is asked for first
}
