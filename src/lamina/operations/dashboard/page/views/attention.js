// What people should look at first: a line of the command for each, which leads to where it is.

import { link } from "../address.js";
import { age } from "../formats.js";
import { Panel, Words } from "../parts.js";
import { html, memo } from "../rendering.js";

const SIGNS = { gpu: ["bad", "✕"], node: ["unknown", "?"], memory: ["bad", "!"], waiting: ["waiting", "…"] };
const OTHER = ["unknown", "!"];

export function Attention({ known }) {
  return html`<${Panel} id="attention" title="Needs attention"><${Rows} rows=${known.attention} known=${known} linked=${known.loaded.pods} /><//>`;
}

const Rows = memo(({ rows, known }) => (rows.length
  ? html`<ul class="attention">${rows.map((row) => html`<${Row} ...${row} known=${known} />`)}</ul>`
  : html`<p class="good">Nothing: GPUs and nodes are healthy, and no container ran out of GPU memory.</p>`));

function Row({ kind, text, link: to, since, known }) {
  const [name, sign] = SIGNS[kind] ?? OTHER;
  const href = to && address(to, known);
  return html`
    <li><span class=${`sign ${name}`} aria-hidden="true">${sign}</span>
      <span>${href ? html`<a href=${href}><${Words} text=${text} /></a>` : html`<${Words} text=${text} />`}
        ${since ? html` <span class="quiet">for ${age(since)}</span>` : null}</span></li>`;
}

// Pods are linked by their names, because a bookmark outlives a UID.
function address({ view, id }, known) {
  if (view !== "pod") return link(view, [id]);
  const pod = known.pods[id];
  return pod ? link("pod", [pod.namespace, pod.name]) : null;
}
