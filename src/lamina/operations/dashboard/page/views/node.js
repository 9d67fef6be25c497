// One node: each of its GPUs with its shares to scale.

import { link } from "../address.js";
import { commonStart, counted, exactMemory, memory, shorten } from "../formats.js";
import { Health } from "../health.js";
import { Lines, Signs } from "../parts.js";
import { html } from "../rendering.js";
import { held, portion } from "./cell.js";

export const READING = "Reading the nodes ...";
const MODES = {
  "": "idle", whole: "whole GPUs", quota: "shared by quota", timeslice: "shared by time slices", mps: "shared by MPS",
  mig: "divided by MIG", claims: "used by claims",
};

export function Node({ known, address: { path: [name = ""] } }) {
  const node = known.nodes[name];
  if (!node) return html`<h1>Node ${name}</h1><p class="panel">${known.loaded.nodes ? html`There is no node of this name with GPUs. <a href=${link("map")}>Map of all nodes</a>` : READING}</p>`;
  const facts = [node.pool && `pool ${node.pool}`, counted(node.gpus.length, "GPU"), node.driver && `driver ${node.driver}`, ...node.native];
  return html`
    <header class="head">
      <p class="crumbs"><a href=${link("map")}>Map</a> / Node</p>
      <h1>${node.name}</h1>
      <p class="quiet">${facts.filter(Boolean).join(", ")}</p>
      ${node.ready ? null : html`<p class="bad">Not ready: kubelet does not report, or the node is gone.</p>`}
      ${node.cordoned ? html`<p class="warn">Cordoned: Kubernetes places nothing new here.</p>` : null}
      ${node.notes.length ? html`<${Lines} lines=${node.notes} />` : null}
    </header>
    ${node.mig.length ? html`<section class="panel mig" aria-label="MIG"><h2>MIG</h2><${Lines} lines=${node.mig} /></section>` : null}
    <div class="gpus">${node.gpus.map((gpu) => html`<${GpuCard} key=${gpu.uuid} gpu=${gpu} known=${known} />`)}</div>
    <p class="quiet">In each GPU, the upper bar is memory and the lower bar is compute, both to scale, in the color of the namespace. The line in a share is the
      memory in use, where it is known. Hatched is free and stranded: none of the pods in this cluster would fit there. The
      strip below is the health of the GPU since this command started, for six hours at most: green is healthy, red is
      unhealthy, gray is not known.</p>`;
}

export function GpuCard({ gpu, known }) {
  const stranded = gpu.stranded ? " stranded" : "";
  const title = `GPU ${gpu.index}: ${gpu.model}`;
  return html`
    <section class="panel gpu" aria-label=${title}>
      <h2><a href=${link("gpu", [gpu.uuid])} title=${gpu.uuid}>${title}</a></h2>
      <p class="state">${modes(gpu)} ${gpu.healthy ? html`<span class="sign good">Healthy</span>` : null} <${Signs} gpu=${gpu} /></p>
      <p class="quiet">${granted(gpu)}</p>
      <${Shares} gpu=${gpu} known=${known} />
      <div class=${`bar compute${stranded}`} aria-hidden="true">${gpu.parts.map((part) => html`
        <span class="share" style=${shareStyle(known, part, part.whole ? 1 : part.cores / Math.max(1, gpu.cores_capacity))}></span>`)}</div>
      <${Health} spans=${gpu.health} />
    </section>`;
}

// The shares of a GPU as parts of a bar, each of which leads to its pod.
export function Shares({ gpu, known }) {
  const starts = startsOf(gpu.parts);
  return html`
    <div class=${`bar memory${gpu.stranded ? " stranded" : ""}`} role="group" aria-label=${`Shares of GPU ${gpu.index}`}>
      ${gpu.parts.map((part) => html`<${Share} key=${part.pod || part.name} gpu=${gpu} part=${part} start=${starts.get(part.namespace)} known=${known} />`)}
    </div>`;
}

// By namespace, how many letters of the names to leave out. The color tells the namespace, so where a GPU has several,
// names have what differs within one.
function startsOf(parts) {
  const names = new Map();
  for (const { namespace, name } of parts) names.set(namespace, [...(names.get(namespace) ?? []), name]);
  const own = (namespace) => (names.size > 1 && namespace ? namespace.length + 1 : 0);
  return new Map([...names].map(([namespace, all]) => [namespace, Math.max(own(namespace), commonStart(all))]));
}

function Share({ gpu, part, start, known }) {
  const text = `${part.name}: ${held(gpu, part)}`;
  const style = shareStyle(known, part, portion(gpu, part));
  const name = `${start > part.namespace.length + 1 ? "…" : ""}${part.name.slice(start)}`;
  if (!part.pod || !part.namespace) return html`<span class="share others" title=${text} style=${style}>${name}</span>`;
  const used = part.used_mib === null ? null
    : html`<span class="used" style=${`width: ${Math.min(100, 100 * part.used_mib / Math.max(1, part.memory_mib))}%`}></span>`;
  return html`<a class=${`share${name.startsWith("…") ? " cut" : ""}`} href=${link("pod", [part.namespace, part.name.slice(part.namespace.length + 1)])} title=${text} aria-label=${text} style=${style}>${shorten(name)}${used}</a>`;
}

function shareStyle(known, part, width) {
  return `width: ${(100 * Math.min(1, width)).toFixed(3)}%; --color: ${known.colors.of(part.namespace)}${width ? "" : "; display: none"}`;
}

function granted(gpu) {
  const of = html`<span title=${`${exactMemory(gpu.taken_mib)} of ${exactMemory(gpu.capacity_mib)}`}>${memory(gpu.taken_mib)} of ${memory(gpu.capacity_mib)}</span>`;
  if (gpu.native) return `${memory(gpu.capacity_mib)}, ${counted(gpu.parts.length, "pod")}`;
  if (gpu.mode === "mig" && !gpu.taken_cores) return html`${of}, ${gpu.taken_slots} of ${counted(gpu.slots, "MIG device")} in use`;
  return html`${of}, ${gpu.taken_cores} of ${gpu.cores_capacity} % compute, ${gpu.taken_slots} of ${counted(gpu.slots, "slot")} granted`;
}

function modes(gpu) {
  const shared = MODES[gpu.mode] ?? gpu.mode;
  const physical = gpu.capacity_mib > gpu.memory_mib ? `; ${memory(gpu.memory_mib)} physical` : "";
  const all = gpu.native ? [...(gpu.mode ? [shared] : []), `allocated by kubelet as ${gpu.native}`] : [shared];
  return `Mode: ${all.join(", ")}${physical}.`;
}
