package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"blindpost/shared/gateway"
)

// refusal is an HTTP answer that ends a request.
type refusal struct {
	status int
	code   string // for machines
	text   string // for people
}

var (
	refuseTLS = refusal{http.StatusForbidden, "tls_required",
		"This relay is reached over TLS only: use wss:// or https://. Behind a proxy, the proxy must be trusted and must set X-Forwarded-Proto."}
	refusePlain     = refusal{http.StatusUpgradeRequired, "upgrade_required", "This path speaks WebSocket."}
	refuseVersion   = refusal{http.StatusUpgradeRequired, "bad_handshake", "WebSocket version 13 is needed."}
	refuseHandshake = refusal{http.StatusBadRequest, "bad_handshake", "The WebSocket handshake is malformed."}
	refuseFull      = refusal{http.StatusServiceUnavailable, "too_many_connections", "The relay is full, try again later."}
	refuseShutdown  = refusal{http.StatusServiceUnavailable, "shutting_down", "The relay is shutting down, try again."}
	refuseInternal  = refusal{http.StatusInternalServerError, "internal", "The relay failed to handle the request."}
)

// refuse counts the refusal and writes the answer, after which the transport closes.
func (s *Server) refuse(w http.ResponseWriter, r refusal) {
	s.o.Observer.Refused(r.status)
	refuseWith(w, r.status, nil, r.body())
}

func (r refusal) body() []byte {
	b, _ := json.Marshal(struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}{r.code, r.text}) // two strings always marshal
	return b
}

func refuseWith(w http.ResponseWriter, status int, header http.Header, body []byte) {
	h := w.Header()
	for k, vs := range header {
		h[http.CanonicalHeaderKey(k)] = append([]string(nil), vs...)
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Connection", "close")
	if status == http.StatusUpgradeRequired {
		h.Set("Connection", "Upgrade, close")
		h.Set("Upgrade", "websocket")
		h.Set("Sec-WebSocket-Version", "13")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a peer that is gone needs no answer
}

// refuseResult writes the handler's refusal and returns its status.
func refuseResult(w http.ResponseWriter, res gateway.ConnectResult) int {
	status := res.Status
	if status < 300 || status > 999 {
		// net/http cannot write it, or a client would not read it as a refusal.
		status = http.StatusInternalServerError
	}
	body := res.Body
	if body == nil {
		text := http.StatusText(status)
		if text == "" {
			text = "Refused"
		}
		body = refusal{status, strings.ReplaceAll(strings.ToLower(text), " ", "_"), text + "."}.body()
	}
	refuseWith(w, status, res.Header, body)
	return status
}
