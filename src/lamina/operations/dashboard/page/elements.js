// Elements and words of the page. Texts are set as text, never as markup: names come from tenants.

export function make(tag, settings = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

export function list(lines) {
  return make("ul", {}, ...lines.map((line) => make("li", {}, ...words(line))));
}

// A sentence, in which commands are between backticks.
export function words(text) {
  return text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));
}

const NUMBERS = new Intl.NumberFormat("en-US");

export function number(amount) {
  return NUMBERS.format(amount);
}

export function counted(amount, one, several = `${one}s`) {
  return `${number(amount)} ${amount === 1 ? one : several}`;
}

export function memory(mib) {
  return `${number(mib)} MiB`;
}

export function percent(part, whole) {
  return whole ? `${(100 * part / whole).toFixed(1)} %` : "none";
}

export function compute(share) {
  if (share.whole || share.mode === "whole") return "whole";
  if (share.cores) return [`${share.cores} %`, share.compute_meaning].filter(Boolean).join(", ");
  return share.mode === "mig" ? "by profile" : "shared";
}

// What is guaranteed, and up to where more may be borrowed.
export function memoryOf(share) {
  if (share.mode === "timeslice") return "shared";
  return share.most_mib > share.memory_mib ? `${memory(share.memory_mib)} to ${memory(share.most_mib)}` : memory(share.memory_mib);
}

export function hue(uid) {
  let sum = 0;
  for (const letter of uid) sum = (31 * sum + letter.codePointAt(0)) % 360;
  return sum;
}

// Replace the children of `parent`, and keep the focus on what has the same data-key.
export function replace(parent, ...children) {
  keepFocus(parent, () => parent.replaceChildren(...children));
}

// Make these elements the children of `parent`. Those that are there already are left alone.
export function arrange(parent, children) {
  keepFocus(parent, () => {
    const kept = new Set(children);
    for (const each of [...parent.children]) if (!kept.has(each)) each.remove();
    let next = parent.firstElementChild;
    for (const child of children) {
      if (child === next) next = next.nextElementSibling;
      else parent.insertBefore(child, next);
    }
  });
}

function keepFocus(parent, change) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  change();
  if (focused !== undefined && document.activeElement?.dataset.key !== focused) {
    [...parent.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused)?.focus();
  }
}
