package apigwtest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/coder/websocket"

	"blindpost/shared/gateway/apigw/record"
)

const (
	maxMessage = 128 << 10
	// maxQueued is how many bytes wait for a peer that reads slowly.
	maxQueued = 1 << 20
)

// conn is one connection.
type conn struct {
	e    *Emulator
	id   string
	from *http.Request
	ws   *websocket.Conn // set under mu when the peer has its answer
	at   time.Time

	mu       sync.Mutex
	open     bool // DELETE has not been called
	vanished bool
	active   time.Time
	out      [][]byte
	queued   int
	wake     chan struct{}
	ending   bool // close when all is written
}

func (e *Emulator) upgrade(w http.ResponseWriter, r *http.Request) {
	c := &conn{e: e, id: newID(), from: r, at: time.Now(), active: time.Now(), wake: make(chan struct{}, 1), open: true}
	res, ok := e.connect(w, c)
	if !ok {
		return
	}
	o := &websocket.AcceptOptions{InsecureSkipVerify: true}
	if p := res.Headers["Sec-WebSocket-Protocol"]; p != "" {
		o.Subprotocols = []string{p}
	}
	// It takes posts before the peer has its answer.
	e.mu.Lock()
	if e.ending {
		e.mu.Unlock()
		return
	}
	e.wg.Add(1)
	defer e.wg.Done()
	e.conns[c.id] = c
	e.traffic.Connects++
	e.mu.Unlock()
	if e.cfg.MaxAge > 0 {
		defer func() { time.AfterFunc(e.cfg.MaxAge, c.end) }()
	}
	ws, err := websocket.Accept(w, r, o)
	if err != nil {
		e.forget(c)
		return
	}
	ws.SetReadLimit(maxMessage)
	if e.cfg.Binary {
		ws.SetReadLimit(maxMessage / 4 * 3)
	}
	c.mu.Lock()
	c.ws = ws
	c.mu.Unlock()
	e.wg.Go(c.write)
	e.wg.Go(c.read)
}

func (e *Emulator) forget(c *conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns[c.id] == c {
		e.traffic.Open += time.Since(c.at)
	}
	delete(e.conns, c.id)
}

func (e *Emulator) connect(w http.ResponseWriter, c *conn) (res events.APIGatewayProxyResponse, ok bool) {
	out, err := e.invoke(e.cfg.Connect, c.connectEvent())
	if err != nil || json.Unmarshal(out, &res) != nil {
		http.Error(w, `{"message":"Internal server error"}`, http.StatusBadGateway)
		return res, false
	}
	if res.StatusCode/100 != 2 {
		// Whether a body reaches the client is not known: assume not.
		for name, v := range res.Headers {
			w.Header().Set(name, v)
		}
		w.WriteHeader(res.StatusCode)
		return res, false
	}
	return res, true
}

// read takes what the peer sends, one message after the other, until the end.
func (c *conn) read() {
	code, reason := c.frames()
	c.mu.Lock()
	c.open, c.ending = false, true
	told := !c.vanished
	c.mu.Unlock()
	c.signal()
	if !told {
		return // @connections goes on taking messages for it
	}
	c.e.forget(c)
	_, _ = c.e.invoke(c.e.cfg.Disconnect, c.disconnectEvent(code, reason))
}

func (c *conn) frames() (code int64, reason string) {
	for {
		kind, data, err := c.ws.Read(context.Background())
		if err != nil {
			var ce websocket.CloseError
			if errors.As(err, &ce) {
				return int64(ce.Code), ce.Reason
			}
			return 1006, ""
		}
		if kind == websocket.MessageBinary && c.e.cfg.Binary {
			data = base64.StdEncoding.AppendEncode(nil, data)
		} else if len(data) == 0 && c.e.cfg.Binary {
			data = []byte(" ") // no text would be an empty binary message
		} else if kind == websocket.MessageBinary {
			_ = c.ws.Close(websocket.StatusUnsupportedData, "")
			return 1003, ""
		}
		c.e.countIn(len(data))
		c.mu.Lock()
		c.active = time.Now()
		open := c.open
		c.mu.Unlock()
		if !open {
			continue // DELETE was called
		}
		if err := c.dispatch(string(data)); err != nil {
			b, _ := json.Marshal(map[string]string{"message": "Internal server error", "connectionId": c.id, "requestId": newID()})
			c.post(b)
		}
	}
}

func (c *conn) dispatch(text string) error {
	ev := c.messageEvent(text)
	if c.e.cfg.Integration != nil {
		return c.e.integrate(c, ev.RequestContext.MessageID.(string), text, ev.RequestContext.RequestTimeEpoch)
	}
	_, err := c.e.invoke(c.e.cfg.Default, ev)
	return err
}

// post queues a message. It reports false if there is no room.
func (c *conn) post(data []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.vanished {
		return true
	}
	if c.queued+len(data) > maxQueued {
		return false
	}
	c.out = append(c.out, data)
	c.queued += len(data)
	c.active = time.Now()
	c.signal()
	return true
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *conn) write() {
	for {
		c.mu.Lock()
		out, ending := c.out, c.ending
		c.out, c.queued = nil, 0
		c.mu.Unlock()
		for _, m := range out {
			kind := websocket.MessageText
			if raw, err := base64.StdEncoding.AppendDecode(nil, m); err == nil && c.e.cfg.Binary {
				kind, m = websocket.MessageBinary, raw
			}
			if c.ws.Write(context.Background(), kind, m) != nil {
				return
			}
		}
		if ending {
			_ = c.ws.Close(websocket.StatusNormalClosure, "")
			return
		}
		if len(out) == 0 {
			<-c.wake
		}
	}
}

// end is DELETE: what was posted is sent, then the connection is closed.
func (c *conn) end() {
	c.mu.Lock()
	c.open, c.ending = false, true
	c.mu.Unlock()
	c.signal()
}

func (c *conn) vanish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vanished = true
	c.cut()
}

func (c *conn) drop() {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut()
}

// cut breaks the transport. mu is held.
func (c *conn) cut() {
	if c.ws != nil {
		_ = c.ws.CloseNow()
	}
}

func (c *conn) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open || c.vanished
}

func (c *conn) context(route, event string) events.APIGatewayWebsocketProxyRequestContext {
	now, id := time.Now(), newID()
	rc := events.APIGatewayWebsocketProxyRequestContext{
		RouteKey: route, EventType: event, ConnectionID: c.id, Stage: Stage, APIID: "emulated",
		DomainName: c.e.domain(), RequestID: id, ExtendedRequestID: id, MessageDirection: "IN",
		ConnectedAt: c.at.UnixMilli(), RequestTimeEpoch: now.UnixMilli(), RequestTime: now.UTC().Format("02/Jan/2006:15:04:05 -0700"),
		Identity: events.APIGatewayRequestIdentity{SourceIP: hostOf(c.from.RemoteAddr), UserAgent: c.from.UserAgent()},
	}
	if c.e.cfg.Edge != "" {
		rc.Identity.SourceIP = EdgeAddress
	}
	return rc
}

func (c *conn) connectEvent() events.APIGatewayWebsocketProxyRequest {
	ev := events.APIGatewayWebsocketProxyRequest{
		RequestContext:                  c.context("$connect", "CONNECT"),
		Headers:                         map[string]string{},
		MultiValueHeaders:               c.from.Header.Clone(),
		MultiValueQueryStringParameters: c.from.URL.Query(),
		QueryStringParameters:           map[string]string{},
	}
	forwarded := append(c.from.Header.Values("X-Forwarded-For"), hostOf(c.from.RemoteAddr))
	if c.e.cfg.Edge != "" {
		forwarded = append(forwarded, EdgeAddress)
		ev.MultiValueHeaders["X-Origin-Secret"] = []string{c.e.cfg.Edge}
		ev.MultiValueQueryStringParameters["p"] = []string{c.from.URL.Path}
	}
	ev.MultiValueHeaders["X-Forwarded-For"] = []string{strings.Join(forwarded, ", ")}
	for name, v := range ev.MultiValueHeaders {
		ev.Headers[name] = v[len(v)-1]
	}
	for name, v := range ev.MultiValueQueryStringParameters {
		ev.QueryStringParameters[name] = v[len(v)-1]
	}
	return ev
}

func (c *conn) messageEvent(text string) events.APIGatewayWebsocketProxyRequest {
	ev := events.APIGatewayWebsocketProxyRequest{RequestContext: c.context("$default", record.Message), Body: text}
	ev.RequestContext.MessageID = ev.RequestContext.RequestID
	return ev
}

func (c *conn) disconnectEvent(code int64, reason string) events.APIGatewayWebsocketProxyRequest {
	ev := events.APIGatewayWebsocketProxyRequest{RequestContext: c.context("$disconnect", record.Disconnect)}
	ev.RequestContext.DisconnectStatusCode = code
	ev.RequestContext.DisconnectReason = &reason
	return ev
}
