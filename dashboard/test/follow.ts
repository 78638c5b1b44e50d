// Follow one task, or all, and print the seq of every event: `node follow.ts URL TOKEN [TASK]`. For tests.

import { Client, Refused } from "../src/client/client.ts";

const [url = "", token = "", task] = process.argv.slice(2);
const client = new Client({ url, token });
const watching = task === undefined ? { after: "0-00000000" } : { task, untilEnd: true };
try {
  for await (const event of client.events({ ...watching, onConnection: (now) => console.error(JSON.stringify(now)) })) {
    console.log(event.seq);
    if (task === undefined && event.type === "task.completed") break;
  }
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  console.log(error.code);
}
process.exit(0);
