// Keys that work on every page. What they open is loaded when it is opened for the first time.
import { useLayoutEffect, useState } from "preact/hooks";
import { html } from "./html.js";
import { kept } from "./kept.js";
import { go } from "./router.js";

const NEXT_KEY_MS = 1500;

// After "g": the page of a letter.
export const GO = {
  o: "overview",
  q: "queues",
  e: "exchanges",
  t: "topology",
  s: "streams",
  c: "connections",
  h: "channels",
  p: "policies",
};

// Some programs that people speak to press keys for words: single letters can be switched off.
export const letters = () => kept("letters", [true]);

const writes = ({ target, ctrlKey, altKey, metaKey }) =>
  ctrlKey || altKey || metaKey || target.closest?.("input, textarea, select, [contenteditable]");

export function Keys() {
  const [open, setOpen] = useState(null);
  // Before the page is seen: a key that is pressed at once is not lost.
  useLayoutEffect(() => {
    let prefix = 0;
    const show = async (name) => {
      const shown = await import("../pages/palette.js");
      setOpen({ Shown: shown[name] });
    };
    const press = (event) => {
      if (document.querySelector("dialog[open]")) return;
      const key = event.key.toLowerCase();
      if ((event.ctrlKey || event.metaKey) && !event.altKey && key === "k") {
        event.preventDefault();
        show("Palette");
      } else if (writes(event) || !letters().get()[0]) {
        return;
      } else if (key === "?") {
        show("Shortcuts");
      } else if (key === "/") {
        const filter = document.querySelector('main input[type="search"]');
        if (!filter) return;
        event.preventDefault();
        filter.focus();
      } else if (event.timeStamp - prefix < NEXT_KEY_MS && Object.hasOwn(GO, key)) {
        prefix = 0;
        go(GO[key]);
      } else {
        prefix = key === "g" ? event.timeStamp : 0;
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  const press = () =>
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }));
  return html`<button type="button" class="quiet search" onClick=${press}
      aria-keyshortcuts="Control+K" aria-label="Search"><span>Search</span
      ><svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><circle cx="7" cy="7"
        r="4.5" /><path d="M10.5 10.5 L14 14" /></svg></button>
    ${open && html`<${open.Shown} onClose=${() => setOpen(null)} />`}`;
}
