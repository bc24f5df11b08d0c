package names

// Metrics of an inference server that OpenTelemetry defines: of requests that ended, from the inference processor.
var (
	GenAIRequestDuration    = Metric{"gen_ai.server.request.duration", "s", Histogram, "Time from a request's arrival to its last token."}
	GenAITimeToFirstToken   = Metric{"gen_ai.server.time_to_first_token", "s", Histogram, "Time from a request's arrival to its first token, queue and prefill included."}
	GenAITimePerOutputToken = Metric{"gen_ai.server.time_per_output_token", "s", Histogram, "A request's time after its first token, divided by its output tokens but the first."}
)

// Metrics of an inference server, from the inference processor.
var (
	InferenceInterTokenLatency          = Metric{"inference.server.inter_token_latency", "s", Histogram, "Time between two tokens of a request: one observation a token."}
	InferenceTimePerToken               = Metric{"inference.server.request.time_per_token", "s", Histogram, "A request's time divided by its output tokens, the first included."}
	InferenceQueueTime                  = Metric{"inference.server.request.queue_time", "s", Histogram, "Time that a finished request waited to be scheduled."}
	InferencePrefillTime                = Metric{"inference.server.request.prefill_time", "s", Histogram, "Time that a finished request spent in prefill."}
	InferenceDecodeTime                 = Metric{"inference.server.request.decode_time", "s", Histogram, "Time that a finished request spent in decode."}
	InferenceInferenceTime              = Metric{"inference.server.request.inference_time", "s", Histogram, "Time that a finished request spent in prefill and decode."}
	InferenceRequestTokens              = Metric{"inference.server.request.tokens", "{token}", Histogram, "Tokens of a request by type."}
	InferenceRequests                   = Metric{"inference.server.requests", "{request}", UpDownCounter, "Requests in the server by state."}
	InferenceRequestsLimit              = Metric{"inference.server.requests.limit", "{request}", UpDownCounter, "Requests that may run at once."}
	InferenceRequestsFinished           = Metric{"inference.server.requests.finished", "{request}", Counter, "Requests that ended, by outcome."}
	InferenceTokens                     = Metric{"inference.server.tokens", "{token}", Counter, "Tokens by type; cached ones are part of the input."}
	InferencePrefixCacheQueries         = Metric{"inference.server.prefix_cache.queries", "{token}", Counter, "Tokens looked up in the prefix cache."}
	InferencePrefixCacheHits            = Metric{"inference.server.prefix_cache.hits", "{token}", Counter, "Tokens found in the prefix cache."}
	InferencePrefixCacheHitRatio        = Metric{"inference.server.prefix_cache.hit_ratio", "1", Gauge, "Tokens found in the prefix cache as a fraction of those looked up, from engines that count neither."}
	InferenceKVCacheUtilization         = Metric{"inference.server.kv_cache.utilization", "1", Gauge, "Fraction of the KV cache in use."}
	InferenceKVCacheCapacity            = Metric{"inference.server.kv_cache.capacity", "{token}", UpDownCounter, "Tokens for which the KV cache has room."}
	InferencePreemptions                = Metric{"inference.server.preemptions", "{preemption}", Counter, "Times that a running request was put back into the queue."}
	InferenceSpeculationDrafts          = Metric{"inference.server.speculation.drafts", "{draft}", Counter, "Drafts of speculative decoding."}
	InferenceSpeculationDraftTokens     = Metric{"inference.server.speculation.draft_tokens", "{token}", Counter, "Tokens drafted by speculative decoding."}
	InferenceSpeculationAcceptedTokens  = Metric{"inference.server.speculation.accepted_tokens", "{token}", Counter, "Drafted tokens that were accepted."}
	InferenceSpeculationAcceptanceRatio = Metric{"inference.server.speculation.acceptance_ratio", "1", Gauge, "Accepted tokens as a fraction of the drafted ones, from engines that count neither."}
	InferenceBatchSize                  = Metric{"inference.server.batch.size", "{request}", Histogram, "Requests in an execution."}
	InferenceIterationTokens            = Metric{"inference.server.iteration.tokens", "{token}", Histogram, "Tokens in a step of the engine."}
	InferenceExecutions                 = Metric{"inference.server.executions", "{execution}", Counter, "Executions of a batch."}
	InferenceInferences                 = Metric{"inference.server.inferences", "{inference}", Counter, "Inferences; divided by executions, the mean size of a batch."}
	InferenceLoraAdapters               = Metric{"inference.server.lora.adapters", "{adapter}", UpDownCounter, "LoRA adapters by state."}
	InferenceServerState                = Metric{"inference.server.state", "1", UpDownCounter, "1 for the state that the server is in, 0 for the others."}
	InferenceModelLoadTime              = Metric{"inference.server.model.load_time", "s", Gauge, "Time that loading the model took."}
	InferenceServerUp                   = Metric{"inference.server.up", "1", UpDownCounter, "1 if the last scrape of the server succeeded and had families of its engine, else 0."}
)

// Metrics of what stands before inference servers (endpoint pickers, routers, frontends), from the inference processor.
var (
	InferenceGatewayRequestDuration        = Metric{"inference.gateway.request.duration", "s", Histogram, "Time from a request's arrival at the gateway to its last token."}
	InferenceGatewayTimeToFirstToken       = Metric{"inference.gateway.time_to_first_token", "s", Histogram, "Time from a request's arrival at the gateway to its first token."}
	InferenceGatewayInterTokenLatency      = Metric{"inference.gateway.inter_token_latency", "s", Histogram, "Time between two tokens of a request: one observation a token."}
	InferenceGatewayTimePerOutputToken     = Metric{"inference.gateway.time_per_output_token", "s", Histogram, "A request's time after its first token, divided by its output tokens but the first."}
	InferenceGatewayQueueTime              = Metric{"inference.gateway.queue_time", "s", Histogram, "Time that a request waited in the gateway."}
	InferenceGatewayTimePerToken           = Metric{"inference.gateway.time_per_token", "s", Histogram, "A request's time divided by its output tokens, the first included."}
	InferenceGatewayRequests               = Metric{"inference.gateway.requests", "{request}", UpDownCounter, "Requests in the gateway by state."}
	InferenceGatewayRequestsFinished       = Metric{"inference.gateway.requests.finished", "{request}", Counter, "Requests that ended, by outcome."}
	InferenceGatewayTokens                 = Metric{"inference.gateway.tokens", "{token}", Counter, "Tokens by type."}
	InferenceGatewayRequestTokens          = Metric{"inference.gateway.request.tokens", "{token}", Histogram, "Tokens of a request by type."}
	InferenceGatewayEndpointsReady         = Metric{"inference.gateway.endpoints.ready", "{endpoint}", UpDownCounter, "Endpoints that the gateway may choose."}
	InferenceGatewayPoolKVCacheUtilization = Metric{"inference.gateway.pool.kv_cache.utilization", "1", Gauge, "Mean KV cache utilization of the pool, as the gateway computes it."}
	InferenceGatewayPoolRequestsMean       = Metric{"inference.gateway.pool.requests.mean", "{request}", Gauge, "Mean requests of an endpoint of the pool by state, as the gateway computes it."}
	InferenceGatewayUp                     = Metric{"inference.gateway.up", "1", UpDownCounter, "1 if the last scrape of the gateway succeeded and had families of it, else 0."}
)

// Attributes of requests to models.
const (
	GenAIRequestModel    = "gen_ai.request.model"
	GenAIProviderName    = "gen_ai.provider.name"
	GenAIOperationName   = "gen_ai.operation.name"
	GenAIOperationAny    = "inference" // of engines that have all operations in one series
	InferenceEngine      = "inference.engine"
	InferenceEngineHint  = "inference.engine.hint"
	InferenceEngineRank  = "inference.engine.rank"
	InferenceModelHint   = "inference.model.hint"
	InferenceBounds      = "inference.bounds"
	InferenceIncludes    = "inference.includes"
	InferenceTokenType   = "inference.token.type"
	InferenceState       = "inference.request.state"
	InferenceOutcome     = "inference.request.outcome"
	InferenceFinish      = "inference.finish_reason"
	InferenceCacheTier   = "inference.cache.tier"
	InferenceLoraState   = "inference.lora.state"
	InferenceLoraName    = "inference.lora.name"
	InferenceStateServer = "inference.server.state"
	InferenceGateway     = "inference.gateway"
	InferencePool        = "inference.pool"
)

// Values of inference.request.outcome.
const (
	OutcomeSuccess   = "success"
	OutcomeError     = "error"
	OutcomeCancelled = "cancelled"
	OutcomeRejected  = "rejected"
)
