// Which nodes and GPUs the map shows, and in which groups.

export const STATES = [
  ["", "all GPUs"], ["unhealthy", "unhealthy"], ["not-ready", "on nodes that are not ready"], ["cordoned", "cordoned"],
  ["stranded", "stranded"], ["idle", "idle"],
];
export const GROUPS = [["", "nothing"], ["pool", "node pool"], ["model", "model"], ["namespace", "namespace"]];

const MATCHES = {
  unhealthy: (gpu) => !gpu.healthy,
  "not-ready": (_, node) => !node.ready,
  cordoned: (gpu, node) => gpu.cordoned || node.cordoned,
  stranded: (gpu) => gpu.stranded,
  idle: (gpu) => !gpu.parts.length && !gpu.mode,
};
const kept = new WeakMap(); // By card of a node: what was shown of it last, so that it stays the same list.

// The nodes with the GPUs of them that match, as { card, gpus }.
export function shown(known, { q = "", state = "" }) {
  const words = q.trim().toLowerCase();
  const matches = MATCHES[state];
  const found = [];
  for (const { card } of known.orderedNodes.entries) {
    const gpus = !words && !matches ? card.gpus : same(card, card.gpus.filter((gpu) =>
      (!matches || matches(gpu, card)) && (!words || named(card, gpu, words))));
    if (gpus.length || (!words && !matches)) found.push({ card, gpus });
  }
  return found;
}

function named(node, gpu, words) {
  return [node.name, gpu.uuid, gpu.model, ...gpu.parts.map(({ name }) => name)].some((name) => name.toLowerCase().includes(words));
}

// The list of before where it has the same GPUs, so that nothing is drawn again.
function same(card, gpus) {
  const before = kept.get(card);
  if (before && before.length === gpus.length && before.every((gpu, at) => gpu === gpus[at])) return before;
  kept.set(card, gpus);
  return gpus;
}

// As { title, nodes }, in the order of titles.
export function grouped(nodes, by) {
  if (!GROUPS.some(([name]) => name && name === by)) return nodes.length ? [{ title: "All nodes", nodes }] : [];
  const groups = new Map();
  for (const node of nodes) {
    for (const [title, gpus] of pieces(node, by)) {
      if (!groups.has(title)) groups.set(title, []);
      groups.get(title).push({ card: node.card, gpus });
    }
  }
  return [...groups].sort(([one], [other]) => (one < other ? -1 : 1)).map(([title, found]) => ({ title, nodes: found }));
}

// The GPUs of a node by the title of their group. A GPU that several namespaces share is in the group of each.
function pieces({ card, gpus }, by) {
  if (by === "pool") return [[card.pool || "no node pool", gpus]];
  const titles = by === "model" ? (gpu) => [gpu.model] : namespaces;
  const found = new Map();
  for (const gpu of gpus) {
    for (const title of titles(gpu)) found.set(title, [...(found.get(title) ?? []), gpu]);
  }
  return [...found].map(([title, some]) => [title, some.length === gpus.length ? gpus : some]);
}

function namespaces(gpu) {
  const found = new Set(gpu.parts.map(({ namespace }) => namespace || "claims and other namespaces"));
  return found.size ? [...found] : ["(idle)"];
}
