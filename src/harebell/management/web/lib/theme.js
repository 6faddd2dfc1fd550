// Light or dark, and whether anything moves: what the user has chosen, or what the system says.
import { store } from "./store.js";

const KEY = "harebell.theme";
const MOTION = "harebell.motion";
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

export const motion = store(localStorage.getItem(MOTION) ?? "system");

function still() {
  document.documentElement.dataset.motion = motion.get();
}

motion.subscribe((chosen) => {
  localStorage.setItem(MOTION, chosen);
  still();
});
still();

theme.subscribe((chosen) => {
  localStorage.setItem(KEY, chosen);
  apply();
});
dark.addEventListener("change", apply);
apply();
