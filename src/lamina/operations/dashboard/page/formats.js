// Amounts, times and names as people read them.

const NUMBERS = new Intl.NumberFormat("en-US");
const ONE_DIGIT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const NOT_KNOWN = "not known";

// Small numbers are written without the formats, which take long for the cells of a large map.
export function number(amount) {
  return Number.isInteger(amount) && amount >= 0 && amount < 1000 ? `${amount}` : NUMBERS.format(amount);
}

function oneDigit(amount) {
  return amount >= 0 && amount < 999 ? `${Math.round(10 * amount) / 10}` : ONE_DIGIT.format(amount);
}

export function counted(amount, one, several = `${one}s`) {
  return `${number(amount)} ${amount === 1 ? one : several}`;
}

// Memory in the unit that fits its size. `null` is not known, which is not zero.
export function memory(mib) {
  if (mib === null || mib === undefined) return NOT_KNOWN;
  if (mib < 1024) return `${number(mib)} MiB`;
  return mib < 1024 * 1024 ? `${oneDigit(mib / 1024)} GiB` : `${oneDigit(mib / 1024 / 1024)} TiB`;
}

const UNITS = [["TiB", 1024 * 1024], ["GiB", 1024], ["MiB", 1]];
const STEPS = [-1, 0, 1, 2, 3].flatMap((zeros) => [1, 2, 5].map((step) => step * 10 ** zeros));

// An axis of memory for uPlot: all of its values are in the unit of the largest, and round numbers of it.
export const MEMORY_AXIS = {
  incrs: (chart, axis, least, most) => STEPS.map((step) => step * unitOf(most)[1]),
  values: ({ scales }, values) => {
    const [unit, size] = unitOf(scales.y.max);
    return values.map((value) => `${oneDigit(value / size)} ${unit}`);
  },
};

function unitOf(mib) {
  return UNITS.find(([, size]) => mib >= size) ?? UNITS.at(-1);
}

// To the MiB, for tooltips and details.
export function exactMemory(mib) {
  return mib === null || mib === undefined ? NOT_KNOWN : `${number(mib)} MiB`;
}

export function percent(part, whole) {
  if (part === null || part === undefined) return NOT_KNOWN;
  return whole ? `${oneDigit(100 * part / whole)} %` : "none";
}

// What a share may use of the GPU's time, in words.
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

export function time(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

// How long ago a moment was, in the largest unit that fits.
export function age(seconds, now = Date.now() / 1000) {
  const past = Math.max(0, Math.round(now - seconds));
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (past >= size) return `${Math.floor(past / size)} ${unit}`;
  return `${past} s`;
}

// A long name without its middle, because names differ at their ends.
export function shorten(name, most = 48) {
  const letters = [...name];
  if (letters.length <= most) return name;
  const half = Math.floor((most - 1) / 2);
  return `${letters.slice(0, half).join("")}…${letters.slice(-half).join("")}`;
}

// The end of a long name, because names of nodes and pods differ there.
export function ending(name, most) {
  const letters = [...name];
  return letters.length <= most ? name : `…${letters.slice(1 - most).join("")}`;
}

// How many letters these names begin with that tell nothing, because all have them. Whole words alone count, and a
// number keeps the word before it.
export function commonStart(names) {
  if (names.length < 2) return 0;
  const [first, ...others] = names;
  let same = first.length;
  for (const name of others) {
    while (!name.startsWith(first.slice(0, same))) same -= 1;
  }
  const start = first.slice(0, same).search(/[^-./_]*$/);
  return names.every((name) => /^\d+$/.test(name.slice(start))) ? Math.max(0, first.slice(0, start).search(/[^-./_]*[-./_]$/)) : start;
}
