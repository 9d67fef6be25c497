// What the command sends of cards that are known already: only what changed.

// The card with a patch. What changed is a new object, and everything else the same as before.
export function patched(card, patch) {
  const made = { ...card };
  for (const [name, value] of Object.entries(patch)) {
    made[name] = isByPosition(made[name], value)
      ? made[name].map((item, at) => (at in value ? patched(item, value[at]) : item)) : value;
  }
  return made;
}

// Where a list has as many items as before, patches of some of them come by their positions.
function isByPosition(known, value) {
  return Array.isArray(known) && value !== null && typeof value === "object" && !Array.isArray(value);
}

// Take cards, patches of cards and null for what is gone into the known cards, by id.
export function merge(known, changed) {
  for (const [id, change] of Object.entries(changed)) {
    if (change === null) delete known[id];
    else known[id] = id in known ? patched(known[id], change) : change;
  }
}
