import type { Look } from "../chart/stack";
import type { Unit } from "../format";
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Status = Schemas["StatusAnswer"];
export type StoreProblem = Schemas["StoreProblem"];
export type Services = Schemas["ServicesAnswer"];
export type ServiceAnswer = Schemas["ServiceAnswer"];
export type Service = Schemas["Service"];
export type Inference = NonNullable<Service["inference"]>;
export type Attention = Schemas["Attention"];
export type Reason = Schemas["Reason"];
export type PodCounts = Schemas["PodCounts"];
export type FleetSummary = Schemas["FleetSummary"];
export type Pods = Schemas["PodsAnswer"];
export type Pod = Schemas["Pod"];
export type Nodes = Omit<Schemas["NodesAnswer"], "nodes"> & { nodes: GpuNode[] };
/** A node always has a health; a device may be a part of one that has it. */
export type GpuNode = Omit<Schemas["Node"], "health"> & { health: Health };
export type Device = Schemas["Device"];
export type Health = NonNullable<Schemas["Health"]>;
export type HealthState = Schemas["HealthState"];
export type HealthReason = Schemas["HealthReason"];
export type HealthCounts = Schemas["HealthCounts"];
export type Holder = Schemas["Holder"];
export type Range = Schemas["RangeAnswer"];
export type DeviceRange = Schemas["DeviceRangeAnswer"];
/** The times of charts: every value lies on them. */
export type Grid = Pick<Range, "start" | "end" | "step" | "points"> & { window: string };
export type Chart = Schemas["Chart"];
/** What a chart draws. Of a stack the values of a step are on top of each other, as a bar; `absent` is why it has none, `marks` what to know of each step. */
export type Drawable = Omit<Chart, "unit"> & { unit: Unit; stacked?: { absent: string; looks: Look[]; marks: readonly string[] } };
export type Series = Schemas["Series"];
export type Events = Schemas["EventsAnswer"];
export type GpuEvent = Schemas["Event"];
export type AcknowledgeAnswer = Schemas["AcknowledgeAnswer"];
export type Delivery = Schemas["Delivery"];
export type Freshness = Schemas["Freshness"];
export type Values = Schemas["Values"];
export type Coverage = Schemas["Coverage"];
export type WindowName = Schemas["Window"];
/** GPU time of owners, and of what has none, with its money and energy. */
export type CostAnswer = Schemas["CostAnswer"];
export type CostLine = Schemas["CostLine"];
export type CostGroup = Schemas["CostGroup"];
export type CostBudget = Schemas["CostBudget"];
/** What the scheduler has to give, and what waits for it. */
export type Capacity = Schemas["CapacityAnswer"];
export type CapacityPool = Schemas["CapacityPool"];
export type CapacityNode = Schemas["CapacityNode"];
export type WaitingPods = Schemas["WaitingPods"];
export type Grafana = NonNullable<Status["config"]["grafana"]>;

/** What names a service. An absent cluster is null. */
export interface ServiceName {
  cluster: string | null;
  /** Of a service on Slurm; then the namespace is its account. */
  slurm_cluster?: string | undefined;
  namespace: string;
  service: string;
}

/** What names a node, or a device with its instances. */
export interface Where {
  cluster: string | null;
  node?: string | undefined;
  device?: string | undefined;
}
