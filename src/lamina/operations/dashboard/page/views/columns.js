// The columns of the table of pods: what each shows, and by what it sorts.

import { link } from "../address.js";
import { age, compute, counted, exactMemory, memory, memoryOf, percent, shorten } from "../formats.js";
import { Lines, Words } from "../parts.js";
import { html } from "../rendering.js";
import { Spark } from "../spark.js";

const WINDOW_S = 300;
const GAP_S = 20; // No reading for so long leaves a gap in a line.

const sum = (pod, amount) => pod.shares.reduce((total, share) => total + (amount(share) ?? 0), 0);
const known = (pod, amount) => (pod.shares.some((share) => amount(share) !== null) ? sum(pod, amount) : -1);
const each = (pod, text) => pod.shares.map((share) => html`<div>${text(share)}</div>`);

// By key: the title, the cell of a pod, and its value for sorting, of which numbers sort the largest first.
export const COLUMNS = {
  namespace: { title: "Namespace", value: (pod) => pod.namespace,
    cell: ({ pod, color }) => html`<span><span class="swatch" style=${`--color: ${color}`} aria-hidden="true"></span> <span title=${pod.namespace}>${shorten(pod.namespace, 28)}</span></span>` },
  pod: { title: "Pod", value: (pod) => pod.name,
    cell: ({ pod }) => html`<a href=${link("pod", [pod.namespace, pod.name])} title=${pod.name}>${shorten(pod.name, 40)}</a>` },
  workload: { title: "Workload", value: (pod) => pod.workload, cell: ({ pod }) => html`<span title=${pod.workload}>${shorten(pod.workload, 32)}</span>` },
  state: { title: "State", value: stateOf, cell: ({ pod }) => html`<span class=${`state ${pod.state}`}>${stateOf(pod)}</span>` },
  node: { title: "Node", value: (pod) => pod.node, cell: ({ pod, hidden }) => (pod.node && !hidden ? html`<a href=${link("node", [pod.node])} title=${pod.node}>${shorten(pod.node, 24)}</a>` : shorten(pod.node, 24)) },
  gpu: { title: "GPU", value: (pod) => pod.shares[0]?.index ?? -1,
    cell: ({ pod, hidden }) => each(pod, (share) => {
      const text = `${share.index ?? shorten(share.gpu, 12)}${share.mig ? ` (${share.mig})` : ""}`;
      return hidden ? text : html`<a href=${link("gpu", [share.gpu])} title=${share.gpu}>${text}</a>`;
    }) },
  memory: { title: "Memory", value: (pod) => sum(pod, (share) => share.memory_mib), cell: ({ pod }) => each(pod, (share) => html`<span title=${exactMemory(share.memory_mib)}>${memoryOf(share)}</span>`) },
  compute: { title: "Compute", value: (pod) => sum(pod, (share) => (share.mode === "whole" ? 100 : share.cores)), cell: ({ pod }) => each(pod, compute) },
  used: { title: "In use", value: (pod) => known(pod, (share) => share.used_mib),
    cell: ({ pod, use, readAt }) => each(pod, (share) => html`<${Use} share=${share} points=${use?.[`${share.container} ${share.gpu}`]} readAt=${readAt} place=${1}
      top=${share.limit_mib ?? share.most_mib} text=${share.used_mib === null ? "not known" : `${memory(share.used_mib)}, ${percent(share.used_mib, share.limit_mib ?? share.most_mib)}`} name="Memory" />`) },
  peak: { title: "Peak", value: (pod) => known(pod, (share) => share.peak_mib), cell: ({ pod }) => each(pod, (share) => memory(share.peak_mib)) },
  busy: { title: "GPU time", value: (pod) => known(pod, (share) => share.busy_percent),
    cell: ({ pod, use, readAt }) => each(pod, (share) => html`<${Use} share=${share} points=${use?.[`${share.container} ${share.gpu}`]} readAt=${readAt} place=${2}
      top=${100} text=${share.busy_percent === null ? "not known" : `${share.busy_percent} %`} name="GPU time" />`) },
  priority: { title: "Priority", value: (pod) => pod.priority, cell: ({ pod }) => pod.priority_class || pod.priority },
  age: { title: "Age", value: (pod) => (pod.created === null ? -1 : Date.now() / 1000 - pod.created), cell: ({ pod }) => (pod.created === null ? "" : age(pod.created)) },
  reason: { title: "Reason and ways out", value: (pod) => pod.reason, cell: reason },
};
export const USUAL = ["namespace", "pod", "state", "node", "gpu", "memory", "used", "busy", "age", "reason"];

export function stateOf(pod) {
  return pod.state === "running" && pod.phase !== "Running" ? pod.phase || pod.state : pod.state;
}

function reason({ pod }) {
  const lines = [pod.refused_memory && `Out of GPU memory. ${pod.refused_memory}`].filter(Boolean);
  if (!pod.reason && !lines.length) return null;
  return html`
    ${pod.reason ? html`<${Words} text=${pod.reason} />` : null}
    ${lines.map((line) => html`<div class="bad">${line}</div>`)}
    ${pod.ways_out.length ? html`<details aria-label="Ways out"><summary>${counted(pod.ways_out.length, "way")} out</summary><${Lines} lines=${pod.ways_out} /></details>` : null}`;
}

// What a share uses now, and a small line of the last minutes where there are readings.
function Use({ share, points, readAt, place, top, text, name }) {
  const values = (points ?? []).map((point) => [point[0] - readAt + WINDOW_S, point[place]]);
  const line = values.some(([, value]) => value !== null);
  return html`<span class="use">${text}${line ? html`
    <${Spark} values=${values} from=${0} to=${WINDOW_S} top=${top} gap=${GAP_S} label=${`${name} of ${share.container} over the last minutes`} width=${72} height=${20} />` : null}</span>`;
}
