// Fills sections with what they show: those near the view at once, the others bit by bit in the pauses between other
// work, so that search, the keyboard and screen readers reach them too.

import { replace } from "./elements.js";

const MARGIN = "100%"; // Of the height of the view, above and below it.
const SLICE_MS = 8;
const PAUSE_MS = 25;
const shown = new WeakMap(); // By section: the card for which it was filled last, or will be.
const waiting = new Map(); // By section: how to make its contents.
const near = new Set();
let first = 8; // So many sections are in view when a page opens, before the observer says so.
let timer = null;

// Have the section show the card, whose contents `make` returns.
export function fill(section, card, make) {
  if (shown.get(section) === card) return;
  if (!shown.has(section)) observer.observe(section);
  shown.set(section, card);
  waiting.set(section, make);
  if (near.has(section) || section.contains(document.activeElement) || first-- > 0) fillNow(section);
  else if (timer === null) timer = setTimeout(fillSome, PAUSE_MS);
}

export function forget(section) {
  observer.unobserve(section);
  near.delete(section);
  waiting.delete(section);
  shown.delete(section);
}

function fillNow(section) {
  const make = waiting.get(section);
  waiting.delete(section);
  if (make) replace(section, ...make());
}

function fillSome() {
  const end = performance.now() + SLICE_MS;
  for (const section of waiting.keys()) {
    fillNow(section);
    if (performance.now() > end) break;
  }
  timer = waiting.size ? setTimeout(fillSome, PAUSE_MS) : null;
}

const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!shown.has(target)) continue;
    if (isIntersecting) near.add(target);
    else near.delete(target);
    if (isIntersecting) fillNow(target);
  }
}, { rootMargin: `${MARGIN} 0px` });
