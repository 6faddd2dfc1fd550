// All pages, in the order of the navigation. `names` are the other first names of addresses that
// belong to a page; `tag` is what a user needs to see it.
import { Overview } from "./overview.js";
import { Queue } from "./queue.js";
import { Queues } from "./queues.js";

export const PAGES = [
  { name: "overview", label: "Overview", choose: () => Overview },
  { name: "queues", label: "Queues", choose: (names) => (names.length === 3 ? Queue : Queues) },
];
