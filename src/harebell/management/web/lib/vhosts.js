// The vhost whose objects are shown; "" for all of them.
import { useEffect } from "preact/hooks";
import { html } from "./html.js";
import { path } from "./api.js";
import { usePoll } from "./poll.js";
import { store, useStore } from "./store.js";

export const vhost = store("");

// The names of the vhosts that the user may see; null before they are known.
export const visible = store(null);

// The path of a list: of all vhosts, or of the chosen one.
export function listed(what, chosen) {
  return chosen === "" ? what : `${what}/${path(chosen)}`;
}

export function VhostChoice() {
  const chosen = useStore(vhost);
  const { data } = usePoll("vhosts?columns=name", { every: 10000 });
  const names = (data ?? []).map(({ name }) => name);
  useEffect(() => visible.set(data && names), [data]);
  return html`<label class="choice"><span>Vhost</span>
    <select aria-label="Vhost" value=${chosen}
      onChange=${(event) => vhost.set(event.currentTarget.value)}>
      <option value="">all</option>
      ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select></label>`;
}

// The names of all vhosts, for forms.
export function useVhosts() {
  const { data } = usePoll("vhosts?columns=name", { every: 10000 });
  return (data ?? []).map(({ name }) => name);
}
