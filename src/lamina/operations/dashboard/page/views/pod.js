// One pod with its shares, its limits in the manifest, and why it waits.

import { link } from "../address.js";
import { compute, exactMemory, memory, memoryOf } from "../formats.js";
import { Lines, Panel } from "../parts.js";
import { html } from "../rendering.js";

const COLUMNS = {
  Container: (share) => share.container,
  GPU: (share) => html`<a href=${link("gpu", [share.gpu])} title=${share.gpu}>${share.index ?? share.gpu}</a>`,
  Mode: (share) => share.mig || share.mode,
  Memory: memoryOf,
  "In use": (share) => memory(share.used_mib),
  Peak: (share) => memory(share.peak_mib),
  Borrowed: (share) => (share.most_mib > share.memory_mib ? memory(share.borrowed_mib) : ""),
  Physical: (share) => exactMemory(share.physical_mib),
  Compute: compute,
  "GPU time": (share) => (share.busy_percent === null ? "not known" : `${share.busy_percent} %`),
};

export function Pod({ known, address: { path: [namespace = "", name = ""] } }) {
  const [, pod] = known.podNamed(namespace, name) ?? [];
  return html`
    <header class="head">
      <p class="crumbs"><a href=${link("pods")}>Pods</a> / <a href=${link("pods", [], { ns: namespace })}>${namespace}</a></p>
      <h1>${name}</h1>
    </header>
    ${pod ? contents(pod) : html`<p class="panel">${known.complete ? "This pod is gone." : "Reading the pods ..."}</p>`}`;
}

function contents(pod) {
  const facts = { State: pod.state, Phase: pod.phase, Node: pod.node, Dialect: pod.dialect };
  const limits = pod.limits.flatMap((each) => Object.entries(each.limits).map(([name, amount]) => `${each.container}: ${name} ${amount}`));
  return html`
    <dl class="facts">${Object.entries(facts).filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <${Part} id="why" title="Why" lines=${pod.why.length ? pod.why : [pod.reason].filter(Boolean)} />
    <${Part} id="ways-out" title="Ways out" lines=${pod.ways_out} />
    <${Part} id="out-of-memory" title="Out of GPU memory" lines=${[pod.refused_memory].filter(Boolean)} />
    ${pod.shares.length ? html`<${Panel} id="shares" title="Shares"><div class="scroll" role="region" aria-label="Table of shares" tabindex="0"><table>
      <thead><tr>${Object.keys(COLUMNS).map((each) => html`<th scope="col">${each}</th>`)}</tr></thead>
      <tbody>${pod.shares.map((share) => html`<tr>${Object.values(COLUMNS).map((column) => html`<td>${column(share)}</td>`)}</tr>`)}</tbody>
    </table></div><//>` : null}
    <${Part} id="limits" title="Limits in the manifest" lines=${limits} />`;
}

function Part({ id, title, lines }) {
  return lines.length ? html`<${Panel} id=${id} title=${title}><${Lines} lines=${lines} /><//>` : null;
}
