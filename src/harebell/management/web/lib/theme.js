// Light, dark, or what the system says.
import { store } from "./store.js";

const KEY = "harebell.theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

export const theme = store(localStorage.getItem(KEY) ?? "system");

function apply() {
  const chosen = theme.get();
  const shown = chosen === "system" ? (dark.matches ? "dark" : "light") : chosen;
  document.documentElement.dataset.theme = shown;
  drawn.set(shown);
}

// What is shown: "light" or "dark".
export const drawn = store("light");

theme.subscribe((chosen) => {
  localStorage.setItem(KEY, chosen);
  apply();
});
dark.addEventListener("change", apply);
apply();
