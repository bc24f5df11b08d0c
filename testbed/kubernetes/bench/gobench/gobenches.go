// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gobench

import (
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// What stands in the repository as a Go benchmark is measured as one, and is an
// entry of the report.
var (
	Mapping = goBench("go-dcgm", "dcgm receiver: scraping and mapping",
		"Exporters of 480 samples (8 GPUs × 60 fields), scraped every second for 10 s by the dcgm receiver, and by prometheusreceiver, which maps nothing. Exporters and receivers are processes of their own; "+
			"the two take turns, and each figure is the median of three rounds. CPU is that of the whole process. Heap is what is alive beyond what was there before the start; RSS is the whole process, with the test's binary. "+
			"`ratio` is the dcgm receiver's share of what prometheusreceiver takes.",
		".", []string{"receiver/dcgmreceiver"}, "-bench", "Receiver", "-benchtime", "1x", "./receiver/dcgmreceiver")

	Components = goBench("go-components", "Components alone",
		"One core, nothing around them: no exporter, no network; the next component does nothing. Bytes and allocations of an operation are those of the whole benchmark, which makes its own input in some; units that are no `/op` are what it is about.\n\n"+
			"- **dcgm receiver**: `Read` reads a page of 8 GPUs with 60 fields that is laid out as the one before, has its lines in another order, or is the first; `textparse` is Prometheus' parser alone, without labels. `Map` maps such a page, by `names`.\n"+
			"- **gpu_pod**: a node of 8 devices and 60 fields. `Devices` is the node as the dcgm receiver hands it over, `Scraped` as the prometheus receiver does, which is built from scratch. `Attribution` decides who holds a device, from the attributes of its resource; `Lookup` asks for one of 100,000 devices. `Memory` is a device that is held and reports.\n"+
			"- **gpu_summary**: a pod has one device with eight inputs, a node eight pods, a service ten. A node's batch is decoded right before it arrives, and neither that nor collecting its garbage is timed. `Observe` is arrival; `Evaluate/compute` is an evaluation under the lock, `write` writes it down outside of it; `Memory` is what a pod takes between evaluations. `Consume` goes through the processor, with 10,000 pods: the summary's input alone (8 points a device), and everything passed through (60).\n"+
			"- **gpu_events**: one interval of 1,000 devices of 60 metrics, six of them read by rules, its ticks included; by the sets of rules that are on. `Memory` is a watched device, its share of exporter and node included.\n"+
			"- **gpu_allocation**: 10,000 devices, nine of ten of them held, by the device plugin and by DRA: an answer of the kubelet taken in (`snapshot`), and written down (`metrics`).\n"+
			"- **audit**: `Append` writes a record: `synced` with an fsync each, which is the disk; `checkpoints` with signed ones. `Verify` reads 1,000 of them.",
		".", []string{"processor/gpupodprocessor", "processor/gpusummaryprocessor", "connector/besteffortconnector", "connector/gpueventsconnector", "receiver/dcgmreceiver", "receiver/gpuallocationreceiver", "internal/pagetext", "internal/audit"}, "-cpu", "1", "-bench", ".", "-benchmem", "./processor/gpu...", "./connector/besteffort...", "./connector/gpuevents...", "./receiver/dcgmreceiver/internal/...", "./internal/pagetext", "./receiver/gpuallocationreceiver/...", "./internal/audit")

	Vendors = goBench("go-vendors", "AMD, Gaudi and Intel alone",
		"One core. `Node` reads and maps the page of AMD's exporter on a node of 64 partitions; `Sysfs` is a collection of 8 boards with `source: sysfs`: reading the files, which are on a disk here, and mapping them. `Page` is the first part of it.",
		".", []string{"receiver/amdgpureceiver"}, "-cpu", "1", "-bench", ".", "-benchmem", "./receiver/amdgpureceiver/...")

	Cost = goBench("go-cost", "Time, money and energy",
		"One core, without a collector around them. `internal/intake` is what a batch costs, the ledger behind it included: of whole boards, replicas and MIG instances, a point of `gpu.allocation` (`AllocationPoint`), and what a board sends beside it (`Telemetry`); `internal/ledger` is the ledger alone. "+
			"`Device` is what both keep of a board. `Flush` is one of 10,000 boards and 1,000 services: by the ledger, which encodes and adds up, and by the connector, which stores that and emits it. `Month` is a report of 30 days of 1,000 services, 720,000 rows.",
		".", []string{"connector/gpucostconnector", "internal/costreport"}, "-cpu", "1", "-bench", ".", "-benchmem", "./connector/gpucost...", "./internal/costreport")

	Scheduling = once(goBench("go-scheduling", "Scheduling, and jobs of Slurm",
		"Without a collector around them. `Evaluation` is one of gpu_scheduling, of 50,000 pods with devices on 5,000 nodes, a tenth of them waiting, with the points that are sent on; MB are beside pods and nodes. `Start` is from the start until the first figures, with the Kubernetes API in the same process, and MB all that the receiver keeps. "+
			"`Jobs` are jobs of Slurm that end and start on a node of 8 boards, 50,000 an hour: milliseconds until `gpu.allocation` with the job is handed on, and what slurm_allocation keeps afterwards.",
		".", []string{"receiver/gpuschedulingreceiver", "receiver/slurmallocationreceiver"}, "-bench", "Evaluation|Start|Jobs", "./receiver/gpuschedulingreceiver", "./receiver/slurmallocationreceiver"))

	Attribution = beside(goBench("go-attribution", "Attribution beside k8s_attributes",
		"gpu_pod beside contrib's k8s_attributes (uid, start time, owner, service.name, one label, from a Kubernetes API), on the same resources: a node of 8. `Decision` is who holds the device, asked of devices that are free, so that nothing is written down; "+
			"`GPUPod` is all of gpu_pod: decided, three names written, series remembered. `K8sAttributes` finds and writes too, more attributes than gpu_pod, and needs the pod's name on the resource: the like of it is `GPUPod`. Making the batches is not timed.",
		"testbed/bench/attribution", []string{"processor/gpupodprocessor"}, "-bench", ".", "-benchmem", "."),
		map[string]string{"Decision": "K8sAttributes", "GPUPod": "K8sAttributes"})

	Inference = beside(goBench("go-inference", "Inference engines beside transform",
		"One core. `Inference`, `Transform` and `TransformGrouped` take the same page with thirty families of vLLM, a point each: transform gives them other names and units, with two statements a family that have a condition each, or (`TransformGrouped`) with a group a family that has one condition; the inference processor also checks values and histograms, finds start times, and gives the points the common attributes. "+
			"The others are the inference processor alone. All times are medians of a page's: `Page` is one of vLLM with 395 samples, of which 354 are the engine's, `PageTGI` has a histogram of 1,024 buckets, `Unknown` are families of no row, `Number` and `Histogram` (20 bounds) points of 100 models, `Memory` is what stays of a series. `series/engine` is how many a store has of the page under the common names. Making the pages is not timed.",
		"testbed/bench/inference", []string{"processor/inferenceprocessor"}, "-cpu", "1", "-bench", ".", "-benchmem", ".", frame.Module+"processor/inferenceprocessor"),
		map[string]string{InferenceBeside + "Inference": InferenceBeside + "Transform", InferenceBeside + "TransformGrouped": InferenceBeside + "Transform"})

	Summary = beside(goBench("go-summary", "Averages beside the stock pipeline",
		"One core. The closest equivalent of an average per service with stock processors: transform (keep the service on the resource, floor the time) → groupbyattrs → transform (`aggregate_on_attributes(\"mean\")`). Both take the same batches of 8192 points. "+
			"A test beside the benchmark checks that both averages are right, the stock one because each service is in one batch: it is wrong as soon as a service is spread over batches, and it has no minimum, maximum, pod count or partial state. "+
			"The stock pipeline writes its answer within that time; gpu_summary does so on a timer (`Evaluate` in *Components alone*).",
		"testbed/bench/summary", []string{"processor/gpusummaryprocessor"}, "-cpu", "1", "-bench", ".", "-benchmem", "."),
		map[string]string{"GPUSummary": "Stock"})

	Delivery = once(goBench("go-delivery", "Deliveries to webhooks",
		"One core. Receivers are a process of their own on loopback, each a port.\n\n"+
			"- **Deliveries**: CPU time of the exporter's process, a delivery: signed, the log line of each attempt written to nowhere. 4,000 deliveries or more a round, five rounds, all rows in turns. By receivers, scheme, and what is kept: nothing, the audit file, or that with `retry` and `storage` (file_storage, `fsync` off). A connection is made for each attempt, with https a handshake. MiB: heap and stacks under that load at the most, beyond what was there before.\n"+
			"- **Memory**: a receiver that has nothing to do, and a delivery that waits because receivers never answer, its share of the event included. With few receivers the first is noise of the heap.\n"+
			"- **Hanging**: from an event's handing over to its arrival. Three exporters in one process get events in turns: at *first* and *second* all receivers answer, at *hanging* one never does: attempts time out and are tried again, its queue is full, the rest is dropped. Ratios are to *first*; `second` shows what chance does. The run has ten parts; `median`, `min` and `max` are of their ratios.",
		"testbed/bench/delivery", []string{"exporter/webhookexporter", "internal/audit"}, "-cpu", "1", "-bench", ".", "-benchtime", "1x", "."))

	Alarm = once(goBench("go-alarm", "From the cause to the webhook",
		"The real binary with the shipped configurations, 40 simulated exporters with a board each. 20 of them die (`gpu.service.partial` is raised) and 20 report an XID (`gpu.xid`), all at random moments, and so at random phases of scrapes and evaluations. Seconds until the webhook has arrived at its receiver. "+
			"demo: staleness 10 s, evaluation every 5 s, scrapes every 2 s; defaults: 45 s, 15 s, 15 s. `goal-s` is staleness + evaluation + 1 s, and `late` are the deaths over it. Staleness counts from the last point, which is up to a collection interval older than the death. An XID waits for the next scrape, and up to two seconds for its points to be judged together.",
		"testbed", []string{"config/standalone.yaml", "config/demo.yaml", "config/webhooks.yaml", "receiver/dcgmreceiver", "processor/gpupodprocessor", "processor/gpusummaryprocessor", "connector/gpueventsconnector", "exporter/webhookexporter"}, "-bench", ".", "-benchtime", "1x", "./bench/alarm"))

	Console = once(goBench("go-console", "Store and console beside Prometheus",
		"The embedded store and a Prometheus server (the train's own module, its defaults) have the same 24 hours of 64, 512 and 4,096 GPUs, 8 a node and a service: the server starts on a copy of the store's files. Both are fed on while they are asked, a sample every 15 s. The series are those that the page asks for, which are not all that an exporter has. "+
			"The same console asks both, the server through `engine: prometheus`, in turns, three rounds. Two cores have it all.\n\n"+
			"- By question: until the answer has arrived, with `share_for: 0s`, so that each request reads for itself. Fewer `requests` where answers are slow: with fifteen of them p99 is the slowest.\n"+
			"- `viewers`: five viewers open the fleet at once (`status` and `services`, 10 requests), until the last has its answer; with `share_for` (2 s) they share one moment and its queries. A store that is asked too much refuses: then there is no time, but how many of 50 requests were `refused`.\n"+
			"- `memory`: resident, after the rounds, and what of it is no file's: most of the rest are mapped blocks, which the system takes back when it needs to. Disk is all files of the day, what is in no block yet included; values are made up: others compress better or worse.\n"+
			"- `browser`: until the first table or chart in Chromium on the same cores, with an empty cache; for it `npm --prefix extension/gpuconsoleextension/web ci` has to have run.\n"+
			"- `Append`: scrapes of 512 GPUs, an hour of them, into the embedded store and by remote write into the server, both new; one writer; CPU time of the process that stores, a client's encoding not in it.",
		"testbed/bench/console", []string{"extension/gpuconsoleextension", "extension/gpuconsoleextension/web/dist", "extension/gpustoreextension", "internal/store"}, "-bench", ".", "-benchtime", "1x", "."))

	Embedded = beside(once(goBench("go-store", "The embedded store",
		"60 series a GPU, a sample each 15 s, 8 GPUs a pod and four pods a service. `Append` takes one scrape of the fleet. `Query` is the mean by service of all GPUs, now (`instant`) and over an hour at 15 s (`range`), of 6 hours of 64 GPUs and one hour of 512; "+
			"resident is the whole process. `BesidePrometheus` is the same range query of 64 GPUs over HTTP, here and from a Prometheus server with the same data.",
		"testbed/store", []string{"extension/gpustoreextension", "internal/store"}, "-bench", ".", "-benchmem", ".")),
		map[string]string{"BesidePrometheus/embedded": "BesidePrometheus/prometheus"})
)

// InferenceBeside is the package of the comparison, which begins the names of its rows.
const InferenceBeside = "testbed/bench/inference: "

// once is an entry with benchmarks that repeat what they do themselves.
func once(e frame.Entry) frame.Entry {
	e.Turns = 1
	return e
}

// Beside sets what rows of an entry are compared to.
func beside(e frame.Entry, rows map[string]string) frame.Entry {
	e.Besides = rows
	return e
}
