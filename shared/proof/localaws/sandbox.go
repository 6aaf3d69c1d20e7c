//go:build unix

package localaws

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// sandbox is one process of a function. It does one call at a time.
type sandbox struct {
	l     *Lambda
	f     *function
	id    string
	cmd   *exec.Cmd
	start time.Time
	work  chan *call
	dead  chan struct{} // closed when the process has ended

	mu      sync.Mutex
	current *call
	asked   bool // it has asked for work before
	frozen  bool
	ended   bool
}

// call is one call of a function.
type call struct {
	id       string
	payload  []byte
	deadline time.Time
	done     chan Result // takes one
}

// startLocked starts a process.
func (l *Lambda) startLocked(f *function) (*sandbox, error) {
	s := &sandbox{
		l: l, f: f, id: fmt.Sprintf("%s-%d", f.Name, l.ids.Add(1)),
		work: make(chan *call), dead: make(chan struct{}), start: time.Now(),
	}
	s.cmd = exec.Command(f.Binary)
	s.cmd.Env = append([]string{
		"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(l.URL, "http://") + "/sandbox/" + s.id,
		"AWS_LAMBDA_FUNCTION_NAME=" + f.Name, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256",
		"AWS_REGION=" + Region, "AWS_DEFAULT_REGION=" + Region, "_HANDLER=bootstrap",
		"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_SESSION_TOKEN=local",
	}, f.Env...)
	s.cmd.Stdout, s.cmd.Stderr = l.log, l.log
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("failed to start the function %s: %w", f.Name, err)
	}
	f.alive++
	l.sandboxes[s.id] = s
	l.running.Go(s.wait)
	return s, nil
}

// wait notices the end of the process.
func (s *sandbox) wait() {
	err := s.cmd.Wait()
	s.l.mu.Lock()
	s.f.alive--
	delete(s.l.sandboxes, s.id)
	for i, other := range s.f.idle {
		if other == s {
			s.f.idle = append(s.f.idle[:i], s.f.idle[i+1:]...)
			break
		}
	}
	s.f.wakeLocked()
	s.l.mu.Unlock()
	s.mu.Lock()
	s.ended = true
	c := s.current
	s.current = nil
	s.mu.Unlock()
	close(s.dead)
	if c != nil {
		c.finish(failure("Runtime.ExitError", fmt.Sprintf("RequestId: %s Error: Runtime exited with error: %v", c.id, errors.Unwrap(err))))
	}
}

func (c *call) finish(r Result) {
	select {
	case c.done <- r:
	default: // it has a result
	}
}

func failure(kind, message string) Result {
	b, _ := json.Marshal(map[string]string{"errorType": kind, "errorMessage": message})
	return Result{Payload: b, Error: "Unhandled"}
}

// kill ends the process as Lambda does: without a word.
func (s *sandbox) kill() { _ = s.cmd.Process.Kill() }

// initTimeout is how long a process may take to ask for work.
const initTimeout = 30 * time.Second

// call runs one event. The process is ours alone. killAfter is negative for never.
func (s *sandbox) call(id string, payload []byte, killAfter time.Duration) Result {
	c := &call{id: id, payload: payload, done: make(chan Result, 1)}
	s.thaw()
	begin := time.NewTimer(initTimeout)
	defer begin.Stop()
	select {
	case s.work <- c:
	case <-s.dead:
		return failure("Runtime.ExitError", "RequestId: "+id+" Error: Runtime exited before it took the event")
	case <-begin.C:
		s.kill()
		return failure("Sandbox.Timedout", "RequestId: "+id+" Error: init timed out")
	}
	if killAfter >= 0 {
		t := time.AfterFunc(killAfter, s.kill)
		defer t.Stop()
	}
	end := time.NewTimer(s.f.Timeout)
	defer end.Stop()
	select {
	case r := <-c.done:
		return r
	case <-end.C:
		s.kill()
		return failure("Sandbox.Timedout", fmt.Sprintf("%s Task timed out after %.2f seconds", id, s.f.Timeout.Seconds()))
	}
}

func (s *sandbox) thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen {
		s.frozen = false
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
	}
}

// rest puts the process among those that are free.
func (s *sandbox) rest() {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	if s.l.freeze {
		s.frozen = true
		_ = s.cmd.Process.Signal(syscall.SIGSTOP)
	}
	s.mu.Unlock()
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.l.sandboxes[s.id] == s {
		s.f.idle = append(s.f.idle, s)
		s.f.wakeLocked()
	}
}

// inSandbox finds the process that calls the Runtime API.
func (l *Lambda) inSandbox(serve func(*sandbox, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		s := l.sandboxes[r.PathValue("sandbox")]
		l.mu.Unlock()
		if s == nil {
			http.Error(w, "no such sandbox", http.StatusForbidden)
			return
		}
		serve(s, w, r)
	}
}

func (s *sandbox) serveNext(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	first := !s.asked
	s.asked = true
	s.mu.Unlock()
	if first {
		s.l.mu.Lock()
		s.f.inits = append(s.f.inits, time.Since(s.start))
		s.l.mu.Unlock()
	} else {
		s.rest()
	}
	var c *call
	select {
	case c = <-s.work:
	case <-s.dead:
		return
	case <-r.Context().Done():
		return
	}
	c.deadline = time.Now().Add(s.f.Timeout)
	s.mu.Lock()
	s.current = c
	ended := s.ended
	s.mu.Unlock()
	if ended {
		c.finish(failure("Runtime.ExitError", "RequestId: "+c.id+" Error: Runtime exited"))
		return
	}
	h := w.Header()
	h.Set("Lambda-Runtime-Aws-Request-Id", c.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(c.deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:"+Region+":"+account+":function:"+s.f.Name)
	h.Set("Content-Type", "application/json")
	_, _ = w.Write(c.payload)
}

func (s *sandbox) serveResponse(w http.ResponseWriter, r *http.Request) { s.answer(w, r, "") }
func (s *sandbox) serveError(w http.ResponseWriter, r *http.Request)    { s.answer(w, r, "Unhandled") }

func (s *sandbox) answer(w http.ResponseWriter, r *http.Request, kind string) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPayload+1))
	s.mu.Lock()
	c := s.current
	if c == nil || c.id != r.PathValue("id") || err != nil {
		s.mu.Unlock()
		http.Error(w, "no such invocation", http.StatusBadRequest)
		return
	}
	s.current = nil
	s.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
	if len(body) > maxPayload {
		c.finish(failure("Function.ResponseSizeTooLarge", "response is too large"))
		return
	}
	c.finish(Result{Payload: body, Error: kind})
}
