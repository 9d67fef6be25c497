// The form that asks whether pods would fit now.

import { ask } from "./events.js";
import { list, make, replace } from "./elements.js";

export function answerQuestions(form, place) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    replace(place, make("p", {}, "Asking ..."));
    const response = await ask(`fits?${new URLSearchParams(new FormData(form))}`);
    replace(place, ...(response === null ? [problem("No connection to the command.")] : await answer(response)));
  });
}

async function answer(response) {
  if (!response.ok) return [problem(`${await response.text()}.`)];
  const { fits, lines } = await response.json();
  return [make("p", { class: fits ? "good" : "warn" }, fits ? "It fits now." : "It does not fit now."), list(lines)];
}

function problem(sentence) {
  return make("p", { class: "bad" }, sentence);
}
