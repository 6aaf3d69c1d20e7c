// Package metrics counts what the relay does, for Prometheus.
//
// Every label value is from a closed list that is fixed when the Metrics are made, so
// neither a peer nor a wrong caller can increase the number of series. The methods of a
// hot path do not allocate. No label identifies a member, a group or a message.
package metrics

import (
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"blindpost/shared/gateway"
)

const namespace = "blindpost"

// Options configure Metrics; the zero value is valid.
type Options struct {
	// Version and Revision describe the build.
	Version  string
	Revision string
	// Dialects are the dialects that this relay speaks; nil means all. Others have no
	// series.
	Dialects []string
	// JobKinds are further kinds of jobs.
	JobKinds []string
	// FrameKinds are further kinds of frames, by dialect.
	FrameKinds map[string][]string
	// Log gets the errors of scrapes; nil logs nothing.
	Log *slog.Logger
}

// Metrics are the counters of one relay. All methods are safe for concurrent
// use and do not block.
type Metrics struct {
	registry *prometheus.Registry
	log      *slog.Logger

	connections   *family[prometheus.Gauge]
	sockets       prometheus.Gauge
	accepted      prometheus.Counter
	upgrades      *byNumber[int, prometheus.Counter]
	closes        *byNumber[gateway.CloseCode, prometheus.Counter]
	slowReaders   prometheus.Counter
	sendBuffers   prometheus.Gauge
	refused       *family[prometheus.Counter]
	authenticated *family[prometheus.Counter]

	framesIn, framesOut *family[prometheus.Counter]
	bytesIn, bytesOut   *family[prometheus.Counter]
	frameSeconds        *nested[prometheus.Observer]

	messages       *family[prometheus.Counter]
	dropped        *family[prometheus.Counter]
	confirmed      prometheus.Counter
	confirmSeconds prometheus.Observer
	mailbox        prometheus.Gauge
	mailboxDepth   prometheus.Observer

	pushes *family[prometheus.Counter]

	jobs       *family[prometheus.Counter]
	jobSeconds *family[prometheus.Observer]
	deadJobs   *family[prometheus.Counter]

	errors, panics *family[prometheus.Counter]

	tableOps     *family[prometheus.Counter]
	tableSeconds *family[prometheus.Observer]
}

// Buckets of the histograms, in seconds and in messages.
var (
	workBuckets    = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	confirmBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	depthBuckets   = []float64{1, 2, 5, 10, 20, 50, 100, 150, 200, 500, 1000}
)

// New makes Metrics with a registry of their own. Every series exists from the start.
func New(o Options) *Metrics {
	r := prometheus.NewRegistry()
	m := &Metrics{registry: r, log: o.Log}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if o.Dialects == nil {
		o.Dialects = dialects
	}
	dialects := newSet(o.Dialects...)
	kinds := map[string][]string{}
	for _, d := range dialects.values {
		kinds[d] = slices.Concat(frameKinds[d], o.FrameKinds[d])
	}
	jobs := newSet(slices.Concat(slices.DeleteFunc(slices.Clone(jobKinds), func(kind string) bool {
		dialect, _, named := strings.Cut(kind, ".")
		return named && !slices.Contains(dialects.values, dialect)
	}), o.JobKinds)...)

	m.connections = gauges(r, "connections", "Connections with a member behind them.", []string{"dialect", "role"}, dialects, roles)
	m.sockets = gauge(r, "sockets", "Open WebSockets, authenticated or not.")
	m.accepted = counter(r, "connects_accepted_total", "Upgrades that were accepted.")
	m.upgrades = newByNumber(counterVec(r, "upgrades_refused_total", "Upgrades that were refused, by HTTP status.", "status"), upgradeStatuses)
	m.closes = newByNumber(counterVec(r, "closes_total", "Connections that ended, by WebSocket close code.", "code"), closeCodes)
	m.slowReaders = counter(r, "slow_readers_total", "Connections closed because their peer read too slowly.")
	m.sendBuffers = gauge(r, "send_buffer_bytes", "Bytes that wait to be written, over all connections.")
	m.refused = counters(r, "connects_refused_total", "Upgrades that the relay refused, by its reason.", []string{"dialect", "reason"}, dialects, refusals)
	m.authenticated = counters(r, "authentications_total", "Attempts to authenticate.", []string{"dialect", "role", "result"}, dialects, roles, authResults)

	m.framesIn = counters(r, "frames_received_total", "Frames from peers.", []string{"dialect"}, dialects)
	m.framesOut = counters(r, "frames_sent_total", "Frames to peers.", []string{"dialect"}, dialects)
	m.bytesIn = counters(r, "frame_bytes_received_total", "Payload bytes of frames from peers.", []string{"dialect"}, dialects)
	m.bytesOut = counters(r, "frame_bytes_sent_total", "Payload bytes of frames to peers.", []string{"dialect"}, dialects)
	m.frameSeconds = newNested(histogram(r, "frame_handling_seconds", "How long the handling of a frame took.", workBuckets, "dialect", "kind"), dialects, kinds)

	m.messages = counters(r, "messages_total", "Messages by what became of them when they were sent.", []string{"class", "outcome"}, classes, outcomes)
	m.dropped = counters(r, "messages_dropped_total", "Messages that ended undelivered, by the rule that ended them.", []string{"class", "reason"}, classes, drops)
	m.confirmed = counter(r, "messages_confirmed_total", "Stored messages that their recipient has confirmed.")
	m.confirmSeconds = histogram(r, "delivery_confirm_seconds", "Time from posting a stored message to its confirmation.", confirmBuckets)()
	m.mailbox = gauge(r, "mailbox_messages", "Stored messages that wait in all mailboxes.")
	m.mailboxDepth = histogram(r, "mailbox_depth", "Messages in a mailbox after one was added.", depthBuckets)()

	m.pushes = counters(r, "pushes_total", "Attempts to push.", []string{"platform", "kind", "result"}, platforms, pushKinds, pushResults)

	m.jobs = counters(r, "job_attempts_total", "Attempts to run a job.", []string{"kind", "result"}, jobs, jobResults)
	m.jobSeconds = newFamily(histogram(r, "job_seconds", "How long an attempt to run a job took.", workBuckets, "kind"), jobs)
	m.deadJobs = counters(r, "jobs_dead_total", "Jobs that were put aside after their last attempt.", []string{"kind"}, jobs)

	m.errors = counters(r, "handler_errors_total", "Events whose handler failed.", []string{"event"}, events)
	m.panics = counters(r, "handler_panics_total", "Events whose handler panicked.", []string{"event"}, events)

	m.tableOps = counters(r, "table_operations_total", "Operations on the table.", []string{"operation", "result"}, operations, tableResults)
	m.tableSeconds = newFamily(histogram(r, "table_operation_seconds", "How long an operation on the table took.", workBuckets, "operation"), operations)

	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1; the labels describe the build.",
		ConstLabels: prometheus.Labels{"version": o.Version, "revision": o.Revision, "goversion": runtime.Version()},
	})
	build.Set(1)
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		Registry:            m.registry,
		ErrorLog:            scrapeLog{m.log},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
		Timeout:             10 * time.Second,
	})
}

// scrapeLog makes promhttp log with slog.
type scrapeLog struct{ log *slog.Logger }

func (l scrapeLog) Println(v ...any) { l.log.Error("failed to answer a scrape", "error", v) }

func counter(r *prometheus.Registry, name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func gauge(r *prometheus.Registry, name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	r.MustRegister(g)
	return g
}

// counterVec registers a counter and returns the function that makes its children.
func counterVec(r *prometheus.Registry, name, help string, labels ...string) func(...string) prometheus.Counter {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	r.MustRegister(v)
	return v.WithLabelValues
}

func counters(r *prometheus.Registry, name, help string, labels []string, sets ...*set) *family[prometheus.Counter] {
	return newFamily(counterVec(r, name, help, labels...), sets...)
}

func gauges(r *prometheus.Registry, name, help string, labels []string, sets ...*set) *family[prometheus.Gauge] {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	r.MustRegister(v)
	return newFamily(v.WithLabelValues, sets...)
}

// histogram registers a histogram and returns the function that makes its children.
func histogram(r *prometheus.Registry, name, help string, buckets []float64, labels ...string) func(...string) prometheus.Observer {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	r.MustRegister(v)
	return v.WithLabelValues
}
