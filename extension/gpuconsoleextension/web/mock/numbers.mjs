// Numbers that look like measurements and are the same on every run.

/** A generator of numbers from 0 to below 1, by its seed (mulberry32). */
export function random(seed) {
  let state = hash(seed);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function hash(text) {
  let h = 2166136261;
  for (const c of String(text)) h = Math.imul(h ^ c.codePointAt(0), 16777619);
  return h >>> 0;
}

export const clamp = (v, low = 0, high = 1) => Math.min(high, Math.max(low, v));
export const round = (v, digits = 4) => Math.round(v * 10 ** digits) / 10 ** digits;

/** A load that wanders: the same at the same second, whoever asks. */
export function wave(name, mean, swing, second) {
  const r = random(name);
  const [a, b, c] = [r() * 6.28, r() * 6.28, r() * 6.28];
  const slow = Math.sin(second / 5400 + a) * 0.5 + Math.sin(second / 1130 + b) * 0.32;
  const quick = Math.sin(second / 97 + c) * 0.18 + (random(`${name}/${second}`)() - 0.5) * 0.35;
  return mean + swing * (slow + quick);
}

const mean = (list) => (list.length ? list.reduce((a, b) => a + b, 0) / list.length : null);

/** The mean of what is there; null if nothing is. */
export const average = (list) => mean(list.filter((v) => v !== null));
export const total = (list) => {
  const there = list.filter((v) => v !== null);
  return there.length ? there.reduce((a, b) => a + b, 0) : null;
};
