// The form that replays a cluster dump: today's placement against that of policies.

import { shape } from "./chart.js";
import { counted, list, make, replace } from "./elements.js";
import { ask } from "./events.js";

const WIDTH = 960;
const HEIGHT = 140;
const MAX_REASONS = 10;

export function replayDumps(form, place) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [file] = form.elements.dump.files;
    replace(place, make("p", {}, "Replaying ..."));
    const response = await ask("replay", { method: "POST", body: file });
    replace(place, ...(response === null ? [problem("No connection to the command.")] : await answer(response)));
  });
}

async function answer(response) {
  if (response.status === 405) return [problem("This dashboard replays no dumps. Run `lamina dashboard` on your machine.")];
  if (!response.ok) return [problem(`${await response.text()}.`)];
  const { size, notes, results } = await response.json();
  return [
    make("p", {}, `${size} were replayed.`),
    ...(notes.length ? [list(notes)] : []),
    table(results),
    ...chart("Allocated", results, 1, "all GPUs"),
    ...chart("Stranded", results, 2, "what is free"),
    ...results.flatMap(reasons),
  ];
}

function problem(sentence) {
  return make("p", { class: "bad" }, sentence);
}

function percent(value) {
  return `${value.toFixed(1)} %`;
}

function table(results) {
  const head = ["Policy", "Allocated", "Stranded", "Pods placed", "Pods that wait"];
  const rows = results.map((each) => make("tr", {},
    make("th", { scope: "row" }, each.policy),
    ...[percent(each.allocated), percent(each.stranded), each.placed, each.waiting].map((text) => make("td", {}, `${text}`))));
  return make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...rows));
}

function chart(title, results, column, whole) {
  const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const most = Math.max(1, ...results.flatMap(({ points }) => points.map(([pods]) => pods)));
  results.forEach(({ points }, place) => {
    const written = [[0, 0, 0], ...points].map((point) => {
      const y = HEIGHT - 2 - (HEIGHT - 4) * Math.min(100, point[column]) / 100;
      return `${(WIDTH * point[0] / most).toFixed(1)},${y.toFixed(1)}`;
    });
    drawing.append(shape("polyline", { class: `line course${place + 1}`, points: written.join(" ") }));
  });
  const keys = results.map(({ policy }, place) =>
    make("li", {}, make("span", { class: `key course${place + 1}`, "aria-hidden": "true" }), ` ${policy}`));
  const caption = `${title} in percent of ${whole}, as the pods come from the oldest to the newest.`;
  return [make("figure", {}, drawing, make("figcaption", {}, caption)), make("ul", { class: "keys" }, ...keys)];
}

function reasons({ policy, reasons: found }) {
  if (!found.length) return [];
  const lines = found.slice(0, MAX_REASONS).map(([reason, count]) => `${counted(count, "pod")}: ${reason}`);
  const more = found.length - MAX_REASONS;
  return [make("h3", {}, `Why pods wait: ${policy}`), list(more > 0 ? [...lines, `${counted(more, "more reason")}`] : lines)];
}
