package sns

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"blindpost/shared/push"
)

// maxTTL is the longest time to live that SNS accepts.
const maxTTL = 14 * 24 * time.Hour

// message makes the Publish input of a notification, without its target.
func (a app) message(n push.Notification) (*awssns.PublishInput, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// "default" is required but never used: each application has one service.
	if err := e.Encode(map[string]string{"default": "wake", a.service: string(n.Payload)}); err != nil {
		return nil, errors.New("failed to encode a push") // the error might quote it
	}
	in := &awssns.PublishInput{
		MessageStructure:  aws.String("json"),
		Message:           aws.String(string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))),
		MessageAttributes: map[string]types.MessageAttributeValue{},
	}
	set := func(name, value string) {
		in.MessageAttributes["AWS.SNS.MOBILE."+name] = types.MessageAttributeValue{
			DataType: aws.String("String"), StringValue: &value,
		}
	}
	if n.Platform == push.IOS {
		if visible(n.Payload) {
			set("APNS.PUSH_TYPE", "alert")
			set("APNS.PRIORITY", "10")
		} else {
			set("APNS.PUSH_TYPE", "background")
			set("APNS.PRIORITY", "5") // Apple refuses more for this type
		}
	}
	if n.TTL > 0 {
		service := a.service
		if service == "GCM" {
			service = "FCM"
		}
		set(service+".TTL", strconv.FormatInt(int64(min(n.TTL, maxTTL)/time.Second), 10))
	}
	return in, nil
}

// visible reports whether the phone shows an APNs payload. APNs requires the push type and
// drops a push whose type does not match its payload.
func visible(payload []byte) bool {
	var p struct {
		APS map[string]json.RawMessage `json:"aps"`
	}
	if json.Unmarshal(payload, &p) != nil {
		return true
	}
	for _, name := range []string{"alert", "sound", "badge"} {
		if _, ok := p.APS[name]; ok {
			return true
		}
	}
	return false
}
