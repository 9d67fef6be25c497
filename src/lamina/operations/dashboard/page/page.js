// Keeps the page current: events change what is known, the address what is chosen, and both what is drawn.

import { address, follow } from "./address.js";
import { listen } from "./events.js";
import { Known } from "./known.js";
import { html, render } from "./rendering.js";
import { Shell } from "./shell.js";

const SILENT_MS = 15_000;
const known = new Known();
let problem = "Connecting";
let heard = 0;
let drawing = false;
let drawn = () => {};

// Waits until a change is painted, so that a page shows what it has before it reads more of a large cluster.
async function take(kind, change) {
  if (kind === "signed out") {
    known.forget(); // What one viewer may see is not for the next.
    return;
  }
  heard = Date.now();
  if (kind === "change") known.take(change);
  const seen = kind === "change" && new Promise((go) => (drawn = go));
  show(known.lost ? `The command cannot follow the cluster: ${known.lost}. What is shown may be out of date.` : "");
  await seen;
}

// An empty problem is the only state that is live.
function show(sentence) {
  problem = sentence;
  drawSoon();
}

// Several changes within one frame are drawn once. Pages that are not in view get no frames, and a drawing each second.
function drawSoon() {
  if (drawing) return;
  drawing = true;
  const draw = () => {
    if (!drawing) return;
    drawing = false;
    try {
      render(html`<${Shell} known=${known} address=${address()} problem=${problem} />`, document.getElementById("page"));
    } finally {
      inNextFrame(drawn); // Then this one is painted.
    }
  };
  inNextFrame(draw);
}

function inNextFrame(act) {
  requestAnimationFrame(act);
  setTimeout(act, 1000);
}

setInterval(() => {
  if (heard && Date.now() - heard > SILENT_MS) show("The command does not answer. What is shown may be out of date.");
}, 1000);

follow(drawSoon);
drawSoon();
listen(() => `events?view=${encodeURIComponent(address().view)}`, take, show);
