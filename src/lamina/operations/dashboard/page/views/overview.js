// The cluster at a glance: capacity now and over time, what needs attention, and why pods wait.

import { link } from "../address.js";
import { counted, memory, number, percent } from "../formats.js";
import { Panel } from "../parts.js";
import { html, memo } from "../rendering.js";
import { Timeline } from "../timeline.js";
import { Attention } from "./attention.js";
import { Waiting } from "./waiting.js";

export function Overview({ known }) {
  return html`
    <h1>Overview</h1>
    <${Figures} cluster=${known.cluster} />
    <div class="columns">
      <${Course} points=${known.allocation} />
      <${Attention} known=${known} />
    </div>
    <${Waiting} known=${known} />`;
}

const Figures = memo(({ cluster }) => html`
  <section aria-label="Capacity"><dl class="figures" id="figures">
    <${Figure} name="Memory" value=${percent(cluster.granted_mib, cluster.memory_mib)} unit="granted"
      notes=${[`${memory(cluster.granted_mib)} of ${memory(cluster.memory_mib)}`, `Used: ${amount(cluster.used_mib, (mib) => `${part(cluster)}${memory(mib)}`)}`, ...missing(cluster)]}
      whole=${cluster.memory_mib} granted=${cluster.granted_mib} used=${cluster.used_mib} stranded=${cluster.stranded_mib} />
    <${Figure} name="Compute" value=${percent(cluster.granted_cores, cluster.cores)} unit="granted"
      notes=${[`${rounded(cluster.granted_cores / 100)} of ${counted(cluster.cores / 100, "GPU")}`, `GPU time used: ${amount(cluster.busy_percent, (busy) => `${busy}\u00a0%`)}`]}
      whole=${cluster.cores} granted=${cluster.granted_cores} used=${(cluster.busy_percent ?? 0) * cluster.cores / 100} />
    <${Figure} name="Stranded" value=${percent(cluster.stranded_mib, cluster.memory_mib)} unit="of memory"
      notes=${[`${memory(cluster.stranded_mib)} on ${counted(cluster.stranded_gpus, "GPU")}`, "Free, but no pod of the cluster fits"]}
      whole=${cluster.memory_mib} stranded=${cluster.stranded_mib} />
    <${Figure} name="GPUs" value=${number(cluster.gpus)} to=${link("map")}
      notes=${[`On ${counted(cluster.nodes, "node")}`, `${number(cluster.idle_gpus)} idle, ${number(cluster.unhealthy_gpus)} unhealthy, ${number(cluster.cordoned_gpus)} cordoned`]} />
    <${Figure} name="Pods with GPUs" value=${number(cluster.running_pods)} unit="run" to=${link("pods")}
      notes=${[`${number(cluster.waiting_pods)} wait or are refused`]} />
    ${cluster.cost_per_hour === null || cluster.cost_per_hour === undefined ? null : html`<${Cost} cluster=${cluster} />`}
  </dl></section>`);

// What is used is a part where figures of nodes are missing.
function part({ nodes_without_use: nodes }) {
  return nodes ? "at least " : "";
}

function missing({ nodes_without_use: nodes }) {
  return nodes ? [`Figures of ${counted(nodes, "node")} are missing`] : [];
}

// What metrics alone tell.
function amount(value, text) {
  return value === null || value === undefined ? "not known" : text(value);
}

function rounded(value) {
  return number(Math.round(10 * value) / 10);
}

function Figure({ name, value, unit = "", notes, to, ...parts }) {
  return html`
    <div class="panel">
      <dt>${to ? html`<a href=${to}>${name}</a>` : name}</dt>
      <dd><span><b>${value}</b> ${unit}</span>${parts.whole ? html`<${Meter} ...${parts} />` : null}
        ${notes.map((note) => html`<span class="quiet">${note}</span>`)}</dd>
    </div>`;
}

function Cost({ cluster }) {
  const note = cluster.unpriced_gpus ? `${counted(cluster.unpriced_gpus, "GPU")} without a price` : "All GPUs have a price";
  return html`<${Figure} name="Cost" value=${`${cluster.cost_per_hour.toFixed(2)} ${cluster.currency}`.trim()} unit="per hour" notes=${["Of what is granted", note]} />`;
}

// To scale: what is granted, with a line for what is used of it, and at the end what is stranded.
function Meter({ whole, granted = 0, used, stranded = 0 }) {
  const width = (part) => `width: ${Math.min(100, 100 * (part ?? 0) / Math.max(1, whole)).toFixed(2)}%`;
  return html`
    <span class="meter" aria-hidden="true">
      <span class="granted" style=${width(granted)}></span>
      <span class="used" style=${width(used)}></span>
      <span class="stranded" style=${width(stranded)}></span>
    </span>`;
}

const LINES = [
  { title: "Memory granted", column: 1, color: "--color-0" },
  { title: "Compute granted", column: 2, color: "--color-1", dash: [8, 4] },
  { title: "Memory stranded", column: 3, color: "--color-4", dash: [2, 3] },
  { title: "Memory used", column: 4, color: "--color-3", dash: [12, 3, 2, 3] },
];

const Course = memo(({ points }) => html`
  <${Panel} id="allocation" title="Granted, used and stranded over time">
    ${points.length ? html`<${Timeline} ...${course(points)} />` : html`<p class="quiet">Nothing has been recorded yet.</p>`}
  <//>`);

// What a point says holds until the next one, and the last one until now.
function course(points) {
  const last = points.at(-1);
  const now = Math.max(Date.now() / 1000, last[0] + 1);
  const all = [...points, [now, ...last.slice(1)]];
  const lines = LINES.filter(({ column }) => all.some((point) => point[column] !== null && point[column] !== undefined));
  return {
    times: all.map(([moment]) => moment),
    series: lines.map(({ column, ...line }) => ({ ...line, values: all.map((point) => point[column] ?? null) })),
    top: 100,
    text: (value) => `${value.toFixed(1)} %`,
    axis: { values: (_, values) => values.map((value) => `${value} %`) },
    label: "Percent of all GPUs; gaps are not known",
  };
}
