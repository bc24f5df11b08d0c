// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvidia is what the receivers of NVIDIA's GPUs share, whatever they read: the
// quantities (quantities.go), the series and rules that these become (series.go,
// derived.go), and what takes more than a value (throttle.go, events.go, xid.go). Names, units and
// sentinels of a source are its receiver's.
package nvidia

import "github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"

// The quantities, as places in devicetable.Table.Fields. The units are those of the
// source.
const (
	GPUUtil devicetable.ID = iota
	MemCopyUtil
	EncUtil
	DecUtil
	FBTotal
	FBFree
	FBUsed
	FBReserved
	BAR1Total
	BAR1Used
	BAR1Free

	GREngineActive
	SMActive
	SMOccupancy
	PipeTensorActive
	DRAMActive
	PipeFP64Active
	PipeFP32Active
	PipeFP16Active
	PipeIMMAActive
	PipeHMMAActive
	PipeDFMAActive
	PipeIntActive

	PowerUsage
	PowerMgmtLimit
	EnforcedPowerLimit
	Energy
	GPUTemp
	MemoryTemp
	FanSpeed
	SMClock
	MemClock
	VideoClock
	AppSMClock
	AppMemClock
	MaxSMClock
	MaxMemClock
	MaxVideoClock

	ThrottleReasons
	PowerViolation
	ThermalViolation
	SyncBoostViolation
	BoardLimitViolation
	LowUtilViolation
	ReliabilityViolation
	AppClocksViolation
	BaseClocksViolation
	ClockEventsCount
	ClockEventsTotal

	PCIeTX
	PCIeRX
	NVLinkTX
	NVLinkRX
	NVLinkBandwidth
	NVLinkLanes
	C2CBandwidthMax
	PCIeTXTotal
	PCIeRXTotal
	NVLinkTXTotal
	NVLinkRXTotal
	PCIeReplays
	PCIeWidth
	PCIeWidthMax
	PCIeGeneration
	PCIeGenerationMax
	NVLinkCRCFlit
	NVLinkCRCData
	NVLinkReplayErrs
	NVLinkRecovery

	ECCSBEVolatile
	ECCDBEVolatile
	ECCSBEAggregate
	ECCDBEAggregate
	RetiredSBE
	RetiredDBE
	RetiredPending
	RemappedUncorr
	RemappedCorr
	RowRemapFailure
	RowRemapPending
	BanksMax
	BanksHigh
	BanksPartial
	BanksLow
	BanksNone
	SRAMExceeded

	XIDLast
	XIDTotal
	HealthStatus
	P2PStatus
	RecoveryAction
	FabricHealth
	VGPULicense
	VGPUMemory

	// Quantities is how many there are. A receiver's own follow.
	Quantities
)
