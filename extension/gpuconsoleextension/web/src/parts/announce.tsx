import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const said = signal("");

/** Tells screen readers what changed, without moving the focus. */
export function announce(text: string): void {
  said.value = text;
}

export function LiveRegion() {
  return (
    <p class="vh" aria-live="polite" data-live>
      {said.value}
    </p>
  );
}

/** Names the tab after what it shows. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · GPU console`;
  }, [title]);
}
