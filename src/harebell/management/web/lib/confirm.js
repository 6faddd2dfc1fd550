// A button for what cannot be undone: a dialog names the object, and may ask for its name.
import { useRef, useState } from "preact/hooks";
import { send } from "./api.js";
import { html } from "./html.js";
import { Problem } from "./pieces.js";
import { useId } from "./forms.js";

// A name that a keyboard can write.
const TYPED = /^[\p{L}\p{N}\p{P}\p{S}]+( [\p{L}\p{N}\p{P}\p{S}]+)*$/u;

// `where` is what DELETE is sent to, or returns it for the values of the fields in `children`;
// `after` is called when that was done.
export function Confirm(props) {
  const { button, title, text, name = null, where, after, tone = "danger" } = props;
  const dialog = useRef(null);
  const [typed, setTyped] = useState("");
  const [state, setState] = useState({ busy: false, error: null });
  const heading = useId("confirm");
  const { ready = true, children } = props;
  const needed = name !== null && TYPED.test(name) ? name : null;
  const open = () => {
    setTyped("");
    setState({ busy: false, error: null });
    props.onOpen?.();
    dialog.current.showModal();
  };
  const run = async (event) => {
    event.preventDefault();
    if (needed !== null && typed !== needed) return;
    const values = Object.fromEntries(new FormData(event.currentTarget));
    setState({ busy: true, error: null });
    try {
      await send("DELETE", typeof where === "string" ? where : where(values));
      after();
      setState({ busy: false, error: null });
      dialog.current?.close();
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<button type="button" class=${tone} onClick=${open}>${button}</button>
    <dialog ref=${dialog} aria-labelledby=${heading}>
      <form onSubmit=${run}>
        <h2 id=${heading}>${title}</h2>
        <p>${text}</p>${children}
        ${
          needed !== null &&
          html`<div class="field wide">
          <label for=${`${heading}-name`}>Type <code>${needed}</code> to confirm</label>
          <input id=${`${heading}-name`} type="text" value=${typed} autocomplete="off"
            spellcheck=${false}
            onInput=${(event) => setTyped(event.currentTarget.value)} />
        </div>`
        }
        <${Problem} error=${state.error} />
        <div class="buttons">
          <button type="submit" class="danger"
            disabled=${state.busy || !ready || (needed !== null && typed !== needed)}
            >${button}</button>
          <button type="button" class="quiet"
            onClick=${() => dialog.current.close()}>Cancel</button>
        </div>
      </form>
    </dialog>`;
}
