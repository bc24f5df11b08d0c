import { signal } from "@preact/signals";

/** Now, in milliseconds; moves once a second while somebody can see the page. */
export const now = signal(Date.now());

let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  now.value = Date.now();
}

function follow(): void {
  clearInterval(timer);
  timer = undefined;
  if (!document.hidden) {
    tick();
    timer = setInterval(tick, 1000);
  }
}

/** Starts the clock; it stands still while the tab is hidden. */
export function startClock(): void {
  document.addEventListener("visibilitychange", follow);
  follow();
}
