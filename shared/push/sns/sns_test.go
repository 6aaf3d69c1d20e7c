package sns_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/smithy-go"

	"blindpost/shared/push"
	"blindpost/shared/push/sns"
)

const (
	iosApp     = "arn:aws:sns:eu-central-1:000000000000:app/APNS_SANDBOX/blindpost"
	androidApp = "arn:aws:sns:eu-central-1:000000000000:app/GCM/blindpost"
	token      = "t0ken-of-a-phone"
	arnA       = "arn:aws:sns:eu-central-1:000000000000:endpoint/GCM/blindpost/a"
	arnB       = "arn:aws:sns:eu-central-1:000000000000:endpoint/GCM/blindpost/b"
)

// answers is SNS by script: each line is an expected call and its answer, such as
// "create -> arn" or "publish A -> EndpointDisabled".
type answers struct {
	t       *testing.T
	lines   []string
	message *awssns.PublishInput
}

var _ sns.API = (*answers)(nil)

func (a *answers) next(call string) (string, error) {
	a.t.Helper()
	if len(a.lines) == 0 {
		a.t.Errorf("unexpected call: %s", call)
		return "", errors.New("unexpected")
	}
	want, answer, _ := strings.Cut(a.lines[0], " -> ")
	a.lines = a.lines[1:]
	if want != call {
		a.t.Errorf("call is %q, want %q", call, want)
	}
	code, message, isError := strings.Cut(answer, "!")
	if !isError {
		return answer, nil
	}
	switch code {
	case "EndpointDisabled":
		return "", wrap(&types.EndpointDisabledException{Message: &message})
	case "NotFound":
		return "", wrap(&types.NotFoundException{Message: &message})
	case "InvalidParameter":
		return "", wrap(&types.InvalidParameterException{Message: &message})
	case "":
		return "", fmt.Errorf("no route to host")
	default:
		return "", wrap(&smithy.GenericAPIError{Code: code, Message: message})
	}
}

func wrap(err error) error {
	return &smithy.OperationError{ServiceID: "SNS", OperationName: "X", Err: err}
}

var names = map[string]string{arnA: "A", arnB: "B"}

func (a *answers) CreatePlatformEndpoint(_ context.Context, in *awssns.CreatePlatformEndpointInput, _ ...func(*awssns.Options)) (*awssns.CreatePlatformEndpointOutput, error) {
	if *in.Token != token || in.CustomUserData != nil || len(in.Attributes) != 0 {
		a.t.Errorf("create: %+v", in)
	}
	arn, err := a.next("create")
	return &awssns.CreatePlatformEndpointOutput{EndpointArn: &arn}, err
}

func (a *answers) GetEndpointAttributes(_ context.Context, in *awssns.GetEndpointAttributesInput, _ ...func(*awssns.Options)) (*awssns.GetEndpointAttributesOutput, error) {
	s, err := a.next("get " + names[*in.EndpointArn])
	t, enabled, _ := strings.Cut(s, " ")
	return &awssns.GetEndpointAttributesOutput{Attributes: map[string]string{"Token": t, "Enabled": enabled}}, err
}

func (a *answers) SetEndpointAttributes(_ context.Context, in *awssns.SetEndpointAttributesInput, _ ...func(*awssns.Options)) (*awssns.SetEndpointAttributesOutput, error) {
	if !reflect.DeepEqual(in.Attributes, map[string]string{"Token": token, "Enabled": "true"}) {
		a.t.Errorf("set: %v", in.Attributes)
	}
	_, err := a.next("set " + names[*in.EndpointArn])
	return &awssns.SetEndpointAttributesOutput{}, err
}

func (a *answers) DeleteEndpoint(_ context.Context, in *awssns.DeleteEndpointInput, _ ...func(*awssns.Options)) (*awssns.DeleteEndpointOutput, error) {
	_, err := a.next("delete " + names[*in.EndpointArn])
	return &awssns.DeleteEndpointOutput{}, err
}

func (a *answers) Publish(_ context.Context, in *awssns.PublishInput, _ ...func(*awssns.Options)) (*awssns.PublishOutput, error) {
	a.message = in
	_, err := a.next("publish " + names[*in.TargetArn])
	return &awssns.PublishOutput{}, err
}

func sender(t *testing.T, a *answers, o sns.Options) *sns.Sender {
	t.Helper()
	s, err := sns.New(func(context.Context) (sns.API, error) { return a, nil }, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func android() push.Notification {
	return push.Notification{
		Token: token, Platform: push.Android, Kind: push.Wake, TTL: 7 * 24 * time.Hour,
		Payload: []byte(`{"fcmV1Message":{"message":{"data":{"ns":"<secret>"}}}}`),
	}
}

const exists = "InvalidParameter!Invalid parameter: Token Reason: Endpoint " + arnB + " already exists with the same Token, but different attributes."

func TestLifeOfAnEndpoint(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first string // what happens in the first push
		err   string // "" for none, "gone", or what the error says
		next  string // in the push after it
	}{
		{"new", "create -> " + arnA + "; publish A", "", "publish A"},
		{"exists with other attributes, of ours", "create -> " + exists + "; get B -> " + token + " true; publish B", "", "publish B"},
		{"exists with another token", "create -> " + exists + "; get B -> other false; set B; publish B", "", "publish B"},
		{"exists, dead", "create -> " + exists + "; get B -> " + token + " false; delete B", "gone", "create -> " + arnA + "; publish A"},
		{"disabled with another token", "create -> " + arnA + "; publish A -> EndpointDisabled!; get A -> other false; set A; publish A", "", "publish A"},
		{"disabled again", "create -> " + arnA + "; publish A -> EndpointDisabled!; get A -> other false; set A; publish A -> EndpointDisabled!", "gone", "create -> " + arnA + "; publish A"},
		{"dead", "create -> " + arnA + "; publish A -> EndpointDisabled!; get A -> " + token + " false; delete A", "gone", "create -> " + arnB + "; publish B"},
		{"dead, and cannot be deleted", "create -> " + arnA + "; publish A -> EndpointDisabled!; get A -> " + token + " false; delete A -> AuthorizationError!" + token, "gone", "create -> " + arnB + "; publish B"},
		{"enabled by someone else meanwhile", "create -> " + arnA + "; publish A -> EndpointDisabled!; get A -> " + token + " true; publish A", "", "publish A"},
		{"deleted", "create -> " + arnA + "; publish A -> NotFound!; create -> " + arnB + "; publish B", "", "publish B"},
		{"deleted twice", "create -> " + arnA + "; publish A -> NotFound!; create -> " + arnB + "; publish B -> NotFound!" + token, "SNS answered Publish with NotFound", "publish B"},
		{"deleted while it is repaired", "create -> " + arnA + "; publish A -> EndpointDisabled!; get A -> NotFound!; publish A -> NotFound!; create -> " + arnB + "; publish B", "", "publish B"},
		{"deleted before it gets its token", "create -> " + exists + "; get B -> other true; set B -> NotFound!; publish B -> NotFound!; create -> " + arnA + "; publish A", "", "publish A"},
		{"not a token", "create -> InvalidParameter!Invalid parameter: Token Reason: iOS device tokens must be no more than 400 hexadecimal characters", "gone", "create -> " + arnA + "; publish A"},
		{"not a token for an endpoint", "create -> " + exists + "; get B -> other true; set B -> InvalidParameter!Invalid parameter: Token Reason: " + token, "gone", "create -> " + arnA + "; publish A"},
		{"no such application", "create -> InvalidParameter!Invalid parameter: PlatformApplicationArn", "SNS answered CreatePlatformEndpoint with InvalidParameter", "create -> " + arnA + "; publish A"},
		{"throttled", "create -> Throttling!" + token, "SNS answered CreatePlatformEndpoint with Throttling", "create -> " + arnA + "; publish A"},
		{"throttled later", "create -> " + arnA + "; publish A -> Throttled!" + token, "SNS answered Publish with Throttled", "publish A"},
		{"throttled in between", "create -> " + exists + "; get B -> Throttled!" + token, "SNS answered GetEndpointAttributes with Throttled", "create -> " + arnA + "; publish A"},
		{"failing in between", "create -> " + exists + "; get B -> other false; set B -> InternalErrorException!" + token, "SNS answered SetEndpointAttributes with InternalError", "create -> " + arnA + "; publish A"},
		{"application disabled", "create -> " + arnA + "; publish A -> PlatformApplicationDisabled!", "SNS answered Publish with PlatformApplicationDisabled", "publish A"},
		{"no answer", "create -> !", "no answer from SNS to CreatePlatformEndpoint: no route to host", "create -> " + arnA + "; publish A"},
		{"no ARN", "create -> ", "SNS made an endpoint without an ARN", "create -> " + arnA + "; publish A"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			a := &answers{t: t}
			s := sender(t, a, sns.Options{Android: androidApp, Log: slog.New(slog.NewTextHandler(&log, nil))})
			for _, round := range []struct{ lines, err string }{{tt.first, tt.err}, {tt.next, ""}} {
				a.lines = strings.Split(round.lines, "; ")
				err := s.Send(t.Context(), android())
				switch {
				case round.err == "" && err != nil, round.err != "" && err == nil:
					t.Errorf("error is %v", err)
				case (round.err == "gone") != errors.Is(err, push.ErrTokenGone):
					t.Errorf("error is %v", err)
				case err != nil && round.err != "gone" && err.Error() != "failed to push: "+round.err:
					t.Errorf("error is %v", err)
				}
				if len(a.lines) != 0 {
					t.Errorf("calls that did not come: %q", a.lines)
				}
				if strings.Contains(log.String(), token) || (err != nil && strings.Contains(err.Error(), token)) {
					t.Errorf("the token is in the log or the error: %v, %s", err, log.String())
				}
			}
		})
	}
}

func TestWhatIsPublished(t *testing.T) {
	apns := func(aps string) []byte { return []byte(`{"aps":{` + aps + `},"d":{"ns":"<a&b>"}}`) }
	for _, tt := range []struct {
		name    string
		n       push.Notification
		apps    sns.Options
		service string
		attrs   string
	}{
		{"iOS content", push.Notification{Platform: push.IOS, Payload: apns(`"alert":{"title":"T"},"mutable-content":1`), TTL: 7 * 24 * time.Hour},
			sns.Options{IOS: strings.Replace(iosApp, "_SANDBOX", "", 1)}, "APNS", "APNS.PRIORITY=10 APNS.PUSH_TYPE=alert APNS.TTL=604800"},
		{"iOS wake that shows something", push.Notification{Platform: push.IOS, Kind: push.Wake, Payload: apns(`"content-available":1,"badge":1`), TTL: 1500 * time.Millisecond},
			sns.Options{IOS: iosApp}, "APNS_SANDBOX", "APNS.PRIORITY=10 APNS.PUSH_TYPE=alert APNS_SANDBOX.TTL=1"},
		{"iOS wake in the background", push.Notification{Platform: push.IOS, Kind: push.Wake, Payload: apns(`"content-available":1`)},
			sns.Options{IOS: iosApp}, "APNS_SANDBOX", "APNS.PRIORITY=5 APNS.PUSH_TYPE=background"},
		{"Android", push.Notification{Platform: push.Android, Payload: []byte(`{"fcmV1Message":{"message":{"data":{"c":"+/=\"<"}}}}`), TTL: 30 * 24 * time.Hour},
			sns.Options{Android: androidApp}, "GCM", "FCM.TTL=1209600"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &answers{t: t, lines: []string{"create -> " + arnA, "publish A"}}
			tt.n.Token = token
			if err := sender(t, a, tt.apps).Send(t.Context(), tt.n); err != nil {
				t.Fatal(err)
			}
			var m map[string]string
			if err := json.Unmarshal([]byte(*a.message.Message), &m); err != nil {
				t.Fatal(err)
			}
			if len(m) != 2 || m["default"] == "" || m[tt.service] != string(tt.n.Payload) {
				t.Errorf("message is %v", m)
			}
			if *a.message.MessageStructure != "json" || a.message.TopicArn != nil {
				t.Errorf("published %+v", a.message)
			}
			var attrs []string
			for name, v := range a.message.MessageAttributes {
				if *v.DataType != "String" {
					t.Errorf("%s is a %s", name, *v.DataType)
				}
				attrs = append(attrs, strings.TrimPrefix(name, "AWS.SNS.MOBILE.")+"="+*v.StringValue)
			}
			slices.Sort(attrs)
			if strings.Join(attrs, " ") != tt.attrs {
				t.Errorf("attributes are %v", attrs)
			}
		})
	}
}

// The payloads that the relay makes show something, so they go as alerts.
func TestSkaldPayloads(t *testing.T) {
	for _, size := range []int{100, 60_000} {
		m := push.SkaldMessage{Ciphertext: make([]byte, size)}
		payload, kind, err := push.SkaldPayload(push.IOS, m, push.Text{Title: "Skald", Body: "Action required"})
		if err != nil {
			t.Fatal(err)
		}
		a := &answers{t: t, lines: []string{"create -> " + arnA, "publish A"}}
		n := push.Notification{Token: token, Platform: push.IOS, Payload: payload, Kind: kind}
		if err := sender(t, a, sns.Options{IOS: iosApp}).Send(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if got := *a.message.MessageAttributes["AWS.SNS.MOBILE.APNS.PUSH_TYPE"].StringValue; got != "alert" {
			t.Errorf("%s goes as %s", kind, got)
		}
	}
}

func TestPlatformsWithoutAnApplication(t *testing.T) {
	log := push.NewLogSender(slog.New(slog.DiscardHandler))
	s := sender(t, &answers{t: t}, sns.Options{IOS: iosApp, Fallback: log})
	if err := s.Send(t.Context(), android()); err != nil || log.Count(push.Android, push.Wake) != 1 {
		t.Errorf("error is %v, logged %d", err, log.Count(push.Android, push.Wake))
	}
	s = sender(t, &answers{t: t}, sns.Options{IOS: iosApp})
	if err := s.Send(t.Context(), android()); err == nil || errors.Is(err, push.ErrTokenGone) {
		t.Errorf("error is %v", err)
	}
	if err := s.Send(t.Context(), push.Notification{Platform: push.IOS}); err == nil || errors.Is(err, push.ErrTokenGone) {
		t.Errorf("without a token: %v", err)
	}
	failure := errors.New("no credentials")
	s, err := sns.New(func(context.Context) (sns.API, error) { return nil, failure }, sns.Options{Android: androidApp})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), android()); !errors.Is(err, failure) {
		t.Errorf("error is %v", err)
	}
}

func TestApplicationsAreChecked(t *testing.T) {
	for _, o := range []sns.Options{
		{IOS: "blindpost"}, {IOS: androidApp}, {Android: iosApp}, {IOS: strings.TrimSuffix(iosApp, "blindpost")},
		{Android: arnA}, {Android: "arn:aws:sqs:eu-central-1:000000000000:app/GCM/x"}, {IOS: iosApp + "/x"},
	} {
		if _, err := sns.New(nil, o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	if _, err := sns.New(nil, sns.Options{IOS: iosApp, Android: androidApp}); err != nil {
		t.Error(err)
	}
}

// Many tokens do not fill the memory.
func TestEndpointsAreForgotten(t *testing.T) {
	a := &anything{}
	s, err := sns.New(func(context.Context) (sns.API, error) { return a, nil }, sns.Options{Android: androidApp})
	if err != nil {
		t.Fatal(err)
	}
	n := android()
	for i := range 5000 {
		n.Token = fmt.Sprint(i)
		for range 2 {
			if err := s.Send(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a.created != 5000 {
		t.Errorf("made %d endpoints", a.created)
	}
	n.Token = "1"
	if err := s.Send(t.Context(), n); err != nil || a.created != 5001 {
		t.Errorf("made %d endpoints, %v", a.created, err)
	}
}

type anything struct {
	sns.API
	created int
}

func (a *anything) CreatePlatformEndpoint(context.Context, *awssns.CreatePlatformEndpointInput, ...func(*awssns.Options)) (*awssns.CreatePlatformEndpointOutput, error) {
	a.created++
	arn := arnA
	return &awssns.CreatePlatformEndpointOutput{EndpointArn: &arn}, nil
}

func (a *anything) Publish(context.Context, *awssns.PublishInput, ...func(*awssns.Options)) (*awssns.PublishOutput, error) {
	return &awssns.PublishOutput{}, nil
}
