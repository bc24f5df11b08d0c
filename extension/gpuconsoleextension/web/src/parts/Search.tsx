import { useEffect, useRef, useState } from "preact/hooks";

/** A filter that is applied when the reader pauses. */
export function Search({ label, value, change }: { label: string; value: string; change: (text: string) => void }) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const given = useRef(value);
  useEffect(() => {
    if (value !== given.current) setText(value);
    given.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (next: string, wait: number) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      given.current = next.trim();
      change(next.trim());
    }, wait);
  };
  return (
    <input
      class="search"
      type="search"
      aria-label={label}
      placeholder={label}
      maxLength={253}
      spellcheck={false}
      autocomplete="off"
      value={text}
      onInput={(event) => apply(event.currentTarget.value, 250)}
      onKeyDown={(event) => event.key === "Enter" && apply(event.currentTarget.value, 0)}
    />
  );
}
