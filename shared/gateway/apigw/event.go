package apigw

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/shared/gateway/apigw/record"
)

// originOf is the part of a record that identifies the connection of an event.
func originOf(e events.APIGatewayWebsocketProxyRequest) *record.Record {
	rc := e.RequestContext
	return &record.Record{
		ConnectionID: rc.ConnectionID, DomainName: rc.DomainName, Stage: rc.Stage,
		Callback: e.StageVariables[record.CallbackVariable],
	}
}

// RecordOf makes the record of a $default or $disconnect event, to be put into the
// ingress queue.
func RecordOf(e events.APIGatewayWebsocketProxyRequest) (*record.Record, error) {
	rc := e.RequestContext
	r := originOf(e)
	r.Event, r.Time = rc.EventType, rc.RequestTimeEpoch
	if !validConnectionID(r.ConnectionID) {
		return nil, fmt.Errorf("connection id of a %.20q event is not valid", rc.EventType)
	}
	switch rc.EventType {
	case record.Message:
		r.MessageID, r.Binary = messageID(rc), e.IsBase64Encoded
		if err := setBody(r, e); err != nil {
			return nil, err
		}
	case record.Disconnect:
		r.Code = rc.DisconnectStatusCode
		if rc.DisconnectReason != nil {
			r.Reason = *rc.DisconnectReason
		}
	default:
		return nil, fmt.Errorf("event of type %.20q cannot be queued", rc.EventType)
	}
	return r, nil
}

// messageID is the id of a frame. The field of the event may have any type.
func messageID(rc events.APIGatewayWebsocketProxyRequestContext) string {
	if s, ok := rc.MessageID.(string); ok && s != "" {
		return s
	}
	return rc.RequestID
}

// setBody copies the frame of an event into the record.
func setBody(r *record.Record, e events.APIGatewayWebsocketProxyRequest) error {
	if size := e.StageVariables[record.OversizeVariable]; r.Callback != "" && size != "" {
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n <= 0 {
			return errors.New("size of a frame that was too large is not a number")
		}
		r.Oversize = n
		return nil
	}
	if r.Callback != "" && e.IsBase64Encoded {
		r.Body = e.Body // base64 of the bytes themselves
		return nil
	}
	r.Body = encoding.EncodeToString([]byte(e.Body))
	return nil
}
