// Cards in the natural order of their names, such as node-2 before node-10. Only what changes is compared again.

const ZEROS = "0".repeat(20);

export class Ordered {
  #nameOf;
  #entries = new Map(); // By id.
  #sorted = [];

  constructor(nameOf) {
    this.#nameOf = nameOf;
  }

  get size() {
    return this.#sorted.length;
  }

  // Entries as { id, card, name, key } in order.
  get entries() {
    return this.#sorted;
  }

  // Cards by id; null stands for what is gone.
  take(changed) {
    const added = [];
    let removed = false;
    for (const [id, card] of Object.entries(changed)) {
      const known = this.#entries.get(id);
      const name = card && this.#nameOf(card);
      if (known && card && known.name === name) {
        known.card = card;
        continue;
      }
      if (known) {
        known.card = null;
        this.#entries.delete(id);
        removed = true;
      }
      if (card) {
        const entry = { id, card, name, key: keyOf(name) };
        this.#entries.set(id, entry);
        added.push(entry);
      }
    }
    if (removed) this.#sorted = this.#sorted.filter((entry) => entry.card);
    if (added.length) this.#sorted = this.#sorted.concat(added).sort(byKey);
  }
}

// Numbers in a name compare as text once they have the same number of digits. There are tens of thousands of names, so
// this is a plain loop.
function keyOf(name) {
  let key = "";
  let start = 0;
  let digits = 0;
  for (let at = 0; at <= name.length; at += 1) {
    const code = name.charCodeAt(at);
    if (code >= 48 && code <= 57) {
      digits += 1;
    } else if (digits) {
      key += name.slice(start, at - digits) + ZEROS.slice(digits) + name.slice(at - digits, at);
      [start, digits] = [at, 0];
    }
  }
  return key + name.slice(start);
}

function byKey({ key: one }, { key: other }) {
  return one < other ? -1 : one > other ? 1 : 0;
}
