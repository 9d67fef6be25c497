// The stream of events, which is opened again when it ends. Viewers from elsewhere sign in with a token.

const AGAIN_MS = 2000;
const ENDED = "The command has ended. Start `lamina dashboard` again and open the address that it prints.";
let token = ""; // Only in memory: it is gone when the page is.

// `path` is that of the stream each time that it is opened. Calls `hear` with the kind and the data of each event, and waits
// for it, or that the viewer is signed out, and `show` with what is wrong.
export async function listen(path, hear, show) {
  let answer = window.firstAnswer;
  for (;;) {
    const response = await (answer ?? ask(path()));
    answer = null;
    if (response === null) show("No connection to the command. Trying again.");
    else if (response.ok) {
      await read(response.body, hear);
      show("No connection to the command. Trying again.");
    } else if (response.status === 403) {
      show(ENDED);
      return;
    } else if (response.status === 401) {
      hear("signed out", null);
      show("Sign in to see the cluster.");
      await signIn(token ? await response.text() : "");
      continue;
    } else show(`${await response.text()}. Trying again.`);
    await new Promise((go) => setTimeout(go, AGAIN_MS));
  }
}

// The answer to a question, or null without a connection.
export async function ask(path, options = {}) {
  try {
    return await fetch(path, { ...options, headers: token ? { "Lamina-Token": token } : {}, cache: "no-store" });
  } catch {
    return null;
  }
}

async function read(body, hear) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let pieces = []; // Of the event that has not ended. A large one comes in hundreds of them.
  try {
    for (;;) {
      const { value: bytes, done } = await reader.read();
      if (done) return;
      const value = decoder.decode(bytes, { stream: true });
      const ends = ((pieces.at(-1)?.at(-1) ?? "") + value).includes("\n\n");
      pieces.push(value);
      if (!ends) continue;
      const events = pieces.join("").split("\n\n");
      pieces = [events.pop()].filter(Boolean);
      for (const event of events) {
        const [kind, data] = event.split("\n");
        await hear(kind.slice("event: ".length), JSON.parse(data.slice("data: ".length)));
      }
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // The connection is lost.
  }
}

function signIn(problem) {
  const dialog = document.getElementById("sign-in");
  document.getElementById("sign-in-problem").textContent = problem;
  if (!dialog.open) dialog.showModal();
  return new Promise((go) => {
    document.getElementById("sign-in-form").addEventListener("submit", () => {
      const field = document.getElementById("token");
      token = field.value.trim();
      field.value = "";
      go();
    }, { once: true });
  });
}

document.getElementById("sign-in").addEventListener("cancel", (event) => event.preventDefault());
