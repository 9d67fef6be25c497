// Pods that wait or are refused, in groups with one reason and the same ways out.

import { link } from "../address.js";
import { counted, number, shorten } from "../formats.js";
import { Lines, Panel, Words } from "../parts.js";
import { html, memo } from "../rendering.js";

const MAX_GROUPS = 50;

export function Waiting({ known }) {
  return html`<${Panel} id="waiting" title="Pods that wait or are refused"><${Groups} groups=${known.waiting} /><//>`;
}

const Groups = memo(({ groups }) => {
  if (!groups.length) return html`<p class="good">None.</p>`;
  const more = groups.length - MAX_GROUPS;
  return html`
    <div class="groups">${groups.slice(0, MAX_GROUPS).map((group) => html`<${Group} ...${group} />`)}</div>
    ${more > 0 ? html`<p class="quiet">${counted(more, "more reason is", "more reasons are")} not shown.</p>` : null}`;
});

function Group({ title, state, reason, ways_out, count, pods }) {
  const more = count - pods.length;
  return html`
    <article class="group">
      <h3>${title}</h3>
      <p><${Words} text=${reason || "It is not known why."} /></p>
      ${ways_out.length ? html`<p class="quiet">Ways out:</p><${Lines} lines=${ways_out} />` : null}
      <p class="names">${pods.map(([uid, name]) => html`<a key=${uid} href=${podLink(name)} title=${name}>${shorten(name)}</a>`)}
        ${more > 0 ? html`<a href=${link("pods", [], { state })}>and ${number(more)} more</a>` : null}</p>
    </article>`;
}

// The view of a pod by NAMESPACE/NAME. The name of a workload has a slash too.
function podLink(name) {
  const end = name.indexOf("/");
  return link("pod", [name.slice(0, end), name.slice(end + 1)]);
}
