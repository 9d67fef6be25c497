// Colors say who holds something: the namespace, or the workload. Health has signs of its own and no color of these.

const COLORS = 8; // As many as differ for everyone, also for people who do not see all colors.

export class Colors {
  #taken = new Map();

  // The color of a name as a value for CSS. The first names have colors of their own, and later ones share them.
  of(name) {
    if (!name) return "var(--other)";
    if (!this.#taken.has(name)) this.#taken.set(name, this.#taken.size < COLORS ? this.#taken.size : spread(name));
    return `var(--color-${this.#taken.get(name)})`;
  }
}

function spread(name) {
  let sum = 0;
  for (const letter of name) sum = (31 * sum + letter.codePointAt(0)) % 9973;
  return sum % COLORS;
}
