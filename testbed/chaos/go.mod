module github.com/otelcol-gpu/otelcol-gpu/testbed/chaos

go 1.26.0

require (
	github.com/otelcol-gpu/otelcol-gpu v0.0.0
	github.com/otelcol-gpu/otelcol-gpu/testbed v0.0.0
	github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes v0.0.0
	github.com/stretchr/testify v1.12.1
	go.opentelemetry.io/collector/pdata v1.65.0
	golang.org/x/sys v0.47.0
	google.golang.org/grpc v1.83.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/go-version v1.9.0 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	go.opentelemetry.io/collector/featuregate v1.65.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/mod v0.38.0 // indirect
	golang.org/x/net v0.57.0 // indirect
	golang.org/x/text v0.40.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260803160001-6ac0973c030d // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	k8s.io/kubelet v0.35.4 // indirect
)

replace github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes => ../kubernetes

replace github.com/otelcol-gpu/otelcol-gpu/testbed => ../

replace github.com/otelcol-gpu/otelcol-gpu => ../..
