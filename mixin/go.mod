module github.com/otelcol-gpu/otelcol-gpu/mixin

go 1.25.7

require (
	github.com/grafana/grafana-foundation-sdk/go v0.0.18
	github.com/otelcol-gpu/otelcol-gpu v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/otelcol-gpu/otelcol-gpu => ../
