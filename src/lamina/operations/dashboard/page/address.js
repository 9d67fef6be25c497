// The address names the view and all that is chosen in it: #/VIEW/PART/PART?NAME=VALUE&NAME=VALUE.

let typed = ""; // The name of what is being typed, which makes one entry of the history.
let changed = () => {};

// The address now, as { view, path, query }. Without a view, `view` is empty.
export function address() {
  const [places, question] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [view, ...path] = places.split("/").map(decoded);
  return { view, path, query: Object.fromEntries(new URLSearchParams(question ?? "")) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// The link to a view. Names of the query without a value are left out.
export function link(view, path = [], query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const question = kept.length ? new URLSearchParams(kept).toString() : "";
  return `#/${[view, ...path].map(encodeURIComponent).join("/")}${question ? `?${question}` : ""}`;
}

// The link to this view with another query.
export function linkWith(changes) {
  const { view, path, query } = address();
  return link(view, path, { ...query, ...changes });
}

// Change the query. What is typed letter by letter is one step back, every other change one of its own.
export function change(changes, { typing = false } = {}) {
  const name = typing ? Object.keys(changes).join() : "";
  const to = linkWith(changes);
  if (to === location.hash) return;
  if (typing && typed === name) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  typed = name;
  changed();
}

export function open(to) {
  location.hash = to;
}

// Calls `draw` after each change of the address.
export function follow(draw) {
  changed = draw;
  window.addEventListener("popstate", () => {
    typed = "";
    draw();
  });
}
