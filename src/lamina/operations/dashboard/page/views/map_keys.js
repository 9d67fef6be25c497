// The keyboard on the map: it is one stop of Tab, and arrows move between GPUs and nodes.

const STOPS = ".cell, .tile .name";

// Exactly one element of the map can be reached by Tab: the one that had the focus last.
export function keepOneStop(place) {
  const map = place?.querySelector(".map");
  if (map && !map.querySelector('.cell[tabindex="0"], .name[tabindex="0"]')) map.querySelector(STOPS)?.setAttribute("tabindex", "0");
}

export function moveFocus(event) {
  const from = event.target.closest(STOPS);
  const step = STEPS[event.key];
  if (!from || !step || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const to = step([...event.currentTarget.querySelectorAll(STOPS)], from);
  if (!to) return;
  from.setAttribute("tabindex", "-1");
  to.setAttribute("tabindex", "0");
  to.focus();
}

const STEPS = {
  ArrowRight: (all, from) => all[all.indexOf(from) + 1],
  ArrowLeft: (all, from) => all[all.indexOf(from) - 1],
  ArrowDown: (all, from) => across(all.slice(all.indexOf(from) + 1), from, 1),
  ArrowUp: (all, from) => across(all.slice(0, all.indexOf(from)).reverse(), from, -1),
  Home: (all) => all[0],
  End: (all) => all.at(-1),
};

// The nearest of the same kind in the next row of the screen.
function across(others, from, direction) {
  const { top, left, height } = from.getBoundingClientRect();
  let row = null;
  let best = null;
  for (const other of others) {
    if (other.className !== from.className) continue;
    const place = other.getBoundingClientRect();
    if (direction * (place.top - top) < height / 2) continue;
    if (row === null) row = place.top;
    if (Math.abs(place.top - row) > height / 2) break;
    const distance = Math.abs(place.left - left);
    if (best === null || distance < best[0]) best = [distance, other];
  }
  return best?.[1];
}
