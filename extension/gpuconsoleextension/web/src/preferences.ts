import { computed, effect, signal, type Signal } from "@preact/signals";
import type { Status, WindowName } from "./api/types";

/** What the reader chose; remembered by the browser and shared by all tabs. */

function remembered<T extends string>(key: string, allowed: readonly T[], otherwise: T): Signal<T> {
  const valid = (text: string | null): T => (allowed.includes(text as T) ? (text as T) : otherwise);
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(key);
  } catch {
    // Storage is switched off: it is remembered until the tab is closed.
  }
  const value = signal(valid(stored));
  addEventListener("storage", (event) => {
    if (event.key === key) value.value = valid(event.newValue);
  });
  effect(() => {
    try {
      if (localStorage.getItem(key) !== value.value) localStorage.setItem(key, value.value);
    } catch {
      // As above.
    }
  });
  return value;
}

export const windows: readonly WindowName[] = ["5m", "30m", "1h", "24h"];
export const windowNames: Record<WindowName, string> = { "5m": "5 min", "30m": "30 min", "1h": "1 hour", "24h": "24 hours" };

/** The display window of charts and sparklines; until one is chosen, the smallest that has all data. */
export const chosenWindow = remembered<WindowName | "auto">("gpu-console.window", ["auto", ...windows], "auto");

/** The window to show: that of the address, the chosen one, or the one that fits the data; never one that the store does not keep. */
export function windowOf(asked: string | null, { config, telemetry }: Pick<Status, "config" | "telemetry">): WindowName {
  const wanted = [asked, chosenWindow.value, telemetry.window].find((w) => windows.includes(w as WindowName)) as WindowName | undefined;
  return config.windows.includes(wanted ?? "1h") ? (wanted ?? "1h") : config.windows[config.windows.length - 1]!;
}

export type Theme = "auto" | "light" | "dark";
export const themes: readonly Theme[] = ["auto", "light", "dark"];
export const chosenTheme = remembered<Theme>("gpu-console.theme", themes, "auto");

const system = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
system.addEventListener("change", (event) => (systemDark.value = event.matches));

/** The theme in force. */
export const theme = computed<"light" | "dark">(() =>
  chosenTheme.value === "auto" ? (systemDark.value ? "dark" : "light") : chosenTheme.value,
);

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
