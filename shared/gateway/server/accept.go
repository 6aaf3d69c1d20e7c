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
		s.o.Observer.Refused(refuseTLS.status)
		refuse(w, refuseTLS)
	case wantsUpgrade(r):
		s.upgrade(w, r, from)
	case r.Method == http.MethodGet && s.o.IsWebSocketPath(pathOf(r)):
		s.o.Observer.Refused(refusePlain.status)
		refuse(w, refusePlain)
	default:
		s.serveHTTP(w, r, from)
	}
}

// pathOf is the path of a request, in which an escaped slash is none: it stays escaped,
// and so belongs to no path that anybody serves.
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

// serveHTTP calls the plain HTTP handler. net/http would print what it panicked
// with; we do not.
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

// upgrade asks the handler and opens the connection. The id is registered
// before Connect, so that it is known as "not yet" and not as "gone"; it takes
// posts from the moment in which Connect has returned.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request, from origin) {
	no := func(why refusal) {
		s.o.Observer.Refused(why.status)
		refuse(w, why)
	}
	key, err := handshakeKey(r)
	if err != nil {
		if errors.Is(err, errVersion) {
			no(refuseVersion)
		} else {
			no(refuseHandshake)
		}
		return
	}
	switch s.gate.enter() {
	case full:
		no(refuseFull)
		return
	case shut:
		no(refuseShutdown)
		return
	}
	c := newConn(s, s.o.NewConn())
	if !s.conns.add(c) {
		s.gate.leave()
		s.o.Logger.Error("connection id is not unique", "conn", string(c.id))
		no(refuseInternal)
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
			no(refuseInternal)
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
	early, _ := rw.Reader.Peek(rw.Reader.Buffered()) // what is buffered can be peeked
	c.start(nc, early)
}

// wantsUpgrade reports whether the request asks for WebSocket at all.
func wantsUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && hasToken(r.Header, "Connection", "upgrade") && hasToken(r.Header, "Upgrade", "websocket")
}

var (
	errVersion   = errors.New("not WebSocket version 13")
	errHandshake = errors.New("malformed WebSocket handshake")
)

// handshakeKey checks an upgrade request (RFC 6455 section 4.2.1) and returns
// its key.
func handshakeKey(r *http.Request) (string, error) {
	if !r.ProtoAtLeast(1, 1) || r.ProtoMajor != 1 || r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return "", errHandshake
	}
	if v := r.Header.Values("Sec-WebSocket-Version"); len(v) != 1 || v[0] != "13" {
		return "", errVersion
	}
	keys := r.Header.Values("Sec-WebSocket-Key")
	if len(keys) != 1 {
		return "", errHandshake
	}
	if raw, err := base64.StdEncoding.DecodeString(keys[0]); err != nil || len(raw) != 16 {
		return "", errHandshake
	}
	return keys[0], nil
}

// hasToken looks for one of the comma separated words of a header.
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
