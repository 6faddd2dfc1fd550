// Preact with tagged templates: text in a template is always text, never markup.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
