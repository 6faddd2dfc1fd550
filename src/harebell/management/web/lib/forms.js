// Forms: what was typed stays in them, and what the broker says about it is shown below.
import { useRef, useState } from "preact/hooks";
import { html } from "./html.js";
import { Problem } from "./pieces.js";
import { exact } from "./pretty.js";

let ids = 0;

export function useId(start) {
  const id = useRef(null);
  id.current ??= `${start}-${(ids += 1)}`;
  return id.current;
}

// A labelled input. Its value is the browser's own, so that no new data of the page changes it.
export function Field({ label, hint, area = false, options, wide = false, ...rest }) {
  const id = useId("field");
  const described = hint ? `${id}-hint` : undefined;
  const shared = {
    id,
    "aria-describedby": described,
    autocomplete: "off",
    spellcheck: false,
    ...rest,
  };
  const { value, ...chosen } = shared;
  let input;
  if (options) {
    input = html`<select ...${chosen}>${options.map((option) => {
      const [key, text] = Array.isArray(option) ? option : [option, option];
      return html`<option key=${key} value=${key} selected=${key === value}>${text}</option>`;
    })}</select>`;
  } else if (area) {
    input = html`<textarea rows="4" defaultValue=${value} ...${chosen}></textarea>`;
  } else {
    input = html`<input type="text" defaultValue=${value} ...${chosen} />`;
  }
  return html`<div class=${`field ${wide || area ? "wide" : ""}`}>
    <label for=${id}>${label}</label>${input}
    ${hint && html`<small id=${described}>${hint}</small>`}
  </div>`;
}

// A choice of names that come from the broker: what was chosen stays when they change.
export function Choice({ value, options, ...rest }) {
  const [picked, setPicked] = useState(null);
  const names = options.map((option) => (Array.isArray(option) ? option[0] : option));
  return html`<${Field} ...${rest} key=${names.join("\n")} options=${options}
    value=${names.includes(picked) ? picked : value}
    onChange=${(event) => setPicked(event.currentTarget.value)} />`;
}

export function Check({ label, checked = false, ...rest }) {
  const id = useId("check");
  return html`<div class="check"><input type="checkbox" id=${id}
    defaultChecked=${checked} ...${rest} />
    <label for=${id}>${label}</label></div>`;
}

// Empty a form, but for what was typed after its values were sent.
function clearSent(form, sent) {
  const later = [...form.elements]
    .filter(({ name, value }) => name && value !== sent[name])
    .map((input) => [input, input.value]);
  form.reset();
  for (const [input, value] of later) input.value = value;
}

// A form. `action(values, form)` sends it, and returns a sentence about what was done.
export function Form({ label, button, action, children, clear = false }) {
  const [state, setState] = useState({ busy: false, error: null, done: null });
  const submit = async (event) => {
    event.preventDefault();
    const form = event.currentTarget;
    setState({ busy: true, error: null, done: null });
    try {
      // Line breaks as they were typed: browsers write those of forms as two characters.
      const values = Object.fromEntries(
        [...new FormData(form)].map(([name, each]) => [
          name,
          typeof each === "string" ? each.replaceAll("\r\n", "\n") : each,
        ]),
      );
      const done = await action(values, form);
      if (clear) clearSent(form, values);
      setState({ busy: false, error: null, done });
    } catch (error) {
      setState({ busy: false, error, done: null });
    }
  };
  return html`<form onSubmit=${submit} aria-label=${label} class="form">
    <div class="fields">${children}</div>
    <div class="buttons">
      <button type="submit" disabled=${state.busy}>${state.busy ? "Sending…" : button}</button>
      <span role="status" class="done">${state.done}</span>
    </div>
    <${Problem} error=${state.error} />
  </form>`;
}

// JSON that a user has typed as an object; nothing is an empty one.
export function objectOf(text, what) {
  if (!text.trim()) return {};
  let found;
  try {
    // A number of many digits goes to the broker as it was typed.
    found = JSON.rawJSON ? exact(text) : JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} is not JSON: ${error.message}`);
  }
  if (found === null || typeof found !== "object" || Array.isArray(found)) {
    throw new Error(`${what} has to be a JSON object, such as {"name": "value"}`);
  }
  return found;
}
