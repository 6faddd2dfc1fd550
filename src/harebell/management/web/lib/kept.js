// Values that this browser keeps for a user: chosen columns, saved filters, favourites.
import { session } from "./session.js";
import { store } from "./store.js";

const stores = new Map();

function read(key, usual) {
  try {
    const found = JSON.parse(localStorage.getItem(key));
    return Array.isArray(found) ? found : usual;
  } catch {
    return usual;
  }
}

// A store of a list that is kept under a name, for the user that is logged in.
export function kept(name, usual = []) {
  const key = `harebell.${session.get()?.name ?? ""}.${name}`;
  if (!stores.has(key)) {
    const made = store(read(key, usual));
    made.subscribe((value) => {
      try {
        localStorage.setItem(key, JSON.stringify(value));
      } catch {
        // A full storage keeps no more: the choice holds until the page is left.
      }
    });
    stores.set(key, made);
  }
  return stores.get(key);
}

const same = (one, other) => one.join("\n") === other.join("\n");

// Favourites: addresses of pages as their names, such as ["queues", "/", "orders"].
export const favourites = () => kept("favourites");

export function isFavourite(names) {
  return favourites()
    .get()
    .some((each) => same(each, names));
}

export function setFavourite(names, on) {
  const others = favourites()
    .get()
    .filter((each) => !same(each, names));
  favourites().set(on ? [...others, names] : others);
}
