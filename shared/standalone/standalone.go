// Package standalone runs a whole relay in one process: our own WebSocket front, the core
// with its dialects, the job queue, and one embedded database file. `blindpost serve`, the
// demo and the tests use it.
//
// Connection records and the counters per address are in memory, because they are useless
// without their connections; everything else is in the file.
package standalone

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/dialect/skald"
	"blindpost/shared/gateway"
	"blindpost/shared/gateway/server"
	"blindpost/shared/metrics"
	"blindpost/shared/push"
	"blindpost/shared/queue"
	"blindpost/shared/queue/local"
	"blindpost/shared/relay"
	"blindpost/shared/settings"
	"blindpost/shared/table"
	"blindpost/shared/table/bolt"
	"blindpost/shared/table/mem"
	"blindpost/shared/table/route"
)

// Config are the settings of a Node. DataDir is required. Zero values are defaults, except
// in Limits, where 0 often means "none": begin with DefaultLimits.
type Config struct {
	// DataDir is the folder of the database file. Open creates it if necessary.
	DataDir string
	Limits  Limits
	// PushText is the text that a phone shows for a push.
	PushText push.Text
	// Pusher sends pushes; by default they are only logged.
	Pusher push.Sender

	// Attestation is what an Agentknock device must prove when it claims its id; by
	// default nothing.
	Attestation attest.Policy

	// Aelos are the settings of Aelos; without secrets the relay does not speak it.
	Aelos Aelos

	// TLS to IdleAfter are settings of the front, see server.Options.
	TLS            *tls.Config
	TrustedProxies []netip.Prefix
	MaxConns       int
	SendBuffer     int
	WriteTimeout   time.Duration
	PingEvery      time.Duration
	IdleAfter      time.Duration

	Log     *slog.Logger
	Metrics *metrics.Metrics

	// Now and Random are the sources of time and of secrets; by default those of the
	// system.
	Now    func() time.Time
	Random io.Reader
}

// Aelos are the settings of the Aelos dialect, see aelos.Options.
type Aelos struct {
	Secrets    func(ctx context.Context) ([]string, error)
	Path       string
	Controller aelos.Controller
	// Reread makes Secrets read the secrets again; nil if that never changes them.
	Reread func()
}

// Limits are the limits that can be changed while the relay runs.
type Limits struct {
	Relay      relay.Limits
	Skald      skald.Limits
	Agentknock agentknock.Limits
	Aelos      aelos.Limits
}

// DefaultLimits are those of the specifications.
func DefaultLimits() Limits { return LimitsFrom(settings.Defaults()) }

// LimitsFrom reads the limits of the core and of all dialects.
func LimitsFrom(v settings.Values) Limits {
	return Limits{
		Relay: relay.LimitsFrom(v), Skald: skald.LimitsFrom(v), Agentknock: agentknock.LimitsFrom(v), Aelos: aelos.LimitsFrom(v),
	}
}

const databaseFile = "blindpost.db"

// Node is a running relay.
type Node struct {
	Server     *server.Server
	Relay      *relay.Relay
	Skald      *skald.Dialect
	Agentknock *agentknock.Dialect
	Aelos      *aelos.Dialect // nil without secrets

	log      *slog.Logger
	now      func() time.Time
	bolt     *bolt.Table
	mem      *mem.Table
	jobs     *local.Queue
	pushes   *pushes
	stop     context.CancelFunc
	swept    chan struct{}
	stopping atomic.Bool
	health   health
}

// Open opens the database and starts everything but the front: call Serve.
func Open(cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("failed to make the data folder: %w", err)
	}
	ids, err := newIDs(cfg)
	if err != nil {
		return nil, err
	}
	n := &Node{log: cfg.Log, now: cfg.Now}
	if n.Server, err = server.New(n.frontOptions(cfg, ids)); err != nil {
		return nil, err
	}
	if n.bolt, err = bolt.Open(filepath.Join(cfg.DataDir, databaseFile), bolt.Options{Now: cfg.Now}); err != nil {
		return nil, err
	}
	n.mem = mem.New(cfg.Now)
	n.pushes = &pushes{Observer: jobObserver(cfg.Metrics)}
	n.jobs = local.New(local.Options{
		Handler:  n.runJob,
		Now:      cfg.Now,
		Log:      cfg.Log,
		Observer: n.pushes,
	})
	n.pushes.Queue = n.jobs
	o := relay.Options{
		Table:  n.tables(cfg),
		Queue:  n.pushes,
		Front:  n.Server,
		Pusher: cfg.Pusher,
		Log:    cfg.Log,
		Now:    cfg.Now,
		Random: cfg.Random,
		NewID:  ids.item,
		Limits: cfg.Limits.Relay,
	}
	if cfg.Metrics != nil {
		o.Observer = cfg.Metrics.Relay()
	}
	n.Relay = relay.New(o)
	n.Skald = skald.New(n.Relay, skald.Options{Limits: cfg.Limits.Skald, PushText: cfg.PushText})
	n.Relay.Use(n.Skald)
	n.Agentknock = agentknock.New(n.Relay, agentknock.Options{
		Limits: cfg.Limits.Agentknock, Pusher: cfg.Pusher, RemoteIP: remoteIP, Attestation: cfg.Attestation,
	})
	n.Relay.Use(n.Agentknock)
	if cfg.Aelos.Secrets != nil {
		n.Aelos = aelos.New(n.Relay, aelos.Options{
			Limits: cfg.Limits.Aelos, Secrets: cfg.Aelos.Secrets,
			Path: cfg.Aelos.Path, Controller: cfg.Aelos.Controller,
		})
		n.Relay.Use(n.Aelos)
	}
	n.Server.Handle(n.Relay)
	if err := n.recover(cfg.Metrics); err != nil {
		return nil, errors.Join(err, n.bolt.Close(context.Background()))
	}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	n.swept = make(chan struct{})
	go n.sweep(ctx)
	return n, nil
}

func (cfg Config) withDefaults() Config {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Pusher == nil {
		cfg.Pusher = push.NewLogSender(cfg.Log)
	}
	return cfg
}

func (n *Node) frontOptions(cfg Config, ids *ids) server.Options {
	o := server.Options{
		NewConn:         ids.conn,
		TLS:             cfg.TLS,
		TrustedProxies:  cfg.TrustedProxies,
		IsWebSocketPath: func(path string) bool { return n.Relay.Serves(path) },
		HTTP:            http.HandlerFunc(n.serveHTTP),
		Ready:           n.ready,
		MaxConns:        cfg.MaxConns,
		MaxBuffered:     cfg.SendBuffer,
		WriteTimeout:    cfg.WriteTimeout,
		PingEvery:       cfg.PingEvery,
		IdleAfter:       cfg.IdleAfter,
		Logger:          cfg.Log,
	}
	if cfg.Metrics != nil {
		// The front does not know the dialect of a frame.
		o.Observer = cfg.Metrics.Front(frontDialect(cfg))
	}
	return o
}

// frontDialect is the dialect under which frames are counted; "" if there is more than one.
func frontDialect(cfg Config) string {
	if cfg.Aelos.Secrets != nil {
		return ""
	}
	return "skald"
}

// serveHTTP serves requests that are neither WebSocket nor health checks.
func (n *Node) serveHTTP(w http.ResponseWriter, r *http.Request) { n.Agentknock.ServeHTTP(w, r) }

func remoteIP(r *http.Request) netip.Addr {
	ip, _ := server.RemoteIP(r.Context()) // the zero address where there is none
	return ip
}

// tables keeps items that are useless after a restart in memory, others in the file.
func (n *Node) tables(cfg Config) table.Table {
	t := table.Table(route.New(n.mem, []string{relay.ConnPartition, relay.AddressPartition, agentknock.SocketPartition, aelos.Partition}, n.bolt))
	if cfg.Metrics != nil {
		t = metrics.NewTable(t, cfg.Metrics)
	}
	return t
}

func jobObserver(m *metrics.Metrics) local.Observer {
	if m == nil {
		return local.NopObserver{}
	}
	return m
}

func (n *Node) runJob(ctx context.Context, j queue.Job) error {
	err := n.Relay.Job(ctx, j)
	if err == nil {
		n.pushes.done(j.Kind)
	}
	return err
}

// ready returns an error if the relay shuts down or the database accepts no write.
func (n *Node) ready(ctx context.Context) error {
	if n.stopping.Load() {
		return errors.New("shutting down")
	}
	return n.health.check(ctx, n.now(), n.probe)
}

// Failed is closed when the database is broken: the process should shut down and start
// again, see bolt.Table.Failed.
func (n *Node) Failed() <-chan struct{} { return n.bolt.Failed() }

// Serve accepts connections from l until Shutdown.
func (n *Node) Serve(ctx context.Context, l net.Listener) error { return n.Server.Serve(ctx, l) }

// SetLimits changes the limits at once, also for open connections.
func (n *Node) SetLimits(l Limits) {
	n.Relay.SetLimits(l.Relay)
	n.Skald.SetLimits(l.Skald)
	n.Agentknock.SetLimits(l.Agentknock)
	if n.Aelos != nil {
		n.Aelos.SetLimits(l.Aelos)
	}
}

// Shutdown ends the relay: it stops accepting, closes the connections with 1001
// over spread, lets handlers and due jobs finish and closes the database.
func (n *Node) Shutdown(ctx context.Context, spread time.Duration) error {
	n.stopping.Store(true)
	err := n.Server.Shutdown(ctx, spread)
	n.stop()
	<-n.swept
	err = errors.Join(err, n.jobs.Close(ctx))
	if err == nil && n.pushes.open.Load() == 0 {
		err = n.markClean(ctx)
	}
	return errors.Join(err, n.bolt.Close(ctx))
}

// ids makes the ids of connections and items.
type ids struct {
	boot string
	next atomic.Uint64
	now  func() time.Time
	rand io.Reader
}

func newIDs(cfg Config) (*ids, error) {
	boot, err := ulid.New(ulid.Timestamp(cfg.Now()), cfg.Random)
	if err != nil {
		return nil, fmt.Errorf("failed to make an id: %w", err)
	}
	return &ids{boot: boot.String(), now: cfg.Now, rand: cfg.Random}, nil
}

// conn makes a connection id. The boot part makes it unique across restarts.
func (i *ids) conn() gateway.Conn {
	return gateway.Conn(i.boot + "-" + strconv.FormatUint(i.next.Add(1), 36))
}

func (i *ids) item() string { return i.boot + "." + strconv.FormatUint(i.next.Add(1), 36) }
