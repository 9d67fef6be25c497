// Pods: those that wait, in groups with one reason, and the table of all.

import { arrange, compute, counted, list, make, memoryOf, words } from "./elements.js";

const MAX_ROWS = 500;
const MAX_GROUPS = 50;
const MAX_NAMES = 20;

const keys = new WeakMap(); // Of pods that wait: what the pods of a group have in common.
const rows = new WeakMap(); // Of pods.
let articles = new Map(); // By what they show.

export function drawWaiting(place, pods, open) {
  const groups = new Map();
  for (const entry of pods.entries) {
    if (entry.card.state !== "pending" && entry.card.state !== "refused") continue;
    const key = keyOf(entry.card);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(entry);
  }
  const shown = new Map([...groups].slice(0, MAX_GROUPS).map(([key, members]) => {
    const whole = JSON.stringify([key, members.length, ...members.slice(0, MAX_NAMES).map(({ id, name }) => [id, name])]);
    return [whole, articles.get(whole) ?? drawGroup(members, open)];
  }));
  articles = shown;
  const more = groups.size - MAX_GROUPS;
  const note = more > 0 ? `${more} more reasons are not shown.` : groups.size ? "" : "None.";
  arrange(place, [...shown.values(), ...(note ? [make("p", {}, note)] : [])]);
}

function keyOf(pod) {
  if (!keys.has(pod)) keys.set(pod, JSON.stringify([isWorkload(pod), pod.state, pod.reason, pod.ways_out]));
  return keys.get(pod);
}

// Workloads are named by kind and name; names of pods have no slash.
function isWorkload(pod) {
  return pod.name.includes("/");
}

function titleOf(members) {
  const first = members[0].card;
  if (isWorkload(first)) return `${counted(members.length, "workload")} whose pods are refused`;
  return `${counted(members.length, "pod")} ${first.state}`;
}

function drawGroup(members, open) {
  const first = members[0].card;
  const names = members.slice(0, MAX_NAMES).map(({ id, name }) => opener(id, `waiting ${id}`, open, name));
  const more = members.length - MAX_NAMES;
  return make("article", { class: "group" },
    make("h3", {}, titleOf(members)),
    make("p", {}, ...words(first.reason || "It is not known why.")),
    first.ways_out.length ? make("p", { class: "quiet" }, "Ways out:") : null,
    first.ways_out.length ? list(first.ways_out) : null,
    make("div", { class: "names" }, ...names, more > 0 ? `and ${more} more` : null));
}

function opener(uid, key, open, text) {
  const made = make("button", { type: "button", "data-key": key }, text);
  made.addEventListener("click", () => open(uid));
  return made;
}

export function drawTable(body, note, pods, words, open) {
  const matches = ({ name, card }) => name.includes(words) || card.node.includes(words);
  const found = words ? pods.entries.filter(matches) : pods.entries;
  const hidden = found.length - MAX_ROWS;
  arrange(body, found.slice(0, MAX_ROWS).map(({ id, card }) => rowOf(id, card, open)));
  note.textContent = hidden > 0 ? `${counted(hidden, "more pod")} not shown; use the filter to find them.` : "";
  return found.length;
}

function rowOf(uid, pod, open) {
  if (!rows.has(pod)) rows.set(pod, row(uid, pod, open));
  return rows.get(pod);
}

function row(uid, pod, open) {
  const column = (text) => make("td", {}, ...pod.shares.map((share) => make("span", {}, text(share))));
  return make("tr", {},
    make("td", {}, pod.namespace),
    make("th", { scope: "row" }, opener(uid, `row ${uid}`, open, pod.name)),
    make("td", {}, pod.state === "running" && pod.phase !== "Running" ? pod.phase : pod.state),
    make("td", {}, pod.node),
    column((share) => `${share.index ?? share.gpu}${share.mig ? ` (${share.mig})` : ""}`),
    column(memoryOf),
    column((share) => compute(share)));
}
