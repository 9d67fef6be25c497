// "My pods": the pods of one namespace, for the people who run them.

import { chart, readings } from "./chart.js";
import { limits } from "./details.js";
import { compute, counted, list, make, memory, percent, replace, words } from "./elements.js";

const MAX_PODS = 100;
const STATES = { running: "runs", pending: "is pending", refused: "is refused", deleted: "is deleted" };

export function drawNamespaces(chooser, pods, chosen) {
  const names = [...new Set([chosen, ...Object.values(pods).map((pod) => pod.namespace)])].sort();
  if (names.join("\n") !== [...chooser.options].map((option) => option.value).join("\n")) {
    replace(chooser, ...names.map((name) => make("option", { value: name }, name)));
  }
  chooser.value = chosen;
}

export function drawMine(place, note, known, namespace, open) {
  const own = known.orderedPods.entries.filter(({ card }) => card.namespace === namespace);
  // Pods that wait come first, because something can be done about them.
  const found = [...own.filter(({ card }) => card.state !== "running"), ...own.filter(({ card }) => card.state === "running")];
  const cards = found.slice(0, MAX_PODS).map(({ id, card }) => drawPod(id, card, known, open));
  const none = `No pod in the namespace ${namespace} requests or holds a GPU.`;
  replace(place, ...(cards.length ? cards : [make("p", {}, none)]));
  const hidden = found.length - MAX_PODS;
  note.textContent = hidden > 0 ? `${counted(hidden, "more pod")} not shown; the view of the cluster has a filter.` : "";
}

function drawPod(uid, pod, known, open) {
  const opener = make("button", { type: "button", "data-key": `mine ${uid}` }, pod.name);
  opener.addEventListener("click", () => open(uid));
  const phase = pod.state === "running" && pod.phase !== "Running" ? `, and its phase is ${pod.phase}` : "";
  const asked = pod.limits.flatMap(limits).join("; ");
  return make("article", { class: "group" },
    make("h3", {}, opener, ` ${STATES[pod.state] ?? pod.state}${pod.node ? ` on ${pod.node}` : ""}${phase}`),
    pod.reason ? make("p", {}, ...words(pod.reason)) : null,
    pod.ways_out.length ? make("p", { class: "quiet" }, "Ways out:") : null,
    pod.ways_out.length ? list(pod.ways_out) : null,
    pod.refused_memory ? make("p", { class: "bad" }, `Out of GPU memory. ${pod.refused_memory}`) : null,
    ...pod.shares.map((share) => drawShare(uid, share, known)),
    asked ? make("p", { class: "quiet" }, `Limits in the manifest: ${asked}`) : null);
}

function drawShare(uid, share, known) {
  const terms = Object.entries(facts(share)).filter(([, value]) => value);
  const points = readings(known, uid, share);
  const limit = share.limit_mib ?? share.most_mib;
  return make("section", { class: "mine", "aria-label": `Share of ${share.container}` },
    make("h4", { title: share.gpu }, `${share.container}: ${gpuOf(share, known)}`),
    make("dl", {}, ...terms.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    make("div", { class: "charts" },
      chart("Memory", points.map(([second, used]) => [second, used]), limit, memory),
      chart("GPU time", points.map(([second, , busy]) => [second, busy]), 100, (busy) => `${busy} %`)));
}

function gpuOf(share, known) {
  const model = known.nodes[share.node]?.gpus.find((gpu) => gpu.uuid === share.gpu)?.model;
  const parts = [`GPU ${share.index ?? share.gpu}`, model, share.mig && `MIG ${share.mig}`, share.mode];
  return parts.filter(Boolean).join(", ");
}

function facts(share) {
  const now = share.limit_mib !== null && share.limit_mib !== share.most_mib && share.mode === "quota";
  const lent = share.compute_meaning.startsWith("lends") ? Math.max(0, (share.busy_percent ?? 0) - share.cores) : 0;
  return {
    "Memory limit": share.mode === "timeslice" ? "none, shared by time slices" : memory(share.most_mib)
      + (share.physical_mib < share.memory_mib ? `, ${memory(share.physical_mib)} of it physical` : ""),
    "Guaranteed memory": share.most_mib > share.memory_mib && memory(share.memory_mib),
    Borrowed: share.borrowed_mib > 0 && memory(share.borrowed_mib),
    "Limit now": now && memory(share.limit_mib),
    "In use": share.used_mib === null ? "not known"
      : `${memory(share.used_mib)}, ${percent(share.used_mib, share.limit_mib ?? share.most_mib)}`,
    Peak: share.peak_mib !== null && memory(share.peak_mib),
    Spilled: share.spilled_mib > 0 && memory(share.spilled_mib),
    Compute: compute(share),
    "GPU time": share.busy_percent !== null && `${share.busy_percent} %${lent ? `, ${lent} % of it lent` : ""}`,
  };
}
