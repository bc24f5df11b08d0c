import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { api } from "./api/client";
import type { Status } from "./api/types";
import { now } from "./clock";
import { duration, spoken, utc } from "./format";
import { changed, type Known, Poll, usePoll } from "./poll";
import { chosenTheme, themes, windowOf } from "./preferences";
import { capacityLink, costLink, eventsLink, fleetLink, nodesLink, type Route, route } from "./router";
import { loginNeeded, logout, token } from "./session";
import { ageNow, type Screen, screenOf, staleNow } from "./state";
import { announce, LiveRegion, useTitle } from "./parts/announce";
import { Failure, isUnreachable, unreachable } from "./parts/notices";
import { Endpoints } from "./parts/reasons";
import { Skeleton } from "./parts/Figure";
import { Time } from "./parts/values";
import { Capacity } from "./views/Capacity";
import { Cost } from "./views/Cost";
import { Events } from "./views/Events";
import { Fleet } from "./views/Fleet";
import { Login } from "./views/Login";
import { Nodes } from "./views/Nodes";
import { Place } from "./views/Place";
import { Service } from "./views/Service";
import { Offline, SomeDown, StatePanel, StoreProblems } from "./views/States";

export function App() {
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      {loginNeeded.value === "no" ? <Console /> : <Login />}
      <LiveRegion />
    </>
  );
}

/** The fragment is the route's, so the skip link moves the focus itself. */
function skip(event: Event): void {
  event.preventDefault();
  const main = document.getElementById("main");
  main?.focus();
  main?.scrollIntoView();
}

const said: Record<string, string> = {
  A: "GPU telemetry is not enabled",
  B: "No service has a GPU",
  C: "Warming up",
  D: "The scraper is down",
  F: "The metric store cannot be reached",
  G: "What arrives cannot be stored",
};

function Console() {
  const poll = usePoll((signal) => api.status(signal), 15_000, []);
  const known = poll.known.value;
  const screen = screenOf(known);
  const refresh = known.data?.config.refresh;
  // While the whole is not ready it is looked at more often: what was waited for appears soon.
  useEffect(() => {
    if (refresh) poll.every((screen.kind === "ready" ? refresh : Math.min(refresh, 5)) * 1000);
  }, [refresh, screen.kind]);
  const sentence = screen.kind === "state" ? said[screen.letter]! : screen.kind === "ready" ? "Ready" : screen.kind === "offline" ? "The console’s server does not answer" : "";
  useEffect(() => {
    unreachable.value = isUnreachable(known.error);
  }, [known.error]);
  const before = useRef("");
  useEffect(() => {
    announce(sentence);
    if (before.current && sentence) changed.value++;
    before.current = sentence;
  }, [sentence]);
  const r = route.value;
  return (
    <>
      <Header known={known} route={r} />
      <main id="main" tabIndex={-1}>
        <Content screen={screen} known={known} poll={poll} route={r} />
      </main>
      <footer class="foot">
        <span>otelcol-gpu {known.data?.version}</span>
        {known.data && <span>store: {known.data.store.engine}{known.data.store.retention !== null && `, keeps ${spoken(known.data.store.retention)}`}</span>}
        <span>times are this browser’s; hover for UTC</span>
      </footer>
    </>
  );
}

function Content({ screen, known, poll, route: r }: { screen: Screen; known: Known<Status>; poll: Poll<Status>; route: Route }) {
  if (screen.kind === "loading") return <Skeleton rows={6} />;
  if (screen.kind === "offline") return <Offline error={screen.error} known={known} refresh={poll.refresh} />;
  const { status } = screen;
  const panel = screen.kind === "state" && screen.letter !== "B" && <StatePanel letter={screen.letter} status={status} known={known} refresh={poll.refresh} />;
  return (
    <>
      <Failure known={known} refresh={poll.refresh} whole />
      {!shows(screen, r) && <h1 class="vh">GPU console</h1>}
      {!(screen.kind === "state" && screen.letter === "G") && <StoreProblems status={status} />}
      {panel}
      {(screen.kind === "ready" || screen.letter === "B" || screen.letter === "C") && r.view !== "service" && <SomeDown status={status} />}
      <Endpoints endpoints={status.endpoints} />
      {shows(screen, r) && <View route={r} status={status} />}
    </>
  );
}

/**
 * Whether the view stands below the state. Events do not depend on telemetry, nodes
 * need no services, and what was known before the scraper went stays, marked stale.
 */
function shows(screen: Screen, r: Route): boolean {
  if (screen.kind === "ready" || r.view === "events") return true;
  if (screen.kind !== "state") return false;
  switch (screen.letter) {
    case "D":
      return true;
    case "G": // what was stored before, if anything was
      return !!screen.status.telemetry.devices || !!screen.status.telemetry.services;
    case "B": // what needs no service: devices and nodes are there
    case "C":
      return r.view !== "unknown";
    case "F": // usage is in a log, not in the metric store
      return r.view === "cost";
    default:
      return false;
  }
}

function View({ route: r, status }: { route: Route; status: Status }) {
  switch (r.view) {
    case "fleet":
      return <Titled title="Fleet"><Fleet q={r.q} status={status} /></Titled>;
    case "nodes":
      return <Titled title="Nodes"><Nodes q={r.q} node={r.node} attention={r.attention} status={status} /></Titled>;
    case "events":
      return <Titled title="Events"><Events severity={r.severity} q={r.q} active={r.active} name={r.name} event={r.event} status={status} /></Titled>;
    case "service": {
      const key = JSON.stringify([r.name.cluster, r.name.slurm_cluster, r.name.namespace, r.name.service]);
      return <Service key={key} name={r.name} status={status} window={windowOf(r.window, status)} by={r.by} />;
    }
    case "place":
      return <Place key={JSON.stringify(r.where)} where={r.where} status={status} window={windowOf(r.window, status)} />;
    case "capacity":
      return <Titled title="Capacity"><Capacity at={r.capacity} status={status} /></Titled>;
    case "cost":
      return <Titled title="Cost"><Cost at={r.cost} status={status} /></Titled>;
    case "unknown":
      return (
        <Titled title="Not found">
          <p class="empty">
            There is no such page. <a href={fleetLink()}>To the fleet</a>
          </p>
        </Titled>
      );
  }
}

function Titled({ title, children }: { title: string; children: ComponentChildren }) {
  useTitle(title);
  return <>{children}</>;
}

function Header({ known, route: r }: { known: Known<Status>; route: Route }) {
  const raised = known.data?.telemetry.raised_events;
  const tabs = [
    { name: "Fleet", link: fleetLink(), here: r.view === "fleet" || r.view === "service" },
    { name: "Nodes", link: nodesLink(), here: r.view === "nodes" || r.view === "place" },
    { name: "Capacity", link: capacityLink(), here: r.view === "capacity" },
    { name: "Cost", link: costLink(), here: r.view === "cost" },
    { name: "Events", link: eventsLink(), here: r.view === "events", badge: raised },
  ];
  return (
    <header class="top">
      <a class="brand" href={fleetLink()} aria-label="GPU console, to the fleet">
        <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true" focusable="false">
          <rect class="mark" width="32" height="32" rx="7" />
          <path class="mark-bars" d="M8 17h4v7H8zM14 12h4v12h-4zM20 8h4v16h-4z" />
        </svg>
        <span>GPU console</span>
      </a>
      <nav aria-label="Views">
        {tabs.map((t) => (
          <a key={t.name} href={t.link} aria-current={t.here ? "page" : undefined}>
            {t.name}
            {!!t.badge && (
              <span class="badge">
                {t.badge}
                <span class="vh"> raised</span>
              </span>
            )}
          </a>
        ))}
      </nav>
      <span class="spread" />
      <AsOf known={known} />
      <button
        type="button"
        class="button quiet-button"
        onClick={() => (chosenTheme.value = themes[(themes.indexOf(chosenTheme.value) + 1) % themes.length]!)}
        title="Dark, light, or as the system has it"
      >
        Theme: {chosenTheme.value}
      </button>
      {token.value && (
        <button type="button" class="button quiet-button" onClick={logout}>
          Log out
        </button>
      )}
    </header>
  );
}

/** When the page was last answered, and how old the newest data is. */
function AsOf({ known }: { known: Known<Status> }) {
  if (!known.data) return null;
  const { freshness } = known.data;
  const age = ageNow(freshness.data_age, known.receivedAt, now.value);
  const stale = staleNow(freshness.stale, age, freshness.stale_after);
  return (
    <p class={stale ? "as-of is-stale" : "as-of"} data-as-of title={`evaluated ${utc(new Date(freshness.evaluated_at))}`}>
      <span class="as-of-at">
        as of <Time at={freshness.evaluated_at} />
      </span>
      <span>
        {age === null ? "no data" : `${stale ? "stale: " : ""}data ${duration(age)} old`}
      </span>
    </p>
  );
}
