// The map: each node with its GPUs, and on each GPU the shares, drawn to scale.

import { arrange, compute, counted, hue, list, make, memory } from "./elements.js";
import { fill, forget } from "./filling.js";
import { drawHealth } from "./health.js";

const MODES = {
  "": "idle", whole: "whole GPUs", quota: "shared by quota", timeslice: "shared by time slices", mps: "shared by MPS",
  mig: "divided by MIG", claims: "used by claims",
};
const drawn = new Map(); // By name: the section of a node.

export function drawNodes(place, nodes, words, open) {
  const found = words ? nodes.entries.filter(({ card }) => matches(card, words)) : nodes.entries;
  const names = new Set(nodes.entries.map(({ id }) => id));
  for (const [name, section] of drawn) {
    if (names.has(name)) continue;
    forget(section);
    drawn.delete(name);
  }
  arrange(place, found.map(({ id, card }) => sectionOf(id, card, open)));
  return found.length;
}

function matches(node, words) {
  return node.name.includes(words) || node.gpus.some((gpu) => gpu.parts.some((part) => part.name.includes(words)));
}

function sectionOf(name, node, open) {
  if (!drawn.has(name)) drawn.set(name, make("section", { class: "node", "aria-label": `Node ${name}` }, make("h3", {}, name)));
  const section = drawn.get(name);
  fill(section, node, () => contents(node, open));
  return section;
}

function contents(node, open) {
  const facts = [counted(node.gpus.length, "GPU"), node.driver && `driver ${node.driver}`, ...node.native];
  return [
    make("h3", {}, node.name),
    make("p", { class: "quiet" }, facts.filter(Boolean).join(", ")),
    node.ready ? null : make("p", { class: "bad" }, "Not ready: kubelet does not report, or the node is gone."),
    node.cordoned ? make("p", { class: "warn" }, "Cordoned: Kubernetes places nothing new here.") : null,
    node.notes.length ? list(node.notes) : null,
    node.mig.length ? make("p", { class: "state" }, "MIG:") : null,
    node.mig.length ? list(node.mig) : null,
    make("div", { class: "gpus" }, ...node.gpus.map((gpu) => drawGpu(gpu, open))),
  ].filter((each) => each !== null);
}

function drawGpu(gpu, open) {
  const title = `GPU ${gpu.index}: ${gpu.model}`;
  const taken = granted(gpu);
  const stranded = gpu.stranded ? " stranded" : "";
  return make("section", { class: "gpu", "aria-label": title },
    make("h4", { title: gpu.uuid }, title),
    make("p", { class: "state" }, ...states(gpu)),
    make("p", { class: "quiet" }, taken),
    make("div", { class: `bar memory${stranded}`, role: "group", "aria-label": `Shares of GPU ${gpu.index}` },
      ...gpu.parts.map((part) => button(gpu, part, open))),
    make("div", { class: `bar compute${stranded}`, "aria-hidden": "true" }, ...gpu.parts.map((part) => stripe(gpu, part))),
    ...drawHealth(gpu.health));
}

function granted(gpu) {
  const of = `${memory(gpu.taken_mib)} of ${memory(gpu.capacity_mib)}`;
  if (gpu.native) return `${memory(gpu.capacity_mib)}, ${counted(gpu.parts.length, "pod")}`;
  if (gpu.mode === "mig" && !gpu.taken_cores) return `${of}, ${gpu.taken_slots} of ${counted(gpu.slots, "MIG device")} in use`;
  return `${of}, ${gpu.taken_cores} of ${gpu.cores_capacity} % compute, ${gpu.taken_slots} of ${counted(gpu.slots, "slot")} granted`;
}

function states(gpu) {
  const mode = modes(gpu).join(", ");
  const physical = gpu.capacity_mib > gpu.memory_mib ? `; ${memory(gpu.memory_mib)} physical` : "";
  return [
    make("span", {}, `Mode: ${mode}${physical}. `),
    gpu.healthy ? make("span", { class: "good" }, "Healthy. ") : make("span", { class: "bad" }, `Unhealthy: ${gpu.reason} `),
    gpu.cordoned ? make("span", { class: "warn" }, "Cordoned. ") : "",
    gpu.stranded ? make("span", { class: "warn" }, "What is free is stranded.") : "",
  ];
}

function modes(gpu) {
  const shared = MODES[gpu.mode] ?? gpu.mode;
  if (!gpu.native) return [shared];
  return [...(gpu.mode ? [shared] : []), `allocated by kubelet as ${gpu.native}`];
}

function button(gpu, part, open) {
  if (!part.pod) return others(gpu, part);
  const used = part.used_mib === null ? [] : [`${memory(part.used_mib)} in use`];
  const amounts = [...held(gpu, part), ...used].join(", ");
  const made = make("button", {
    class: "share", type: "button", "data-key": `${gpu.uuid} ${part.pod}`, title: `${part.name}: ${amounts}`,
    "aria-label": `${part.name}: ${amounts}`,
  }, part.name);
  if (part.used_mib !== null) made.append(usedLine(part));
  made.addEventListener("click", () => open(part.pod));
  return toScale(made, part, width(gpu, part));
}

// Time slices have no memory and no compute of their own, and the compute of MIG devices is that of their profile.
function held(gpu, part) {
  if (part.unlimited) return ["memory and compute shared by time slices"];
  if (gpu.mode === "mig" && !part.cores) return [memory(part.memory_mib), ...part.instances];
  return [memory(part.memory_mib), `${compute(part)} compute`, ...part.instances];
}

// What a claim holds, or pods of which nothing else may be shown.
function others(gpu, part) {
  const amounts = held(gpu, part).join(", ");
  const title = `${part.name}: ${amounts}`;
  return toScale(make("div", { class: "share others", title }, part.name), part, width(gpu, part));
}

function width(gpu, part) {
  return part.unlimited ? 1 / gpu.parts.length : part.memory_mib / gpu.capacity_mib;
}

// How much of the share is in use, to scale in the share.
function usedLine(part) {
  const made = make("span", { class: "used" });
  made.style.width = `${Math.min(100, 100 * part.used_mib / Math.max(1, part.memory_mib))}%`;
  return made;
}

function stripe(gpu, part) {
  return toScale(make("div", { class: "share narrow" }), part, part.whole ? 1 : part.cores / gpu.cores_capacity);
}

function toScale(element, part, width) {
  element.style.width = `${Math.min(100, 100 * width)}%`;
  element.style.setProperty("--hue", hue(part.pod || part.name));
  if (width === 0) element.hidden = true;
  if (width < 0.06) element.classList.add("narrow");
  return element;
}
