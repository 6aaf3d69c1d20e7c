//go:build aws

package localaws_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"google.golang.org/protobuf/proto"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/proof/apigwtest"
	"blindpost/shared/proof/localaws"
)

// sample is an event in the form in which API Gateway sends it, as if it came now.
func sample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "functions", name))
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	rc := e["requestContext"].(map[string]any)
	rc["connectedAt"], rc["requestTimeEpoch"] = time.Now().UnixMilli(), time.Now().UnixMilli()
	if b, err = json.Marshal(e); err != nil {
		t.Fatal(err)
	}
	return b
}

// call is one request to @connections.
type call struct {
	method, path, auth string
	body               []byte
}

// apiGateway is the house behind API Gateway: events of its form go in, @connections is
// written down.
type apiGateway struct {
	*front
	calls chan call
}

func openAPIGateway(t *testing.T) *apiGateway {
	a := &apiGateway{calls: make(chan call, 100)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.calls <- call{r.Method, r.URL.Path, r.Header.Get("Authorization"), body}
	}))
	t.Cleanup(server.Close)
	a.front = open(t, plan{house: localaws.Options{
		Env: append([]string{"AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI=" + server.URL}, roomy...),
	}})
	return a
}

func (a *apiGateway) invoke(function string, event []byte) []byte {
	a.t.Helper()
	res, err := a.Lambda.Invoke(a.t.Context(), function, event)
	if err != nil || res.Error != "" {
		a.t.Fatalf("%s: %v: %s", function, err, res.Payload)
	}
	return res.Payload
}

// posted waits for the next message to the peer: base64 in a text frame.
func (a *apiGateway) posted() *skaldpb.RelayFrame {
	a.t.Helper()
	select {
	case c := <-a.calls:
		f := &skaldpb.RelayFrame{}
		raw, err := base64.StdEncoding.DecodeString(string(c.body))
		if err != nil || proto.Unmarshal(raw, f) != nil {
			a.t.Fatalf("%s %s: %q", c.method, c.path, c.body)
		}
		if c.method != "POST" || c.path != "/@connections/"+connectionID || !strings.HasPrefix(c.auth, "AWS4-HMAC-SHA256 ") {
			a.t.Fatalf("%s %s, %.20s", c.method, c.path, c.auth)
		}
		return f
	case <-time.After(patience):
		a.t.Fatal("nothing was posted")
		return nil
	}
}

// connectionID and domain are those of the samples.
const (
	connectionID = "eXt4mc2qFiACHgQ="
	domain       = "k3v9example.execute-api.eu-central-1.amazonaws.com"
)

// ingress puts a frame into the queue, as the integration of API Gateway does.
func (a *apiGateway) ingress(f *skaldpb.RelayFrame, messageID string) {
	a.t.Helper()
	raw, err := proto.Marshal(f)
	if err != nil {
		a.t.Fatal(err)
	}
	form := apigwtest.Render(record.Template, map[string]string{
		"connectionId": connectionID, "domainName": domain, "stage": "prod", "messageId": messageID,
		"requestTimeEpoch": fmt.Sprint(time.Now().UnixMilli()),
	}, base64.StdEncoding.EncodeToString(raw))
	group, id, body := form.Get("MessageGroupId"), form.Get("MessageDeduplicationId"), form.Get("MessageBody")
	if _, err := a.Queues.SendMessage(a.t.Context(), &awssqs.SendMessageInput{
		QueueUrl: &a.Ingress, MessageGroupId: &group, MessageDeduplicationId: &id, MessageBody: &body,
	}); err != nil {
		a.t.Fatal(err)
	}
}

// The life of an agent's connection through API Gateway: $connect, the challenge that a
// job posts, frames by way of the queue, one of them twice, $disconnect.
func TestAPIGateway(t *testing.T) {
	a := openAPIGateway(t)
	var res events.APIGatewayProxyResponse
	if out := a.invoke("Connect", sample(t, "connect/testdata/connect.json")); json.Unmarshal(out, &res) != nil || res.StatusCode != 200 {
		t.Fatalf("connect: %s", out)
	}
	challenge := a.posted().GetChallenge()
	if challenge == nil {
		t.Fatal("the first word is no challenge")
	}
	id, err := skaldclient.GenerateIdentity(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	auth, err := skaldclient.AgentAuth(id)(challenge.GetNonce())
	if err != nil {
		t.Fatal(err)
	}
	a.ingress(auth, "message-1=")
	if ok := a.posted().GetAuthOk(); ok == nil {
		t.Fatal("the agent is not admitted")
	}
	a.ingress(auth, "message-1=") // API Gateway, or the queue, says it twice: it is one frame
	a.ingress(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}}, "message-2=")
	if list := a.posted().GetPresenceList(); list == nil {
		t.Fatal("the presence list is not answered")
	}
	a.invoke("Disconnect", sample(t, "disconnect/testdata/disconnect.json"))
	for end := time.Now().Add(patience); a.Queues.Len(a.Ingress) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the disconnect is not handled")
		}
	}
	if dead := a.Queues.Dead(a.Ingress); len(dead) != 0 {
		t.Errorf("%d messages were put aside", len(dead))
	}
	if err := a.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
}

// The sample events of the queues and of the schedule are taken by the binaries.
func TestSampleEvents(t *testing.T) {
	a := openAPIGateway(t)
	for function, name := range map[string]string{
		"Message": "message/testdata/ingress.json", "Sweeper": "sweeper/testdata/schedule.json",
	} {
		b, err := os.ReadFile(filepath.Join(root, "functions", name))
		if err != nil {
			t.Fatal(err)
		}
		if out := a.invoke(function, b); !json.Valid(out) {
			t.Errorf("%s: %s", name, out)
		}
	}
	// What is no event is an error, and nothing worse.
	for function := range localaws.Names {
		for _, event := range []string{`{}`, `[]`, `"x"`, `{"Records":7}`, `{"requestContext":{"eventType":"MESSAGE"}}`} {
			res, err := a.Lambda.Invoke(t.Context(), function, []byte(event))
			if err != nil || res.Error == "" || strings.Contains(string(res.Payload), "Exit") {
				t.Errorf("%s of %s: %v, %q, %s", function, event, err, res.Error, res.Payload)
			}
		}
	}
}
