import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { now } from "../clock";
import type { ApiError } from "../api/client";
import type { Known } from "../poll";

export type Tone = "bad" | "warn" | "info" | "good" | "calm";

/** Signs that need no colour. Drawn by hand, one stroke width. */
const paths: Record<Tone, string> = {
  bad: "M8 1.8 14.6 13.6H1.4zM8 6v3.6M8 11.4v.7",
  warn: "M8 1.6a6.4 6.4 0 1 0 0 12.8A6.4 6.4 0 0 0 8 1.6zM8 4.6v4.2M8 10.7v.8",
  info: "M8 1.6a6.4 6.4 0 1 0 0 12.8A6.4 6.4 0 0 0 8 1.6zM8 7.2v4.2M8 4.6v.8",
  good: "M8 1.6a6.4 6.4 0 1 0 0 12.8A6.4 6.4 0 0 0 8 1.6zM5 8.2l2.1 2.1L11 6.2",
  calm: "M8 1.6a6.4 6.4 0 1 0 0 12.8A6.4 6.4 0 0 0 8 1.6zM5 8h6",
};

export function Sign({ tone }: { tone: Tone }) {
  return (
    <svg class="sign" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={paths[tone]} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}

/** A word with a sign: what is the matter, or that all is well. */
export function Tag({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string }) {
  return (
    <span class={`tag ${tone}`} title={title}>
      <Sign tone={tone} />
      <span>{children}</span>
    </span>
  );
}

/** Something that the reader should know before believing the numbers below it. */
export function Banner({ tone, title, children, name }: { tone: Tone; title: string; children?: ComponentChildren; name?: string }) {
  return (
    <section class={`banner ${tone}`} data-banner={name} aria-label={title}>
      <Sign tone={tone} />
      <div>
        <p class="banner-title">{title}</p>
        {children && <div class="banner-text">{children}</div>}
      </div>
    </section>
  );
}

/** A state that takes the place of the page's content. */
export function Panel({ tone, title, children, state }: { tone: Tone; title: string; children?: ComponentChildren; state?: string }) {
  return (
    <section class={`panel ${tone}`} data-state={state} aria-labelledby="panel-title">
      <Sign tone={tone} />
      <div class="panel-text">
        <h2 id="panel-title">{title}</h2>
        {children}
      </div>
    </section>
  );
}

/** Seconds until the next request, in words. */
export function Retry({ known, refresh }: { known: Known<unknown>; refresh: () => void }) {
  const { nextAt } = known;
  const left = nextAt === null ? null : Math.max(0, Math.ceil((nextAt - now.value) / 1000));
  return (
    <p class="retry">
      <span>{left === null ? "Asking again now." : `Asking again in ${left}\u202fs.`}</span>
      <button type="button" class="link" onClick={refresh}>
        Ask now
      </button>
    </p>
  );
}

/** Why an answer is not there, said kindly. */
export function explain(error: ApiError): { tone: Tone; title: string } {
  switch (error.reason) {
    case "busy":
      return { tone: "info", title: "The server is busy with other readers" };
    case "query_limit":
      return { tone: "warn", title: "This question would read more than the server allows" };
    case "offline":
    case "timeout":
      return { tone: "bad", title: "The console’s server does not answer" };
  }
  if (error.status === 400) return { tone: "warn", title: "The server does not accept this question" };
  if (error.status === 404) return { tone: "info", title: "Nothing is known of it" };
  if (error.status === 502) return { tone: "bad", title: "The metric store cannot be reached" };
  return { tone: "bad", title: "Something went wrong" };
}

/** Whether the server answers nothing at all, which the whole page says once. */
export const unreachable = signal(false);

/** Reports whether the server did not answer. */
export const isUnreachable = (error: ApiError | null): boolean => error?.reason === "offline" || error?.reason === "timeout";

/**
 * A failed request: as a banner where an older answer stays on the page, else as a panel.
 * A view leaves it to the `whole` page that the server does not answer.
 */
export function Failure({ known, refresh, whole = false }: { known: Known<unknown>; refresh: () => void; whole?: boolean }) {
  const error = known.error;
  if (!error || error.status === 401) return null;
  if (!whole && unreachable.value && isUnreachable(error)) return null;
  const { tone, title } = explain(error);
  const text = (
    <>
      <p>
        {error.message} {error.detail}
      </p>
      {known.data !== null && <p>What stands below is the last answer.</p>}
      <Retry known={known} refresh={refresh} />
    </>
  );
  return known.data !== null ? (
    <Banner tone={tone} title={title} name={error.reason}>
      {text}
    </Banner>
  ) : (
    <Panel tone={tone} title={title} state={error.status === 502 ? "F" : error.reason}>
      {text}
    </Panel>
  );
}
