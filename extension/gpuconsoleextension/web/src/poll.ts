import { computed, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError } from "./api/client";
import { refused, token } from "./session";

/** What the page knows of one question to the API, at any moment. */
export interface Known<T> {
  /** The newest answer; it stays while later requests fail. */
  data: T | null;
  /** When it came, milliseconds. */
  receivedAt: number;
  /** Why the last request has no answer; null if it has. */
  error: ApiError | null;
  /** Whether the answer belongs to a question that was put since: it is replaced soon. */
  outdated: boolean;
  /** When it is asked again, milliseconds; null while it is being asked. */
  nextAt: number | null;
}

/** Milliseconds until the next request. Failures wait longer and longer, unless the server says how long. */
export function delay(error: ApiError | null, failures: number, interval: number): number {
  if (!error) return interval;
  if (error.retryAfter !== null) return Math.max(1000, error.retryAfter * 1000);
  return Math.min(60_000, Math.max(interval, 5000) * 2 ** Math.min(failures - 1, 4));
}

/** Raised when the state of the whole changes: what every view shows is asked for at once. */
export const changed = signal(0);

/** Asks again and again, but not while the tab is hidden or a token is wanted. */
export class Poll<T> {
  readonly known = signal<Known<T>>({ data: null, receivedAt: 0, error: null, outdated: false, nextAt: null });
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running: AbortController | undefined;
  private failures = 0;
  private stopped = true;
  private unsubscribe: (() => void) | undefined;

  constructor(
    private load: (signal: AbortSignal) => Promise<T>,
    /** Milliseconds between two requests. */
    private interval: number,
  ) {}

  start(): void {
    this.stopped = false;
    document.addEventListener("visibilitychange", this.seen);
    const cause = computed(() => `${changed.value}/${token.value}`);
    let first = true;
    this.unsubscribe = cause.subscribe(() => {
      if (!first) this.refresh();
      first = false;
    });
    this.refresh();
  }

  stop(): void {
    this.stopped = true;
    document.removeEventListener("visibilitychange", this.seen);
    this.unsubscribe?.();
    clearTimeout(this.timer);
    this.running?.abort();
  }

  /** Puts another question; the old answer stays until the new one is there. */
  ask(load: (signal: AbortSignal) => Promise<T>): void {
    this.load = load;
    this.known.value = { ...this.known.value, outdated: this.known.value.data !== null };
    this.refresh();
  }

  /** From now on asks every so many milliseconds. */
  every(interval: number): void {
    if (interval === this.interval) return;
    this.interval = interval;
    const { nextAt, error, receivedAt } = this.known.value;
    if (nextAt !== null && !error && receivedAt) this.wait(receivedAt + interval);
  }

  /** Asks now. */
  refresh = (): void => {
    clearTimeout(this.timer);
    this.running?.abort();
    if (!this.stopped) void this.run();
  };

  private seen = (): void => {
    const { nextAt } = this.known.value;
    if (document.hidden) clearTimeout(this.timer);
    else if (nextAt !== null && nextAt <= Date.now()) this.refresh();
    else if (nextAt !== null) this.wait(nextAt);
  };

  private wait(at: number): void {
    clearTimeout(this.timer);
    this.known.value = { ...this.known.value, nextAt: at };
    if (!document.hidden && !this.stopped) this.timer = setTimeout(this.refresh, Math.max(0, at - Date.now()));
  }

  private async run(): Promise<void> {
    const controller = new AbortController();
    this.running = controller;
    this.known.value = { ...this.known.value, nextAt: null };
    try {
      const data = await this.load(controller.signal);
      if (controller.signal.aborted) return;
      this.failures = 0;
      this.known.value = { data, receivedAt: Date.now(), error: null, outdated: false, nextAt: null };
    } catch (cause) {
      if (controller.signal.aborted) return;
      const error = cause instanceof ApiError ? cause : new ApiError("The page failed.", 0, "page", String(cause), null);
      this.failures++;
      this.known.value = { ...this.known.value, error };
      if (error.status === 401) {
        refused();
        return; // the next token asks again
      }
    }
    this.wait(Date.now() + delay(this.known.value.error, this.failures, this.interval));
  }
}

/**
 * A question that is asked again while the component lives. When one of `about`
 * changes it is another question, and the former answer stays until it is answered.
 */
export function usePoll<T>(load: (signal: AbortSignal) => Promise<T>, interval: number, about: readonly unknown[]): Poll<T> {
  const poll = useMemo(() => new Poll(load, interval), []);
  useEffect(() => {
    poll.start();
    return () => poll.stop();
  }, []);
  const first = useMemo(() => ({ current: true }), []);
  useEffect(() => {
    if (first.current) first.current = false;
    else poll.ask(load);
  }, about);
  useEffect(() => poll.every(interval), [interval]);
  return poll;
}
