package bench

import (
	"fmt"

	"github.com/gobwas/ws"
	"google.golang.org/protobuf/proto"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/dialect/skald/skaldpb"
)

// send writes a frame that is not worth precomputing.
func (c *conn) send(f *skaldpb.RelayFrame) error {
	b, err := proto.Marshal(f)
	if err != nil {
		return fmt.Errorf("failed to encode a frame: %w", err)
	}
	return c.write(appendFrame(nil, ws.OpBinary, b))
}

// decode reads a frame and makes an error frame an error.
func decode(b []byte) (*skaldpb.RelayFrame, error) {
	f := &skaldpb.RelayFrame{}
	if err := proto.Unmarshal(b, f); err != nil {
		return nil, fmt.Errorf("failed to decode a frame of %d bytes", len(b))
	}
	switch v := f.GetFrame().(type) {
	case *skaldpb.RelayFrame_AuthError:
		return nil, &skaldclient.RelayError{Code: v.AuthError.GetCode(), Message: v.AuthError.GetMessage(), Auth: true}
	case *skaldpb.RelayFrame_Error:
		return nil, &skaldclient.RelayError{Code: v.Error.GetCode(), Message: v.Error.GetMessage()}
	}
	return f, nil
}

// await returns the next frame that is no news about others; it must be the one
// that is wanted.
func (c *conn) await(what string, is func(*skaldpb.RelayFrame) bool) (*skaldpb.RelayFrame, error) {
	for {
		b, err := c.next()
		if err != nil {
			return nil, fmt.Errorf("failed to wait for %s: %w", what, err)
		}
		f, err := decode(b)
		if err != nil {
			return nil, fmt.Errorf("failed to wait for %s: %w", what, err)
		}
		if is(f) {
			return f, nil
		}
		if f.GetPresenceEvent() == nil {
			return nil, fmt.Errorf("failed to wait for %s: another frame has come (%T)", what, f.GetFrame())
		}
	}
}

// authenticate answers the challenge.
func (c *conn) authenticate(auth skaldclient.AuthFunc) error {
	f, err := c.await("challenge", func(f *skaldpb.RelayFrame) bool { return f.GetChallenge() != nil })
	if err != nil {
		return err
	}
	reply, err := auth(f.GetChallenge().GetNonce())
	if err != nil {
		return err
	}
	if err := c.send(reply); err != nil {
		return err
	}
	_, err = c.await("AuthOk", func(f *skaldpb.RelayFrame) bool { return f.GetAuthOk() != nil })
	return err
}

// presenceRequest is a frame that the relay answers when it has handled all that
// came before it.
func presenceRequest() *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}}
}

func isPresenceList(f *skaldpb.RelayFrame) bool { return f.GetPresenceList() != nil }

// barrier waits until the relay has handled all that was sent.
func (c *conn) barrier() error {
	if err := c.send(presenceRequest()); err != nil {
		return err
	}
	_, err := c.await("PresenceList", isPresenceList)
	return err
}
