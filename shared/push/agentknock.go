package push

// agentknockWake is the data of the only push of this dialect.
type agentknockWake struct {
	Type string `json:"type"`
}

// AgentknockWake builds the finished payload of a push that wakes an Agentknock
// device, an FCM data message inside the two objects that SNS requires:
//
//	{"fcmV1Message":{"message":{"data":{"type":"wake"},"android":{"priority":"high"}}}}
func AgentknockWake() ([]byte, error) {
	return encode(fcmPayload{FCM: fcmV1{Message: fcmMessage{
		Data: agentknockWake{Type: "wake"}, Android: fcmAndroid{Priority: "high"},
	}}})
}
