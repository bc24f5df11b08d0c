// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package control // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/control"

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

const (
	pathTest   = "/v1/webhook/test"
	pathReplay = "/v1/webhook/replay"
	pathEnable = "/v1/webhook/enable"

	maxControlBody        = 4 << 10
	maxControlHeader      = 8 << 10 // and what net/http adds to it
	maxControlConnections = 16
	// controlRate and controlBurst bound the requests with a good token: each
	// sends a webhook.
	controlRate  = 2
	controlBurst = 10
	// controlPatience is how long a request waits for the first attempt.
	controlPatience = 2 * time.Minute
)

var (
	ErrNoReceiver = errors.New("there is no receiver of that name")
	ErrNoEvent    = errors.New("no event of that id is kept: it is older than the last replay_events, or no receiver wanted it")
	ErrNotWanted  = errors.New("no receiver wants this event; name one to send it nevertheless")
)

// operator does what is asked for at the control endpoint, and returns the audit
// record of each first attempt.
type operator interface {
	Test(ctx context.Context, receiver string) (*audit.Record, error)
	Replay(ctx context.Context, eventID, receiver string) ([]*audit.Record, error)
	// Enable gives a receiver that answered 410 deliveries again; the record is
	// nil if it had them.
	Enable(receiver string) (*audit.Record, error)
}

// Server is the endpoint that gpuctl asks.
type Server struct {
	config    Config
	operator  operator
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	limiter   *rate.Limiter
	talk      *rate.Limiter // of log lines about refusals

	address net.Addr // where it listens
	server  *http.Server
	done    sync.WaitGroup
	end     context.CancelFunc
}

func New(config Config, o operator, telemetry *metadata.TelemetryBuilder, logger *zap.Logger) *Server {
	return &Server{
		config: config, operator: o, telemetry: telemetry, logger: logger,
		limiter: rate.NewLimiter(controlRate, controlBurst),
		talk:    rate.NewLimiter(rate.Every(time.Minute), 3),
	}
}

// Start listens, if an endpoint is configured.
func (c *Server) Start() error {
	if c.config.Endpoint == "" {
		return nil
	}
	if _, err := c.config.token(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.config.Endpoint)
	if err != nil {
		return fmt.Errorf("control_endpoint: %w", err)
	}
	if !c.config.isLoopback() {
		c.logger.Warn("the control endpoint is open to other machines, and its token travels there unencrypted", zap.String("key", "control_endpoint"))
	}
	c.address = listener.Addr()
	var ctx context.Context
	ctx, c.end = context.WithCancel(context.Background())
	errorLog, _ := zap.NewStdLogAt(c.logger, zap.DebugLevel) // fails for unknown levels only
	c.server = &http.Server{
		Handler:           c,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      controlPatience + 10*time.Second,
		MaxHeaderBytes:    maxControlHeader,
		ErrorLog:          errorLog,
	}
	c.server.SetKeepAlivesEnabled(false) // no idle client occupies one of the few connections
	c.done.Go(func() {
		if err := c.server.Serve(netutil.LimitListener(listener, maxControlConnections)); !errors.Is(err, http.ErrServerClosed) {
			c.logger.Error("the control endpoint has ended", zap.Error(err))
		}
	})
	return nil
}

// Addr returns where the endpoint listens; nil if it does not.
func (c *Server) Addr() net.Addr { return c.address }

// Shutdown ends the endpoint. A client that waits for an attempt
// gets an error; the delivery goes on.
func (c *Server) Shutdown() {
	if c.server == nil {
		return
	}
	c.end()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		_ = c.server.Close()
	}
	c.done.Wait()
}

// reply is what a request is answered.
type reply struct {
	status  int
	reason  string // for programs; empty where there is no error
	message string // for people
	records []*audit.Record
	enabled bool // of a receiver that should be
}

func refuse(status int, reason, message string) reply {
	return reply{status: status, reason: reason, message: message}
}

func (c *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation := "other"
	var act func(*http.Request) reply
	switch r.URL.Path {
	case pathTest:
		operation, act = "test", c.test
	case pathReplay:
		operation, act = "replay", c.replay
	case pathEnable:
		operation, act = "enable", c.enable
	}
	answer := c.admit(w, r)
	switch {
	case answer.status != 0:
	case act == nil:
		answer = refuse(http.StatusNotFound, "unknown_path", "there is "+pathTest+", "+pathReplay+" and "+pathEnable)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		answer = refuse(http.StatusMethodNotAllowed, "method_not_allowed", "use POST")
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxControlBody)
		answer = act(r)
		c.logger.Info("request at the control endpoint", zap.String("operation", operation), zap.Int("status", answer.status), zap.String("client", r.RemoteAddr))
	}
	c.telemetry.ExporterWebhookControlRequests.Add(r.Context(), 1, metric.WithAttributes(
		attribute.String("operation", operation), attribute.Int("http.response.status_code", answer.status)))
	answer.write(w)
}

// admit refuses requests without a valid token, and too many with one.
// Guesses are not slowed down: with 16 characters or more they lead nowhere, and
// a limit would let strangers lock the operator out.
func (c *Server) admit(w http.ResponseWriter, r *http.Request) reply {
	token, err := c.config.token()
	if err != nil {
		c.complain("the control endpoint refuses every request", zap.Error(err))
		return refuse(http.StatusServiceUnavailable, "token_unavailable", "the exporter cannot read its token; the cause is in its log")
	}
	given, isBearer := cutPrefixFold(r.Header.Get("Authorization"), "Bearer ")
	if !sameText(given, token) || !isBearer {
		c.complain("the control endpoint refused a request without a valid token", zap.String("client", r.RemoteAddr))
		w.Header().Set("WWW-Authenticate", "Bearer")
		return refuse(http.StatusUnauthorized, "unauthorized", "a valid bearer token is needed")
	}
	if !c.limiter.Allow() {
		w.Header().Set("Retry-After", "1")
		return refuse(http.StatusTooManyRequests, "too_many_requests", fmt.Sprintf("more than %d requests a second", controlRate))
	}
	return reply{}
}

func (c *Server) complain(message string, fields ...zap.Field) {
	if c.talk.Allow() {
		c.logger.Warn(message, fields...)
	}
}

// sameText takes the same time wherever two texts differ, and whatever their
// lengths.
func sameText(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// named reads a request that names a receiver and nothing else.
func named(r *http.Request) (receiver string, refused reply) {
	var request struct {
		Receiver string `json:"receiver"`
	}
	if refused = readJSON(r, &request); refused.status == 0 && request.Receiver == "" {
		refused = refuse(http.StatusBadRequest, "bad_request", `"receiver" is missing`)
	}
	return request.Receiver, refused
}

func (c *Server) enable(r *http.Request) reply {
	receiver, refused := named(r)
	if refused.status != 0 {
		return refused
	}
	record, err := c.operator.Enable(receiver)
	if err != nil {
		return explainError(err)
	}
	answer := reply{status: http.StatusOK, enabled: true}
	if record != nil {
		answer.records = []*audit.Record{record}
	}
	return answer
}

func (c *Server) test(r *http.Request) reply {
	receiver, refused := named(r)
	if refused.status != 0 {
		return refused
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlPatience)
	defer cancel()
	record, err := c.operator.Test(ctx, receiver)
	if err != nil {
		return explainError(err)
	}
	return recordsReply([]*audit.Record{record})
}

func (c *Server) replay(r *http.Request) reply {
	var request struct {
		EventID  string `json:"event_id"`
		Receiver string `json:"receiver"`
	}
	if refused := readJSON(r, &request); refused.status != 0 {
		return refused
	}
	if request.EventID == "" {
		return refuse(http.StatusBadRequest, "bad_request", `"event_id" is missing`)
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlPatience)
	defer cancel()
	records, err := c.operator.Replay(ctx, request.EventID, request.Receiver)
	if err != nil {
		return explainError(err)
	}
	return recordsReply(records)
}

// readJSON reads the request's body, one object without unknown fields.
func readJSON(r *http.Request, into any) reply {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return reply{}
		}
		err = errors.Join(err, errors.New("more than one value"))
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is larger than %d bytes", maxControlBody))
	}
	return refuse(http.StatusBadRequest, "bad_request", `the body is not one JSON object of known fields, as in {"receiver": "ops"}`)
}

// explainError turns a sender's error into an answer. Only errors that are known
// to hold nothing secret are shown.
func explainError(err error) reply {
	switch {
	case errors.Is(err, ErrNoReceiver):
		return refuse(http.StatusNotFound, "unknown_receiver", err.Error())
	case errors.Is(err, ErrNoEvent):
		return refuse(http.StatusNotFound, "unknown_event", err.Error())
	case errors.Is(err, ErrNotWanted):
		return refuse(http.StatusConflict, "not_wanted", err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return refuse(http.StatusServiceUnavailable, "not_tried_yet", "it is still queued behind other deliveries; the audit log will show what becomes of it")
	case errors.Is(err, context.Canceled):
		return refuse(http.StatusServiceUnavailable, "shutting_down", "the exporter shuts down; the audit log will show what becomes of it")
	default:
		return refuse(http.StatusServiceUnavailable, "unavailable", "the exporter cannot send now")
	}
}

// recordsReply answers with the records. What could not even be tried, because
// the receiver is disabled or its queue is full, is reported as such.
func recordsReply(records []*audit.Record) reply {
	answer := reply{status: http.StatusOK, records: records}
	for _, r := range records {
		if r.Outcome != audit.Dropped {
			return answer
		}
	}
	if len(records) == 0 {
		return answer
	}
	switch records[0].ErrorType {
	case audit.ErrorGone:
		answer.status, answer.reason, answer.message = http.StatusConflict, "receiver_disabled", "the receiver answered 410 Gone and gets nothing until it is enabled again or its configuration changes"
	case audit.ErrorQueueFull, audit.ErrorShutdown:
		answer.status, answer.reason, answer.message = http.StatusServiceUnavailable, string(records[0].ErrorType), "the delivery could not be queued"
	}
	return answer
}

// write sends the answer as JSON.
func (a reply) write(w http.ResponseWriter) {
	type problem struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	body := struct {
		Error   *problem        `json:"error,omitempty"`
		Enabled bool            `json:"enabled,omitempty"`
		Records []*audit.Record `json:"records,omitempty"`
	}{Enabled: a.enabled, Records: a.records}
	if a.reason != "" {
		body.Error = &problem{a.reason, a.message}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
}
