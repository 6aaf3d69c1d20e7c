package apigwtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

var idForm = regexp.MustCompile(`^[A-Za-z0-9_=-]+$`)

// serveConnections is the @connections API.
func (e *Emulator) serveConnections(w http.ResponseWriter, r *http.Request, escapedID string) {
	id, err := url.PathUnescape(escapedID)
	e.mu.Lock()
	c, fault := e.conns[id], e.fault
	e.mu.Unlock()
	if fault != nil {
		if status := fault(r.Method); status != 0 {
			apiError(w, status)
			return
		}
	}
	switch {
	case r.Header.Get("Authorization") == "":
		apiError(w, http.StatusForbidden)
	case err != nil || !idForm.MatchString(id):
		apiError(w, http.StatusBadRequest)
	case c == nil || !c.known():
		apiError(w, http.StatusGone)
	case r.Method == http.MethodPost:
		e.servePost(w, r, c)
	case r.Method == http.MethodGet:
		c.serveGet(w)
	case r.Method == http.MethodDelete:
		c.end()
		w.WriteHeader(http.StatusNoContent)
	default:
		apiError(w, http.StatusForbidden)
	}
}

// The errors of the API by status.
var errorTypes = map[int]string{
	http.StatusBadRequest:            "BadRequestException",
	http.StatusForbidden:             "ForbiddenException",
	http.StatusGone:                  "GoneException",
	http.StatusRequestEntityTooLarge: "PayloadTooLargeException",
	http.StatusTooManyRequests:       "LimitExceededException",
	http.StatusInternalServerError:   "InternalServerErrorException",
}

func apiError(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", errorTypes[status])
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"message":"`+http.StatusText(status)+`"}`)
}

func (e *Emulator) servePost(w http.ResponseWriter, r *http.Request, c *conn) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxMessage+1))
	switch {
	case err != nil:
		apiError(w, http.StatusBadRequest)
	case len(data) > maxMessage:
		apiError(w, http.StatusRequestEntityTooLarge)
	case !c.post(data):
		apiError(w, http.StatusTooManyRequests)
	default:
		e.mu.Lock()
		e.posts++
		e.countOut(len(data))
		e.mu.Unlock()
		w.WriteHeader(http.StatusOK)
	}
}

func (c *conn) serveGet(w http.ResponseWriter) {
	c.mu.Lock()
	active := c.active
	c.mu.Unlock()
	b, err := marshal(map[string]any{
		"connectedAt":  c.at.UTC().Format(time.RFC3339Nano),
		"lastActiveAt": active.UTC().Format(time.RFC3339Nano),
		"identity":     map[string]string{"sourceIp": hostOf(c.from.RemoteAddr), "userAgent": c.from.UserAgent()},
	})
	if err != nil {
		apiError(w, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
}

func marshal(v any) ([]byte, error) { return json.Marshal(v) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
