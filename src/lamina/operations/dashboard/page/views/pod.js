// One pod: its shares with what they use and used, why it waits, its events, and the commands to act.

import { link } from "../address.js";
import { MEMORY_AXIS, compute, exactMemory, memory, percent } from "../formats.js";
import { OnDemand } from "../ondemand.js";
import { Lines, Panel } from "../parts.js";
import { html } from "../rendering.js";
import { Timeline } from "../timeline.js";
import { Commands, Events, Source, moment } from "./acting.js";
import { stateOf } from "./columns.js";

export function Pod({ known, address: { path: [namespace = "", name = ""] } }) {
  const [uid, pod] = known.podNamed(namespace, name) ?? [];
  return html`
    <header class="head">
      <p class="crumbs"><a href=${link("pods")}>Pods</a> / <a href=${link("pods", [], { ns: namespace })}>${namespace}</a></p>
      <h1>${name}</h1>
    </header>
    ${pod ? html`<${Contents} key=${uid} uid=${uid} pod=${pod} known=${known} />`
    : html`<p class="panel">${known.loaded.pods ? "This pod is gone, or you may not list it." : "Reading the pods ..."}</p>`}`;
}

function Contents({ uid, pod, known }) {
  const limits = pod.limits.flatMap((each) => Object.entries(each.limits).map(([name, amount]) => `${each.container}: ${name} ${amount}`));
  return html`
    <dl class="facts panel">${facts(pod, known).filter(([, value]) => value).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <${Part} id="why" title="Why" lines=${pod.why.length ? pod.why : [pod.reason].filter(Boolean)} />
    <${Part} id="ways-out" title="Ways out" lines=${pod.ways_out} />
    <${Part} id="out-of-memory" title="Out of GPU memory" lines=${[pod.refused_memory].filter(Boolean)} />
    <${OnDemand} path=${`pod?uid=${encodeURIComponent(uid)}`} draw=${(found, problem) => html`
      ${pod.shares.map((share) => html`<${Share} key=${`${share.container} ${share.gpu}`} share=${share} known=${known} history=${found?.history} />`)}
      ${found && pod.shares.length ? html`<${Source} history=${found.history} />` : null}
      <${Part} id="limits" title="Limits in the manifest" lines=${limits} />
      ${found ? html`<${Commands} commands=${found.commands} /><${Events} events=${found.events} problem=${found.problem} />` : null}
      ${problem ? html`<p class="bad" role="status">${problem}</p>` : null}`} />`;
}

function facts(pod, known) {
  const node = pod.node && (known.nodesHidden ? pod.node : html`<a href=${link("node", [pod.node])}>${pod.node}</a>`);
  const priority = [pod.priority_class, pod.priority && `${pod.priority}`].filter(Boolean).join(", ");
  return Object.entries({
    State: stateOf(pod), Node: node, Workload: pod.workload, Since: pod.created === null ? "" : moment(pod.created), Dialect: pod.dialect,
    Priority: priority, ResourceClaims: pod.claims.join(", "),
  });
}

function Part({ id, title, lines }) {
  return lines.length ? html`<${Panel} id=${id} title=${title}><${Lines} lines=${lines} /><//>` : null;
}

function Share({ share, known, history }) {
  const points = history?.shares[`${share.container} ${share.gpu}`] ?? [];
  const { model } = known.gpus.get(share.gpu)?.gpu ?? {};
  const title = [`GPU ${share.index ?? share.gpu}`, model, share.mig && `MIG ${share.mig}`, share.mode].filter(Boolean).join(", ");
  const terms = Object.entries(shareFacts(share)).filter(([, value]) => value);
  return html`
    <section class="panel share-of" aria-label=${`Share of ${share.container}`}>
      <h2>${share.container}: ${known.nodesHidden ? title : html`<a href=${link("gpu", [share.gpu])} title=${share.gpu}>${title}</a>`}</h2>
      <dl class="facts">${terms.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
      ${points.length ? html`<div class="charts"><${Charts} share=${share} points=${points} /></div>` : null}
    </section>`;
}

// By priority on the GPU. A share without one waits for others too, but nothing says that it was meant to.
const LATENCY_CLASSES = { 0: "its requests come first", 1: "waits for requests of priority 0" };

// The figures of a share: what it may use, and what it uses.
export function shareFacts(share) {
  const limit = share.limit_mib ?? share.most_mib;
  const now = share.limit_mib !== null && share.limit_mib !== share.most_mib && share.mode === "quota";
  const lent = share.compute_meaning.startsWith("lends") ? Math.max(0, (share.busy_percent ?? 0) - share.cores) : 0;
  return {
    "Memory limit": share.mode === "timeslice" ? "none, shared by time slices" : exactMemory(share.most_mib)
      + (share.physical_mib < share.memory_mib ? `, ${exactMemory(share.physical_mib)} of it physical` : ""),
    "Guaranteed memory": share.most_mib > share.memory_mib && exactMemory(share.memory_mib),
    Borrowed: share.borrowed_mib > 0 && memory(share.borrowed_mib),
    "Limit now": now && exactMemory(share.limit_mib),
    "In use": share.used_mib === null ? "not known" : `${memory(share.used_mib)}, ${percent(share.used_mib, limit)}`,
    Peak: share.peak_mib !== null && memory(share.peak_mib),
    Spilled: share.spilled_mib > 0 && memory(share.spilled_mib),
    Compute: compute(share),
    "Latency class": LATENCY_CLASSES[share.priority],
    "GPU time": share.busy_percent !== null && `${share.busy_percent} %${lent ? `, ${lent} % of it lent` : ""}`,
  };
}

function Charts({ share, points }) {
  const times = points.map(([at]) => at);
  const column = (place) => points.map((point) => point[place]);
  return html`
    <${Timeline} times=${times} text=${memory} axis=${MEMORY_AXIS} label=${`Memory of ${share.container}`} series=${[
      { title: "In use", values: column(1), color: "--color-0" },
      { title: "Peak", values: column(4), color: "--color-2", dash: [2, 4] },
      { title: "Limit", values: column(3), color: "--color-1", dash: [7, 4] },
    ]} />
    <${Timeline} times=${times} text=${(value) => `${value} %`} top=${100} label=${`GPU time of ${share.container}`} series=${[
      { title: "GPU time", values: column(2), color: "--color-3" },
    ]} />`;
}
