package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/shared/gateway"
)

// handler is the gateway.Handler that invokes the functions.
type handler struct {
	o      Options
	domain string
	peers  sync.Map // gateway.Conn to *peer, of open connections
	// open reports whether a connection takes posts; set once, before the first event.
	open func(context.Context, gateway.Conn) bool
}

var _ gateway.Handler = (*handler)(nil)

func newHandler(o Options) *handler {
	h := &handler{o: o}
	if u, err := url.Parse(o.Callback); err == nil { // it was checked
		h.domain = u.Host
	}
	return h
}

// Connect asks functions/connect. If the call fails, it refuses the client with the
// status that API Gateway uses for that failure.
func (h *handler) Connect(ctx context.Context, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
	// A client that hangs up must not cancel the call: the function might accept a
	// connection and never learn of its end.
	ctx = context.WithoutCancel(ctx)
	p := peerOf(e)
	out, err := h.invoke(ctx, "connect", h.o.Functions.Connect, h.connectEvent(e, p))
	if err != nil {
		h.o.Log.WarnContext(ctx, "failed to ask about a connection", "conn", string(e.Conn), "error", err)
		h.disconnectUnanswered(ctx, e, p, err)
		return gateway.ConnectResult{Status: statusOf(err)}, nil
	}
	res, body, ok := decodeAnswer(out)
	if !ok {
		h.o.Log.WarnContext(ctx, "the function connect gave no answer of the right form", "conn", string(e.Conn))
		return gateway.ConnectResult{Status: http.StatusBadGateway}, nil
	}
	if res.StatusCode/100 == 2 {
		h.peers.Store(e.Conn, p)
		return gateway.ConnectResult{}, nil
	}
	return gateway.ConnectResult{Status: res.StatusCode, Header: headerOf(res.Headers, res.MultiValueHeaders), Body: body}, nil
}

// decodeAnswer decodes the answer of functions/connect and its body.
func decodeAnswer(out []byte) (res events.APIGatewayProxyResponse, body []byte, ok bool) {
	if json.Unmarshal(out, &res) != nil || res.StatusCode < 200 || res.StatusCode > 599 {
		return res, nil, false
	}
	body, err := bodyOf(res.Body, res.IsBase64Encoded)
	return res, body, err == nil
}

// disconnectUnanswered sends a disconnect for a connection whose function did not answer
// in time: the function may have accepted it.
func (h *handler) disconnectUnanswered(ctx context.Context, e gateway.ConnectEvent, p *peer, err error) {
	if resultOf(err) != timedOut {
		return
	}
	end := gateway.DisconnectEvent{Conn: e.Conn, Code: gateway.CloseAbnormal, Reason: "not opened", At: time.Now()}
	if _, err := h.invoke(ctx, "disconnect", h.o.Functions.Disconnect, h.disconnectEvent(end, p)); err != nil {
		h.o.Log.WarnContext(ctx, "failed to take a connection back", "conn", string(e.Conn), "error", err)
	}
}

// peer returns the peer of an open connection, or an empty one.
func (h *handler) peer(c gateway.Conn) *peer {
	if p, ok := h.peers.Load(c); ok {
		return p.(*peer)
	}
	return &peer{}
}

// Frame gives a frame to functions/message, or to the ingress queue.
func (h *handler) Frame(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
	ev := h.messageEvent(e, h.peer(e.Conn))
	if h.o.Ingress != nil {
		err := h.enqueue(ctx, ev)
		if err == nil && e.Oversize {
			h.awaitClose(ctx, e.Conn)
		}
		return gateway.FrameResult{}, err
	}
	out, err := h.invoke(ctx, "message", h.o.Functions.Message, ev)
	if err != nil {
		return gateway.FrameResult{}, err
	}
	// API Gateway ignores the answer of a route without a response. We check it: the
	// answer of a wrong function, or of an emulator that reports its errors as answers,
	// does not mean that the frame was handled.
	var res events.APIGatewayProxyResponse
	if json.Unmarshal(out, &res) != nil || res.StatusCode/100 != 2 {
		return gateway.FrameResult{}, errors.New("the function message gave no answer of the right form")
	}
	return gateway.FrameResult{}, nil
}

const (
	closeWait  = 10 * time.Second
	closeCheck = 20 * time.Millisecond
)

// awaitClose waits until the functions have closed a connection whose frame was too
// large. The server closes it when Frame returns, and an error message that the
// functions post before they close would be lost.
func (h *handler) awaitClose(ctx context.Context, c gateway.Conn) {
	end := time.NewTimer(closeWait)
	defer end.Stop()
	check := time.NewTicker(closeCheck)
	defer check.Stop()
	for h.open(ctx, c) {
		select {
		case <-check.C:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Confirmed is never called, as nothing is posted with a mark.
func (h *handler) Confirmed(context.Context, gateway.ConfirmedEvent) error { return nil }

// Disconnect tells functions/disconnect.
func (h *handler) Disconnect(ctx context.Context, e gateway.DisconnectEvent) error {
	ev := h.disconnectEvent(e, h.peer(e.Conn))
	h.peers.Delete(e.Conn)
	_, err := h.invoke(ctx, "disconnect", h.o.Functions.Disconnect, ev)
	return err
}

func (h *handler) invoke(ctx context.Context, function, name string, event any) ([]byte, error) {
	payload, err := json.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("failed to encode an event for the function %s: %w", function, err)
	}
	return h.call(ctx, function, name, payload)
}
