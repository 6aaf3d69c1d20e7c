package callback

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"blindpost/shared/gateway"
)

// HandlerOptions are the settings of a Handler. Front and Check are required.
type HandlerOptions struct {
	// Front has the connections; a Conn is the id in the path.
	Front gateway.Front
	// Check reports whether word is the shared secret. It must compare in constant time.
	Check func(ctx context.Context, word string) (bool, error)
	// Identity returns the address and the User-Agent of a peer, for GET.
	Identity func(gateway.Conn) (sourceIP, userAgent string)
	// Prefix is the path of the address that callers use, if it has one.
	Prefix string
	// MaxMessage is the largest message in bytes; default 4 MiB. MaxHeld bounds the
	// bytes of all messages that are being read at a time; default 64 MiB.
	MaxMessage int64
	MaxHeld    int64
	// OnRequest is called after each request.
	OnRequest func(method string, status int, took time.Duration)
	Log       *slog.Logger
}

// Handler serves @connections for a front.
type Handler struct {
	o    HandlerOptions
	held atomic.Int64
}

var _ http.Handler = (*Handler)(nil)

// NewHandler makes a handler.
func NewHandler(o HandlerOptions) *Handler {
	if o.Identity == nil {
		o.Identity = func(gateway.Conn) (string, string) { return "", "" }
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = 4 << 20
	}
	if o.MaxHeld == 0 {
		o.MaxHeld = 64 << 20
	}
	o.MaxHeld = max(o.MaxHeld, o.MaxMessage) // otherwise the largest could never be posted
	if o.OnRequest == nil {
		o.OnRequest = func(string, int, time.Duration) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Handler{o: o}
}

// answer ends a request. kind is API Gateway's name of the error, text is for people.
type answer struct {
	status int
	kind   string
	text   string
}

var (
	done       = answer{status: http.StatusOK}
	dropped    = answer{status: http.StatusAccepted}
	deleted    = answer{status: http.StatusNoContent}
	badRequest = answer{http.StatusBadRequest, "BadRequestException", "the connection id or the request is malformed"}
	forbidden  = answer{http.StatusForbidden, "ForbiddenException", "the shared secret is wrong or missing"}
	notFound   = answer{http.StatusNotFound, "NotFoundException", "only /@connections/ is served here"}
	wrongVerb  = answer{http.StatusMethodNotAllowed, "MethodNotAllowedException", "only GET, POST and DELETE are served here"}
	gone       = answer{http.StatusGone, "GoneException", "the connection is closed"}
	noLength   = answer{http.StatusLengthRequired, "BadRequestException", "the request must have a Content-Length"}
	tooLarge   = answer{http.StatusRequestEntityTooLarge, "PayloadTooLargeException", "the message is too large"}
	tooMuch    = answer{http.StatusTooManyRequests, "LimitExceededException", "too much at once, try again"}
	failed     = answer{http.StatusInternalServerError, "InternalServerErrorException", "the front failed"}
)

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	a := h.serve(w, r)
	if a.status != http.StatusOK {
		a.write(w)
	}
	h.o.OnRequest(r.Method, a.status, time.Since(start))
}

func (a answer) write(w http.ResponseWriter) {
	if a.kind != "" {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Amzn-Errortype", a.kind)
	}
	if a.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(a.status)
	if a.kind != "" {
		b, _ := json.Marshal(map[string]string{"message": a.text}) // a string always marshals
		_, _ = w.Write(b)                                          // a caller that is gone needs no answer
	}
}

// serve handles a request. It writes an answer with status 200 itself.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) answer {
	// The secret is checked first, so that a caller without it learns nothing, not even
	// which paths exist.
	if ok, err := h.allowed(r); err != nil {
		h.o.Log.ErrorContext(r.Context(), "failed to check the secret of a callback", "error", err)
		return failed
	} else if !ok {
		return forbidden
	}
	escaped, ok := strings.CutPrefix(r.URL.EscapedPath(), h.o.Prefix+pathPart)
	if !ok {
		return notFound
	}
	id, err := url.PathUnescape(escaped)
	if err != nil || !ValidID(id) {
		return badRequest
	}
	switch c := gateway.Conn(id); r.Method {
	case http.MethodPost:
		return h.post(w, r, c)
	case http.MethodGet:
		return h.get(w, r, c)
	case http.MethodDelete:
		return h.delete(r, c)
	default:
		return wrongVerb
	}
}

func (h *Handler) allowed(r *http.Request) (bool, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return false, nil
	}
	word, ok := strings.CutPrefix(values[0], bearer)
	if !ok || word == "" {
		return false, nil
	}
	return h.o.Check(r.Context(), word)
}

func (h *Handler) post(w http.ResponseWriter, r *http.Request, c gateway.Conn) answer {
	size := r.ContentLength
	switch {
	case size < 0:
		return noLength
	case size > h.o.MaxMessage:
		return tooLarge
	case h.held.Add(size) > h.o.MaxHeld:
		h.held.Add(-size)
		return tooMuch
	}
	defer h.held.Add(-size)
	m := gateway.Message{Data: make([]byte, size), Droppable: r.Header.Get(DroppableHeader) == "true"}
	switch r.Header.Get(FrameHeader) {
	case "", Text:
		m.Text = true
	case Binary:
	default:
		return badRequest
	}
	if _, err := io.ReadFull(r.Body, m.Data); err != nil {
		return badRequest
	}
	if m.Text && !utf8.Valid(m.Data) {
		return badRequest
	}
	outcome, err := h.o.Front.Post(r.Context(), c, m)
	if err != nil {
		return h.answerTo(r, err)
	}
	if outcome == gateway.Dropped {
		return dropped
	}
	w.WriteHeader(http.StatusOK)
	return done
}

func (h *Handler) delete(r *http.Request, c gateway.Conn) answer {
	code, reason := gateway.CloseNormal, ""
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest
	}
	if q.Has(codeParam) {
		n, err := strconv.ParseUint(q.Get(codeParam), 10, 16)
		if err != nil || n < 1000 || n > 4999 {
			return badRequest
		}
		code, reason = gateway.CloseCode(n), q.Get(reasonParam)
	}
	if err := h.o.Front.Close(r.Context(), c, code, reason); err != nil {
		return h.answerTo(r, err)
	}
	return deleted
}

// stat is the answer to GET, as API Gateway writes it.
type stat struct {
	ConnectedAt  time.Time `json:"connectedAt"`
	Identity     identity  `json:"identity"`
	LastActiveAt time.Time `json:"lastActiveAt"`
}

type identity struct {
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request, c gateway.Conn) answer {
	s, err := h.o.Front.Stat(r.Context(), c)
	if err != nil {
		return h.answerTo(r, err)
	}
	out := stat{ConnectedAt: s.ConnectedAt.UTC(), LastActiveAt: s.LastActiveAt.UTC()}
	out.Identity.SourceIP, out.Identity.UserAgent = h.o.Identity(c)
	b, err := json.Marshal(out)
	if err != nil {
		return h.answerTo(r, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b)
	return done
}

func (h *Handler) answerTo(r *http.Request, err error) answer {
	switch {
	case errors.Is(err, gateway.ErrGone):
		return gone
	case errors.Is(err, gateway.ErrTooLarge):
		return tooLarge
	}
	h.o.Log.ErrorContext(r.Context(), "failed to answer a callback", "method", r.Method, "error", err)
	return failed
}
