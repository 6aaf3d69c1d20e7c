//go:build unix

package localaws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// FunctionSpec is one function. Binary is the compiled bootstrap.
type FunctionSpec struct {
	Name    string
	Binary  string
	Env     []string
	Timeout time.Duration
	// Processes is how many there are at most. A call more waits for one to be free,
	// unless Throttle is set: then it is refused, as by Lambda.
	Processes int
	Throttle  bool
}

// Lambda is the Invoke API and the Runtime API.
type Lambda struct {
	URL string

	log    io.Writer
	freeze bool
	server *http.Server
	ids    atomic.Uint64

	mu        sync.Mutex
	functions map[string]*function
	sandboxes map[string]*sandbox // by id
	fault     func(name string, payload []byte) Fault
	ending    bool
	running   sync.WaitGroup // processes
}

// Fault is what goes wrong with one call.
type Fault struct {
	// Throttle refuses it.
	Throttle bool
	// Kill kills the process with SIGKILL so long after it has got the event; negative
	// never.
	Kill time.Duration
}

// Sound is the Fault of a call with which nothing is wrong.
var Sound = Fault{Kill: -1}

// function is a function with its processes.
type function struct {
	FunctionSpec
	// guarded by Lambda.mu
	idle    []*sandbox
	alive   int
	waiting []chan struct{}
	inits   []time.Duration
	calls   int
}

// Result is what a call comes to. Error is "" or what Lambda says in
// X-Amz-Function-Error.
type Result struct {
	Payload []byte
	Error   string
}

// ErrThrottled says that the function has no process free.
var ErrThrottled = errors.New("function is throttled")

// NewLambda starts a Lambda without functions at an address. With freeze, a process
// stands still between two calls. log gets what the processes write.
func NewLambda(address string, log io.Writer, freeze bool) (*Lambda, error) {
	l := &Lambda{log: log, freeze: freeze, functions: map[string]*function{}, sandboxes: map[string]*sandbox{}}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("failed to listen: %w", err)
	}
	l.URL = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", l.serveInvoke)
	mux.HandleFunc("GET /sandbox/{sandbox}/2018-06-01/runtime/invocation/next", l.inSandbox((*sandbox).serveNext))
	mux.HandleFunc("POST /sandbox/{sandbox}/2018-06-01/runtime/invocation/{id}/response", l.inSandbox((*sandbox).serveResponse))
	mux.HandleFunc("POST /sandbox/{sandbox}/2018-06-01/runtime/invocation/{id}/error", l.inSandbox((*sandbox).serveError))
	mux.HandleFunc("POST /sandbox/{sandbox}/2018-06-01/runtime/init/error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	l.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = l.server.Serve(listener) }()
	return l, nil
}

// Add adds a function, or changes it for processes that start from now on.
func (l *Lambda) Add(s FunctionSpec) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.functions[s.Name] = &function{FunctionSpec: s}
}

// Fail has calls go wrong as f says; nil ends that.
func (l *Lambda) Fail(f func(name string, payload []byte) Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

// Inits lists how long the starts of a function have taken, until it asked for work.
func (l *Lambda) Inits(name string) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Duration(nil), l.functions[name].inits...)
}

// Calls is how often a function was called.
func (l *Lambda) Calls(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.functions[name].calls
}

// Close kills all processes.
func (l *Lambda) Close() {
	l.mu.Lock()
	l.ending = true
	for _, s := range l.sandboxes {
		s.kill()
	}
	for _, f := range l.functions {
		for len(f.waiting) > 0 {
			f.wakeLocked()
		}
	}
	l.mu.Unlock()
	l.running.Wait()
	_ = l.server.Close()
}

// Invoke calls a function and waits for its answer.
func (l *Lambda) Invoke(ctx context.Context, name string, payload []byte) (Result, error) {
	fault := Sound
	l.mu.Lock()
	f := l.functions[name]
	if f != nil {
		f.calls++
		if l.fault != nil {
			fault = l.fault(name, payload)
		}
	}
	l.mu.Unlock()
	switch {
	case f == nil:
		return Result{}, errNoFunction
	case fault.Throttle:
		return Result{}, ErrThrottled
	}
	s, err := l.acquire(ctx, f)
	if err != nil {
		return Result{}, err
	}
	return s.call(fmt.Sprintf("00000000-0000-4000-8000-%012x", l.ids.Add(1)), payload, fault.Kill), nil
}

var errNoFunction = errors.New("there is no such function")

// acquire takes a process that is free, or starts one.
func (l *Lambda) acquire(ctx context.Context, f *function) (*sandbox, error) {
	for {
		l.mu.Lock()
		if l.ending {
			l.mu.Unlock()
			return nil, errors.New("the house is closed")
		}
		if n := len(f.idle); n > 0 {
			s := f.idle[n-1]
			f.idle = f.idle[:n-1]
			l.mu.Unlock()
			return s, nil
		}
		if f.alive < f.Processes {
			s, err := l.startLocked(f)
			l.mu.Unlock()
			return s, err
		}
		if f.Throttle {
			l.mu.Unlock()
			return nil, ErrThrottled
		}
		free := make(chan struct{})
		f.waiting = append(f.waiting, free)
		l.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			l.mu.Lock()
			f.wakeLocked() // the process may have been meant for us
			l.mu.Unlock()
			return nil, ctx.Err()
		}
	}
}

// wakeLocked tells one who waits that there may be a process.
func (f *function) wakeLocked() {
	if len(f.waiting) > 0 {
		close(f.waiting[0])
		f.waiting = f.waiting[1:]
	}
}

const maxPayload = 6 << 20

func (l *Lambda) serveInvoke(w http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(io.LimitReader(r.Body, maxPayload+1))
	switch {
	case err != nil:
		lambdaError(w, http.StatusBadRequest, "InvalidRequestContentException")
		return
	case len(payload) > maxPayload:
		lambdaError(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException")
		return
	}
	// Not cut short by a caller that hangs up: the function runs on.
	res, err := l.Invoke(context.WithoutCancel(r.Context()), nameOf(r.PathValue("name")), payload)
	switch {
	case errors.Is(err, errNoFunction):
		lambdaError(w, http.StatusNotFound, "ResourceNotFoundException")
		return
	case errors.Is(err, ErrThrottled):
		lambdaError(w, http.StatusTooManyRequests, "TooManyRequestsException")
		return
	case err != nil:
		lambdaError(w, http.StatusInternalServerError, "ServiceException")
		return
	}
	w.Header().Set("X-Amz-Executed-Version", "$LATEST")
	if res.Error != "" {
		w.Header().Set("X-Amz-Function-Error", res.Error)
	}
	_, _ = w.Write(res.Payload)
}

// nameOf takes the name out of an ARN, and the version off.
func nameOf(name string) string {
	if rest, ok := strings.CutPrefix(name, "arn:"); ok {
		if parts := strings.Split(rest, ":"); len(parts) > 5 {
			return parts[5]
		}
	}
	name, _, _ = strings.Cut(name, ":")
	return name
}

func lambdaError(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"Type": "User", "message": kind})
}
