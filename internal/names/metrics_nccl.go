// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Metrics of collective operations, from nccl on the node of the rank. Bandwidth is the rate of
// bytes over the rate of the duration's sum: that adds up over ranks and time.
var (
	NCCLOperationDuration = Metric{"nccl.operation.duration", "s", Histogram, "Duration of an operation on one rank, from the start of its kernel to its end."}
	NCCLOperationBytes    = Metric{"nccl.operation.bytes", "By", Counter, "Size of the messages of operations: of all ranks together for AllGather and ReduceScatter. Absent for operations whose size Inspector does not know."}
	NCCLOperationBusBytes = Metric{"nccl.operation.bus.bytes", "By", Counter, "The same times the bus factor of the operation: what one link of the slowest part carried."}
	NCCLOperationSequence = Metric{"nccl.operation.sequence", "{operation}", Gauge, "Number of the newest operation of its kind in the communicator."}
	NCCLRecordsDropped    = Metric{"nccl.records.dropped", "{record}", Counter, "Records that Inspector had no room for, as it states."}
	NCCLDataAge           = Metric{"nccl.data.age", "s", Gauge, "Age of the newest record of the rank."}
)

// Metrics of communicators, from nccl where the ranks of all nodes meet.
var (
	NCCLWaitRatio    = Metric{"nccl.communicator.wait.ratio", "1", Gauge, "Time that ranks waited in collective operations for the last one to come, as a fraction of the time in them."}
	NCCLRankLate     = Metric{"nccl.rank.late.ratio", "1", Gauge, "Collective operations to which the rank came last, as a fraction of those evaluated: of the three latest ranks."}
	NCCLRankLateness = Metric{"nccl.rank.lateness", "s", Gauge, "By how much the rank was later than the median of the ranks, on average over the operations to which it came last."}
	NCCLRanks        = Metric{"nccl.communicator.ranks", "{rank}", UpDownCounter, "Ranks of a communicator by state."}
	NCCLStalled      = Metric{"nccl.communicator.stalled", "1", UpDownCounter, "1 where nothing arrives from any rank of the job, which still holds its devices; else 0."}
)

// Attributes of collective operations.
const (
	NCCLOperation    = "nccl.operation"
	NCCLCommunicator = "nccl.communicator" // its name, else <ranks>x<nodes>
	NCCLRank         = "nccl.rank"
	NCCLRankState    = "nccl.rank.state"
	NCCLHost         = "nccl.host"
	NCCLRecordKind   = "nccl.record.kind"
)

// Values of nccl.rank.state.
const (
	RankReporting = "reporting"
	RankSilent    = "silent"
)

// Values of nccl.record.kind.
const (
	RecordCollective   = "collective"
	RecordPointToPoint = "point_to_point"
	RecordProxy        = "proxy"
)
