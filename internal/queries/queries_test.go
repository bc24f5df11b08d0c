// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// The labels here are those that Prometheus has for the attributes.
func TestLabelsAreThoseThatAreWritten(t *testing.T) {
	namer := otlptranslator.LabelNamer{}
	for constant, attribute := range map[string]string{
		Cluster: names.K8sClusterName, Namespace: names.K8sNamespaceName, Service: names.ServiceName, Pod: names.K8sPodName, Container: names.K8sContainerName,
		Node: names.K8sNodeName, Host: names.HostName, Address: names.ServerAddress, Port: names.ServerPort, Device: names.HwID, Parent: names.HwParent,
		Model: names.HwModel, Index: names.GPUIndex, MIGProfile: names.GPUMIGProfile, MIGInstance: names.GPUMIGInstanceID, Task: names.HwGPUTask,
		Pipe: names.GPUPipe, Sensor: names.HwSensorLocation, LimitKind: names.GPUPowerLimitKind, Reason: names.GPUThrottleReason,
		XIDCode: names.GPUXIDCode, XIDDerived: names.GPUXIDDerived, ErrorType: names.ErrorType, Source: names.GPUAttributionSource,
		Sharing: names.GPUSharing, Resolved: names.GPUAllocationResolved, StateOfPod: names.GPUPodState, StateOfDevice: names.GPUDeviceState,
		ClockDomain: names.GPUClockDomain, Direction: names.NetworkDirection,
		HwState: names.HwState, HealthReason: names.GPUHealthReason.Name, HealthAction: names.GPUHealthAction, HwType: names.HwType,
		HealthWatch: names.GPUHealthWatch, HealthState: names.GPUHealthState,
		Engine: names.InferenceEngine, Bounds: names.InferenceBounds, TokenType: names.InferenceTokenType,
		RequestState: names.InferenceState, Outcome: names.InferenceOutcome, CacheTier: names.InferenceCacheTier,
		Tenant: names.GPUTenant, Currency: names.GPUCostCurrency, EnergyBasis: names.GPUEnergyBasis, CapacityState: names.GPUCapacityState,
		CapacityType: names.GPUCapacityType, HostType: names.HostType, Region: names.CloudRegion, Budget: names.GPUBudgetName, BudgetKind: names.GPUBudgetKind,
		BudgetPeriod: names.GPUBudgetPeriod, BudgetTimezone: names.GPUBudgetTimezone,
		Nested: names.GPUAllocationNested, Resource: names.K8sResourceName, NodeDeviceState: names.GPUNodeDeviceState, StrandedReason: names.GPUStrandedReason, RequestSize: names.GPURequestSize,
		Queue: names.GPUQueueName, PendingReason: names.GPUPendingReason,
		EngineRank: names.InferenceEngineRank, FinishReason: names.InferenceFinish,
	} {
		label, err := namer.Build(attribute)
		require.NoError(t, err)
		assert.Equal(t, label, constant, attribute)
	}
}

// Every receiver of GPUs is asked for what it counts of itself, under the names that it writes.
func TestEveryReceiverIsAsked(t *testing.T) {
	files, err := filepath.Glob("../../receiver/*/metadata.yaml")
	require.NoError(t, err)
	written := map[string]bool{}
	var scraping []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`(?m)^    (\w+_receiver_\w+):$`).FindAllStringSubmatch(string(text), -1) {
			written["otelcol_"+name[1]] = true
			if receiver, ok := strings.CutSuffix(name[1], "_receiver_scrapes"); ok {
				scraping = append(scraping, receiver)
			}
		}
	}
	assert.ElementsMatch(t, scraping, Receivers)
	for _, metric := range []string{OwnScrapes, OwnRowsRefused, OwnDevices} {
		EachReceiver(metric, All, func(series string) string {
			assert.True(t, written[strings.TrimSuffix(series, "{}")], series)
			return series
		})
	}
}

func everyQuery(s Selector) map[string]string {
	how, coarse := Smooth{Step: 15 * time.Second, Gap: 45 * time.Second}, Smooth{Step: 2 * time.Minute, Gap: 45 * time.Second}
	all := map[string]string{
		"InferenceEngines": InferenceEngines(s), "InferenceServers": InferenceServers(s), "InferenceServersUp": InferenceServersUp(s),
		"TokensNewlyRead": TokensNewlyRead(s), "Briefly": Whole{Where: s, Over: InferenceWindow, Briefly: time.Minute}.OutputTokens(),
		"ServicesEvaluated": ServicesEvaluated(s), "NewestEvaluations": NewestEvaluations(s), "LastEvaluation": LastEvaluation(s, time.Hour),
		"PodStates": PodStates(s), "Thresholds": Thresholds(), "MissingPods": MissingPods(s), "ExportersMoved": ExportersMoved(s, time.Hour),
		"DeviceUtilization": DeviceUtilization(s), "DeviceUtilizationTime": DeviceUtilizationTime(s), "DevicesSeen": DevicesSeen(s), "There": There("", s), "There within": There("1h", s), "Reports": Reports(s), "ReportedBefore": ReportedBefore(s, time.Hour),
		"DevicesRemembered": DevicesRemembered(s, time.Hour), "UtilizationPeak": UtilizationPeak(s, time.Minute), "OwnersBefore": OwnersBefore(s, time.Minute),
		"Allocations": Allocations(s), "AllocationTimes": AllocationTimes(s), "Exporters": Exporters(s), "ExporterTimes": ExporterTimes(s),
		"NodeTimes": NodeTimes(s), "ExportersRemembered": ExportersRemembered(s, time.Hour), "DeviceValues": DeviceValues(s),
		"RecentDeviceValues": RecentDeviceValues(s, time.Minute), "OfDevices": OfDevices(Power, s, time.Minute), "Capacity": Capacity(s, time.Hour), "Gone": Gone(Power, s, time.Minute, time.Hour),
		"XIDRise": XIDRise(s, time.Hour), "XIDFirst": XIDFirst(s, time.Hour), "XIDBegan": XIDBegan(s, time.Hour), "DevicesBegan": DevicesBegan(s, time.Hour),
		"XIDBeganExactly": XIDBeganExactly(s), "DevicesBeganExactly": DevicesBeganExactly(s), "XIDBefore": XIDBefore(s, time.Hour),
		"UncorrectedRise": UncorrectedRise(s, time.Hour), "Trend": Trend(s, coarse),
		"ServiceChart": ServiceChart(ServiceUtilization, s, how), "coarse ServiceChart": ServiceChart(ServiceUtilization, s, coarse),
		"PodsInMean": PodsInMean(s, how), "PodMean": PodMean(UnitPod, Utilization, s, how), "PodSum": PodSum(UnitJob, Power, s, coarse), "PodActivity": PodActivity(UnitJob, s, time.Hour),
		"DeviceChart": DeviceChart(Power, s, how), "coarse DeviceChart": DeviceChart(Power, s, coarse), "DeviceChart by reason": DeviceChart(Throttle, And(s, HeldDown), coarse, Reason),
		"TelemetryBefore": TelemetryBefore(time.Hour), "BoardStates": BoardStates(s, time.Minute), "Stragglers": Stragglers(s, time.Minute), "BoardReasons": BoardReasons(s, time.Minute),
		"NodeStates": NodeStates(s, time.Minute), "BoardsWatched": BoardsWatched(s, time.Hour), "BoardsEver": BoardsEver(s, time.Hour), "BoardInputs": BoardInputs(s, time.Minute),
		"CapacitySeen": CapacitySeen(s, time.Hour), "CapacityOfNodes": CapacityOfNodes(s, time.Minute), "CapacityStranded": CapacityStranded(s, time.Minute),
		"CapacityFit": CapacityFit(s, time.Minute), "CapacityFragmentation": CapacityFragmentation(s, time.Minute),
		"Waiting": Waiting(PendingPods, s, time.Minute), "WaitingFor": WaitingFor(s, time.Minute),
		"CorrectedRise": CorrectedRise(s, time.Hour), "Remapped": Remapped(s), "RemappedRise": RemappedRise(s, time.Hour),
	}
	for i, q := range slices.Concat(ServiceStates(s), ServiceAverages(s)) {
		all[fmt.Sprint("service ", i)] = q
	}
	for _, over := range []time.Duration{InferenceWindow, ForChart} {
		w := Whole{Where: s, Engines: Is(Engine, "vllm"), Over: over}
		for name, q := range map[string]string{
			"OutputTokens": w.OutputTokens(), "InputTokens": w.InputTokens(), "Quantile": w.Quantile(0.95, TimeToFirstToken), "Mean": w.Mean(RequestDuration),
			"ErrorRatio": w.ErrorRatio(), "KVCache": w.KVCache("avg"), "RequestsIn": w.RequestsIn("waiting"), "Demand": w.Demand(), "Saturation": w.Saturation(),
			"PrefixHits": w.PrefixHits(), "Accepted": w.Accepted(), "Batch": w.Batch(), "TokensPerJoule": w.TokensPerJoule(), "TokensPerDevice": w.TokensPerDevice("held"),
		} {
			all[name+" over "+window(over)] = strings.ReplaceAll(q, "$__rate_interval", "1m")
		}
	}
	whole := Whole{Where: s, Over: CostWindow}
	for _, b := range []Basis{ByHeld, ByUsed} {
		for name, q := range map[string]string{
			"Spend": Spend(b, s, CostWindow), "CostPerToken": whole.CostPerToken(b), "CostPerInput": whole.CostPerInput(b), "CostPerOutput": whole.CostPerOutput(b),
		} {
			all[name+" by "+string(b)] = q
		}
	}
	maps.Copy(all, map[string]string{
		"UsedRatio": UsedRatio(s, CostWindow), "TokensPerJouleHeld": whole.TokensPerJouleHeld(), "UnknownRatio": UnknownRatio("1d", Cluster),
		"BudgetsUsed": BudgetsUsed(s), "BudgetLimits": BudgetLimits(s),
	})
	for _, f := range InferenceFigures {
		all[f.Name] = f.Service(Whole{Where: s, Over: InferenceWindow})
		if f.Pods != nil {
			all[f.Name+" of pods"] = f.Pods(s, InferenceWindow)
		}
	}
	return all
}

func TestEveryQueryIsPromQL(t *testing.T) {
	p := parser.NewParser(parser.Options{})
	for name, q := range everyQuery(All) {
		_, err := p.ParseExpr(q)
		assert.NoError(t, err, "%s: %s", name, q)
	}
	for _, s := range Ever() {
		_, err := p.ParseMetricSelector(s)
		assert.NoError(t, err, s)
	}
}

// FuzzSelector: whatever a name is, it stays a value of a label.
func FuzzSelector(f *testing.F) {
	for _, s := range []string{"", "chat", `a"b`, `x",k8s_namespace_name!="`, "a\\", "}\n#", ".*|(a+)+$", "größe\u202e", "\x00", strings.Repeat("x", 253)} {
		f.Add(s, s)
	}
	p := parser.NewParser(parser.Options{})
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = strings.ToValidUTF8(a, "?"), strings.ToValidUTF8(b, "?")
		matchers, err := p.ParseMetricSelector(of(ServicePods, OfService("", a, b), OneOf(Pod, a, b)))
		require.NoError(t, err)
		require.Len(t, matchers, 5)
		found := map[string]string{}
		for _, m := range matchers {
			found[m.Name] = m.Value
			if m.Name == Pod {
				assert.True(t, m.Matches(a) && m.Matches(b))
				assert.False(t, m.Matches(a+b+"x"))
			}
		}
		assert.Equal(t, a, found[Namespace])
		assert.Equal(t, b, found[Service])
	})
}

func TestFits(t *testing.T) {
	assert.Equal(t, Is(Pod, "a"), Fits(OneOf(Pod, "a")))
	assert.Equal(t, All, Fits(OneOf(Pod, strings.Repeat("x", Longest), "b")))
	assert.Regexp(t, regexp.MustCompile(`^k8s_pod_name=~"a\\\\\.b\|c"$`), string(OneOf(Pod, "a.b", "c")))
}
