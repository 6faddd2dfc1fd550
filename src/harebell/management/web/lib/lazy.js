// A page whose script is loaded when the page is opened: others cost the first page nothing.
import { useEffect, useReducer, useState } from "preact/hooks";
import { html } from "./html.js";
import { Awaited } from "./pieces.js";

const again = () => location.reload();

// A broker of another version has other scripts: then a reload brings them, and the login stays.
export function lazy(load, name) {
  let found = null;
  return function Lazy(props) {
    const [, redraw] = useReducer((count) => count + 1, 0);
    const [error, setError] = useState(null);
    useEffect(() => {
      if (found) return undefined;
      let left = false;
      load().then(
        (loaded) => {
          found = loaded[name];
          if (!left) redraw();
        },
        () => left || setError(new Error("The script of this page could not be loaded.")),
      );
      return () => {
        left = true;
      };
    }, []);
    return found
      ? html`<${found} ...${props} />`
      : html`<${Awaited} error=${error} onRetry=${again} />`;
  };
}
