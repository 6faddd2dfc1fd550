// A field for JSON of arguments or settings, with a picker that knows their names and values.
import { useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { Field, objectOf, useId } from "./forms.js";
import { Problem } from "./pieces.js";

// The settings of policies: an example of the value, or its choices.
export const SETTINGS = {
  "alternate-exchange": "unrouted",
  "consumer-disconnected-timeout": 60000,
  "consumer-timeout": 1800000,
  "dead-letter-exchange": "dead",
  "dead-letter-routing-key": "failed",
  "dead-letter-strategy": ["at-most-once", "at-least-once"],
  "delayed-retry-max": 60000,
  "delayed-retry-min": 1000,
  "delayed-retry-type": ["disabled", "all", "failed", "returned"],
  "delivery-limit": 20,
  durability: "",
  expires: 1800000,
  "max-age": "7D",
  "max-length": 1000,
  "max-length-bytes": 1048576,
  "message-ttl": 60000,
  overflow: ["drop-head", "reject-publish", "reject-publish-dlx"],
  retry: [1000, 10000, 60000],
  "stream-filter-size-bytes": 16,
  "stream-max-segment-size-bytes": 500000000,
  tier: "",
};
const OF_POLICIES_ONLY = ["alternate-exchange", "durability", "retry"];

// The arguments of queues: most are settings of policies, too.
export const ARGUMENTS = {
  ...Object.fromEntries(
    Object.entries(SETTINGS)
      .filter(([name]) => !OF_POLICIES_ONLY.includes(name))
      .map(([name, example]) => [`x-${name}`, example]),
  ),
  "x-group-key": "",
  "x-last-value-key": "",
  "x-max-priority": 10,
  "x-message-deduplication": ["true"],
  "x-retry-delays": SETTINGS.retry,
  "x-single-active-consumer": ["true"],
};

// Text of a value as JSON: what is not JSON is a text.
function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// `known`: {name: example or choices}.
export function Arguments({ known, label, ...rest }) {
  const box = useRef(null);
  const id = useId("argument");
  const [name, setName] = useState("");
  const [text, setText] = useState("");
  const [error, setError] = useState(null);
  const example = Object.hasOwn(known, name) ? known[name] : "";
  const choices = Array.isArray(example) && typeof example[0] === "string" ? example : null;
  const add = () => {
    const area = box.current.querySelector("textarea");
    try {
      const all = { ...objectOf(area.value, label), [name]: valueOf(text) };
      area.value = JSON.stringify(all, null, 2);
      setError(null);
      setName("");
      setText("");
    } catch (problem) {
      setError(problem);
    }
  };
  const enter = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (name && text) add();
  };
  return html`<div class="field wide arguments" ref=${box}>
    <${Field} label=${label} area ...${rest} />
    <div class="inline picker" role="group" aria-label="Picker">
      <input type="text" aria-label="Key" list=${`${id}-names`}
        placeholder="key" value=${name} autocomplete="off" spellcheck=${false}
        onInput=${(event) => setName(event.currentTarget.value)} onKeyDown=${enter} />
      <datalist id=${`${id}-names`}>${Object.keys(known).map(
        (each) => html`<option key=${each} value=${each} />`,
      )}</datalist>
      <input type="text" aria-label="Value" list=${`${id}-values`}
        placeholder=${choices || example === "" ? "value" : `such as ${JSON.stringify(example)}`}
        value=${text} autocomplete="off" spellcheck=${false}
        onInput=${(event) => setText(event.currentTarget.value)} onKeyDown=${enter} />
      <datalist id=${`${id}-values`}>${(choices ?? []).map(
        (each) => html`<option key=${each} value=${each} />`,
      )}</datalist>
      <button type="button" class="quiet" disabled=${!name || !text} onClick=${add}>Add</button>
    </div>
    <${Problem} error=${error} />
  </div>`;
}
