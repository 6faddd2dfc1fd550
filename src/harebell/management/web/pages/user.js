// One user: tags, password, permissions in vhosts.
import { path, send } from "../lib/api.js";
import { Confirm } from "../lib/confirm.js";
import { Field, Form } from "../lib/forms.js";
import { html } from "../lib/html.js";
import { Awaited, Badge, Fold, Listing, Problem, Section } from "../lib/pieces.js";
import { usePoll } from "../lib/poll.js";
import { leave } from "../lib/router.js";
import { useTitle } from "../lib/title.js";
import { VhostField } from "./queues.js";
import { UserFields } from "./users.js";

const code = (text) => html`<code>${text}</code>`;

function Permissions({ name }) {
  const { data, error, refresh } = usePoll(`users/${path(name)}/permissions`);
  const allow = async ({ vhost, configure, write, read }) => {
    await send("PUT", `permissions/${path(vhost, name)}`, { configure, write, read });
    refresh();
    return `'${name}' has these permissions in vhost '${vhost}'.`;
  };
  const rows = (data ?? []).map(({ vhost, configure, write, read }) => [
    vhost,
    code(configure),
    code(write),
    code(read),
    html`<${Confirm} button="Clear" tone="quiet"
      title=${`Close vhost '${vhost}' to '${name}'?`}
      text=${`'${name}' can no longer open vhost '${vhost}'.`}
      where=${`permissions/${path(vhost, name)}`} after=${refresh} />`,
  ]);
  return html`<${Listing} id="permissions" title="Permissions" data=${data} error=${error}
      rows=${rows} keys=${data?.map(({ vhost }) => vhost)} empty="The user can open no vhost."
      heads=${["Vhost", "Configure", "Write", "Read", ""]}>
    <${Fold} title="Set permissions">
      <${Form} label="Set permissions" button="Set" action=${allow}>
        <${VhostField} />
        <${Field} label="Configure" name="configure" value=".*" hint="names, as a pattern" />
        <${Field} label="Write" name="write" value=".*" />
        <${Field} label="Read" name="read" value=".*" />
      </${Form}></${Fold}>
  </${Listing}>`;
}

function TopicPermissions({ name }) {
  const { data, error, refresh } = usePoll(`users/${path(name)}/topic-permissions`);
  const allow = async ({ vhost, exchange, write, read }) => {
    await send("PUT", `topic-permissions/${path(vhost, name)}`, { exchange, write, read });
    refresh();
    return `'${name}' may use these keys with '${exchange}' in vhost '${vhost}'.`;
  };
  const rows = (data ?? []).map(({ vhost, exchange, write, read }) => [
    vhost,
    exchange || "(all exchanges)",
    code(write),
    code(read),
    html`<${Confirm} button="Clear" tone="quiet"
      title=${`Allow '${name}' every key with '${exchange}'?`}
      text=${`'${name}' may use every key with exchange '${exchange}' in vhost '${vhost}' then.`}
      where=${`topic-permissions/${path(vhost, name, exchange)}`} after=${refresh} />`,
  ]);
  return html`<${Listing} id="topic-permissions" title="Topic permissions" data=${data}
      error=${error} rows=${rows} keys=${data?.map(({ vhost, exchange }) => path(vhost, exchange))}
      heads=${["Vhost", "Exchange", "Write", "Read", ""]}
      empty="The user may use every routing key with topic exchanges.">
    <${Fold} title="Set topic permissions">
      <${Form} label="Set topic permissions" button="Set" action=${allow}>
        <${VhostField} />
        <${Field} label="Exchange" name="exchange" required hint="a topic exchange: amq.topic" />
        <${Field} label="Write" name="write" value=".*" hint="routing keys, as a pattern" />
        <${Field} label="Read" name="read" value=".*" hint="binding keys, as a pattern" />
      </${Form}></${Fold}>
  </${Listing}>`;
}

export function User({ names }) {
  const [, name] = names;
  useTitle(name);
  const where = `users/${path(name)}`;
  const { data: user, error, refresh } = usePoll(where);
  const head = html`<p class="crumbs"><a href="#/users">Users</a></p>`;
  if (!user) {
    return html`${head}<h1>${name}</h1><${Awaited} error=${error} onRetry=${refresh} />`;
  }
  const change = async ({ password, tags }) => {
    await send("PUT", where, { password, tags });
    refresh();
    return "Password and tags are changed.";
  };
  const tags = user.tags ?? [];
  return html`${head}<div class="title"><h1>${name}</h1>
      ${tags.map((tag) => html`<${Badge} key=${tag}>${tag}</${Badge}>`)}</div>
    <${Problem} error=${error} />
    <${Permissions} name=${name} />
    <${TopicPermissions} name=${name} />
    <${Section} id="account" title="Account">
      <${Fold} title="Change password and tags">
        <${Form} label="Change user" button="Change" action=${change} clear>
          <${UserFields} tags=${tags.join(",")} />
        </${Form}></${Fold}>
    </${Section}>
    <${Section} id="remove" title="Delete"><div class="buttons">
      <${Confirm} button="Delete" title=${`Delete user '${name}'?`} name=${name}
        text="The user's connections are closed."
        where=${where} after=${() => leave(names, "users")} />
    </div></${Section}>`;
}
