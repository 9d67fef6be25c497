// The pods that request or hold GPUs, as a table.

import { change, link } from "../address.js";
import { compute, counted, memoryOf, shorten } from "../formats.js";
import { Choice, Search } from "../parts.js";
import { html, memo } from "../rendering.js";

const MAX_ROWS = 200;
const STATES = [["", "all"], ["running", "running"], ["pending", "pending"], ["refused", "refused"], ["deleted", "deleted"]];

export function Pods({ known, address: { query } }) {
  const { q = "", ns = known.nodesHidden ? known.ownNamespace : "", state = "" } = query;
  const words = q.trim().toLowerCase();
  const found = known.orderedPods.entries.filter(({ name, card }) => (!words || `${name} ${card.node}`.toLowerCase().includes(words))
    && (!ns || card.namespace === ns) && (!state || card.state === state));
  const hidden = found.length - MAX_ROWS;
  return html`
    <h1>Pods</h1>
    <form class="fields" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${Search} id="words" label="Pods and nodes whose name contains" value=${q} type=${(text) => change({ q: text }, { typing: true })} />
      <${Choice} id="namespace" label="Namespace" value=${ns} options=${[["", "all"], ...known.namespaces().map((each) => [each, each])]} choose=${(each) => change({ ns: each })} />
      <${Choice} id="state" label="State" value=${state} options=${STATES} choose=${(each) => change({ state: each })} />
      <output id="shown" for="words namespace state">${counted(found.length, "pod")}</output>
    </form>
    <div class="panel scroll" role="region" aria-label="Table of pods" tabindex="0">
      <table>
        <thead><tr>${["Namespace", "Pod", "State", "Node", "GPU", "Memory", "Compute"].map((each) => html`<th scope="col">${each}</th>`)}</tr></thead>
        <tbody id="pod-rows">${found.slice(0, MAX_ROWS).map(({ id, card }) => html`<${Row} key=${id} card=${card} />`)}</tbody>
      </table>
    </div>
    <p class="quiet" id="more-pods">${hidden > 0 ? `${counted(hidden, "more pod")} not shown; search to find them.` : ""}</p>`;
}

const Row = memo(({ card }) => {
  const column = (text) => html`<td>${card.shares.map((share) => html`<div>${text(share)}</div>`)}</td>`;
  return html`
    <tr><td title=${card.namespace}>${shorten(card.namespace, 32)}</td>
      <th scope="row"><a href=${link("pod", [card.namespace, card.name])} title=${card.name}>${shorten(card.name, 40)}</a></th>
      <td>${card.state === "running" && card.phase !== "Running" ? card.phase : card.state}</td><td title=${card.node}>${shorten(card.node, 32)}</td>
      ${column((share) => `${share.index ?? share.gpu}${share.mig ? ` (${share.mig})` : ""}`)}${column(memoryOf)}${column(compute)}</tr>`;
});
