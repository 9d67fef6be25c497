// Pods: those that wait, in groups with one reason, and the table of all.

import { compute, counted, list, make, memory, replace, words } from "./elements.js";

const MOST_ROWS = 500;
const MOST_GROUPS = 50;
const MOST_NAMES = 20;

export function drawWaiting(place, pods, open) {
  const groups = new Map();
  for (const [uid, pod] of Object.entries(pods)) {
    if (pod.state !== "pending" && pod.state !== "refused") continue;
    const key = JSON.stringify([pod.state, pod.reason, pod.ways_out]);
    groups.set(key, [...(groups.get(key) ?? []), [uid, pod]]);
  }
  const shown = [...groups.values()].slice(0, MOST_GROUPS).map((members) => drawGroup(members, open));
  if (groups.size > MOST_GROUPS) shown.push(make("p", {}, `${groups.size - MOST_GROUPS} more reasons are not shown.`));
  replace(place, ...(shown.length ? shown : [make("p", {}, "None.")]));
}

function drawGroup(members, open) {
  const [, first] = members[0];
  const word = first.state === "refused" ? "refused" : "pending";
  const names = members.slice(0, MOST_NAMES).map(([uid, pod]) => opener(uid, pod, `waiting ${uid}`, open));
  const more = members.length - MOST_NAMES;
  return make("article", { class: "group" },
    make("h3", {}, `${counted(members.length, "pod")} ${word}`),
    make("p", {}, ...words(first.reason || "It is not known why.")),
    first.ways_out.length ? make("p", { class: "quiet" }, "Ways out:") : null,
    first.ways_out.length ? list(first.ways_out) : null,
    make("div", { class: "names" }, ...names, more > 0 ? `and ${counted(more, "more pod")}` : null));
}

function opener(uid, pod, key, open, text = `${pod.namespace}/${pod.name}`) {
  const made = make("button", { type: "button", "data-key": key }, text);
  made.addEventListener("click", () => open(uid));
  return made;
}

export function drawTable(body, note, pods, words, open) {
  const found = Object.entries(pods)
    .filter(([, pod]) => `${pod.namespace}/${pod.name}`.includes(words) || pod.node.includes(words))
    .sort(([, one], [, other]) => order(one).localeCompare(order(other), "en", { numeric: true }));
  const hidden = found.length - MOST_ROWS;
  replace(body, ...found.slice(0, MOST_ROWS).map(([uid, pod]) => row(uid, pod, open)));
  note.textContent = hidden > 0 ? `${counted(hidden, "more pod")} not shown; use the filter to find them.` : "";
  return found.length;
}

function order(pod) {
  return `${pod.namespace}/${pod.name}`;
}

function row(uid, pod, open) {
  const column = (text) => make("td", {}, ...pod.shares.map((share) => make("span", {}, text(share))));
  return make("tr", {},
    make("td", {}, pod.namespace),
    make("th", { scope: "row" }, opener(uid, pod, `row ${uid}`, open, pod.name)),
    make("td", {}, pod.state === "running" && pod.phase !== "Running" ? pod.phase : pod.state),
    make("td", {}, pod.node),
    column((share) => `${share.index ?? share.gpu}${share.mig ? ` (${share.mig})` : ""}`),
    column((share) => memory(share.memory_mib)),
    column((share) => compute(share)));
}
