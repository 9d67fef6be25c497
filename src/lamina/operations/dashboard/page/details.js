// The dialog about one pod. It stays open, and current, while the cluster changes.

import { compute, list, make, memory, memoryOf, replace } from "./elements.js";

let shown = null;

export function openDetails(dialog, uid, pods) {
  const key = document.activeElement?.dataset.key;
  shown = uid;
  drawDetails(dialog, pods);
  dialog.addEventListener("close", () => close(key), { once: true });
  if (!dialog.open) dialog.showModal();
}

// The browser gives the focus back only where its element was not drawn again meanwhile.
function close(key) {
  shown = null;
  [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key)?.focus();
}

export function drawDetails(dialog, pods) {
  if (shown === null) return;
  const pod = pods[shown];
  const body = dialog.querySelector("#details-body");
  if (pod === undefined) {
    replace(body, make("p", {}, "This pod is gone."));
    return;
  }
  dialog.querySelector("#details-title").textContent = `${pod.namespace}/${pod.name}`;
  replace(body, ...contents(pod));
}

function contents(pod) {
  const facts = { State: pod.state, Phase: pod.phase, Node: pod.node, Dialect: pod.dialect };
  const terms = Object.entries(facts).filter(([, value]) => value);
  return [
    make("dl", {}, ...terms.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    ...part("Why", pod.why.length ? pod.why : [pod.reason].filter(Boolean)),
    ...part("Ways out", pod.ways_out),
    ...part("Out of GPU memory", [pod.refused_memory].filter(Boolean)),
    ...shares(pod),
    ...part("Limits in the manifest", pod.limits.flatMap(limits)),
  ];
}

function part(title, lines) {
  return lines.length ? [make("h3", {}, title), list(lines)] : [];
}

export function limits(container) {
  return Object.entries(container.limits).map(([name, amount]) => `${container.container}: ${name} ${amount}`);
}

function known(amount, text) {
  return amount === null ? "not known" : text(amount);
}

const COLUMNS = {
  Container: (share) => share.container,
  GPU: (share) => `${share.index ?? ""} ${share.gpu}`.trim(),
  Mode: (share) => share.mig || share.mode,
  Memory: memoryOf,
  "In use": (share) => known(share.used_mib, memory),
  Peak: (share) => known(share.peak_mib, memory),
  Borrowed: (share) => (share.most_mib > share.memory_mib ? known(share.borrowed_mib, memory) : ""),
  Physical: (share) => memory(share.physical_mib),
  Compute: compute,
  "GPU time": (share) => known(share.busy_percent, (percent) => `${percent} %`),
};

function shares(pod) {
  if (!pod.shares.length) return [];
  const rows = pod.shares.map((share) =>
    make("tr", {}, ...Object.values(COLUMNS).map((column) => make("td", {}, column(share)))));
  const heads = Object.keys(COLUMNS).map((name) => make("th", { scope: "col" }, name));
  return [
    make("h3", {}, "Shares"),
    make("div", { class: "scroll" },
      make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows))),
  ];
}
