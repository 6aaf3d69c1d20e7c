package server

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"blindpost/shared/gateway"
)

// ServeHTTP implements http.Handler: health checks, upgrades, and the rest.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		writeText(w, http.StatusOK, "ok")
		return
	case "/readyz":
		s.serveReady(w, r)
		return
	}
	from := s.originOf(r)
	switch {
	case !from.secure:
		s.refuse(w, refuseTLS)
	case wantsUpgrade(r):
		s.upgrade(w, r, from)
	case r.Method == http.MethodGet && s.o.IsWebSocketPath(pathOf(r)):
		s.refuse(w, refusePlain)
	default:
		s.serveHTTP(w, r, from)
	}
}

// pathOf is the path of a request. A path with an escaped slash stays escaped, so that
// it matches no path that is served.
func pathOf(r *http.Request) string {
	if strings.Contains(strings.ToUpper(r.URL.RawPath), "%2F") {
		return r.URL.EscapedPath()
	}
	return r.URL.Path
}

func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	if s.gate.isShut() {
		writeText(w, http.StatusServiceUnavailable, "shutting down")
		return
	}
	if err := s.o.Ready(r.Context()); err != nil {
		s.o.Logger.Warn("not ready", "error", err)
		writeText(w, http.StatusServiceUnavailable, "not ready")
		return
	}
	writeText(w, http.StatusOK, "ok")
}

// serveHTTP calls the plain HTTP handler. It recovers panics because net/http would
// log their values.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request, from origin) {
	defer func() {
		if v := recover(); v != nil {
			if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				s.logPanic("http", "", v)
			}
			panic(http.ErrAbortHandler)
		}
	}()
	ctx := context.WithValue(r.Context(), remoteIPKey{}, from.ip)
	s.o.HTTP.ServeHTTP(w, r.WithContext(ctx))
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // a peer that is gone needs no answer
}

// upgrade asks the handler and opens the connection. It registers the id before
// Connect, so that Gone does not report a connection that is not open yet. The
// connection takes posts as soon as Connect has returned.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request, from origin) {
	key, why := handshakeKey(r)
	if key == "" {
		s.refuse(w, why)
		return
	}
	switch s.gate.enter() {
	case full:
		s.refuse(w, refuseFull)
		return
	case shut:
		s.refuse(w, refuseShutdown)
		return
	}
	c := newConn(s, s.o.NewConn())
	if !s.conns.add(c) {
		s.gate.leave()
		s.o.Logger.Error("connection id is not unique", "conn", string(c.id))
		s.refuse(w, refuseInternal)
		return
	}
	res, err := s.connect(r.Context(), gateway.ConnectEvent{
		Conn: c.id, RemoteIP: from.ip, Path: pathOf(r), Query: r.URL.Query(), Header: r.Header, At: time.Now(),
	})
	if err != nil || !res.Accepted() {
		s.conns.remove(c)
		s.gate.leave()
		if err != nil {
			s.failed("connect", c, err)
			s.refuse(w, refuseInternal)
			return
		}
		s.o.Observer.Refused(refuseResult(w, res))
		return
	}
	s.o.Observer.Opened()
	c.accept(res, switchingProtocols(key))
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		c.fail(gateway.CloseAbnormal, "transport broke")
		c.finish(false)
		return
	}
	early, _ := rw.Reader.Peek(rw.Reader.Buffered()) // never fails for buffered bytes
	c.start(nc, early)
}

// wantsUpgrade reports whether the request asks for WebSocket at all.
func wantsUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && hasToken(r.Header, "Connection", "upgrade") && hasToken(r.Header, "Upgrade", "websocket")
}

// handshakeKey checks an upgrade request (RFC 6455 section 4.2.1) and returns its
// key, or "" and the refusal.
func handshakeKey(r *http.Request) (string, refusal) {
	if !r.ProtoAtLeast(1, 1) || r.ProtoMajor != 1 || r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return "", refuseHandshake
	}
	if v := r.Header.Values("Sec-WebSocket-Version"); len(v) != 1 || v[0] != "13" {
		return "", refuseVersion
	}
	keys := r.Header.Values("Sec-WebSocket-Key")
	if len(keys) != 1 {
		return "", refuseHandshake
	}
	if raw, err := base64.StdEncoding.DecodeString(keys[0]); err != nil || len(raw) != 16 {
		return "", refuseHandshake
	}
	return keys[0], refusal{}
}

// hasToken reports whether a comma separated header has a token, in any case.
func hasToken(h http.Header, name, token string) bool {
	for _, v := range h.Values(name) {
		for _, t := range strings.Split(v, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}

// switchingProtocols is the answer that opens the connection.
func switchingProtocols(key string) []byte {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return fmt.Appendf(nil, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
}
