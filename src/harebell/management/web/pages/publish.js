// A form that publishes one message.
import { path, send } from "../lib/api.js";
import { Field, Form, objectOf } from "../lib/forms.js";
import { html } from "../lib/html.js";

// What the API is sent, from what was typed.
export function messageOf({ key, properties, headers, body, encoding, mode }) {
  return {
    routing_key: key,
    properties: {
      delivery_mode: Number(mode),
      ...objectOf(properties, "The properties"),
      headers: objectOf(headers, "The headers"),
    },
    payload: body,
    payload_encoding: encoding,
  };
}

// `filled` has what the fields begin with, by their names.
export function MessageFields({ routingKey = "", filled = {} }) {
  return html`<${Field} label="Routing key" name="key" value=${routingKey} />
    <${Field} label="Stored" name="mode" value=${filled.mode ?? "2"} options=${[
      ["2", "persistent"],
      ["1", "transient"],
    ]} />
    <${Field} label="Body is" name="encoding" value=${filled.encoding ?? "string"} options=${[
      ["string", "text"],
      ["base64", "base64"],
    ]} />
    <${Field} label="Headers" name="headers" area value=${filled.headers}
      hint='as JSON: {"tenant": "acme"}' />
    <${Field} label="Properties" name="properties" area value=${filled.properties}
      hint='as JSON: {"content_type": "text/plain"}' />
    <${Field} label="Body" name="body" area value=${filled.body} />`;
}

export function Publish({ vhost, exchange, routingKey = "" }) {
  const publish = async (values) => {
    const answer = await send(
      "POST",
      `exchanges/${path(vhost, exchange || "amq.default")}/publish`,
      messageOf(values),
    );
    return answer.routed ? "Published and routed." : "Published; it reached no queue.";
  };
  return html`<${Form} label="Publish" button="Publish" action=${publish}>
    <${MessageFields} routingKey=${routingKey} />
  </${Form}>`;
}
