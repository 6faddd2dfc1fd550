// What the API answers with one line of JSON for each row.
import { ApiError, ask } from "./api.js";
import { exact } from "./pretty.js";

export async function lines(where, signal) {
  const answer = await ask("GET", where, undefined, signal);
  const rows = (await answer.text())
    .split("\n")
    .filter(Boolean)
    .map((line) => exact(line));
  const last = rows.at(-1);
  // The rows end with an error when it came too late for the status.
  if (last?.error && last.reason) throw new ApiError(400, last.reason);
  return rows;
}
