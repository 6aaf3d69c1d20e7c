package wiring_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"blindpost/functions/internal/wiring"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/proof/sqstest"
	"blindpost/shared/queue/sqs"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

var minimal = []string{
	"BLINDPOST_TABLE=t", "BLINDPOST_JOBS_QUEUE_URL=https://sqs.eu-central-1.amazonaws.com/0/jobs",
	"BLINDPOST_INGRESS_QUEUE_URL=https://sqs.eu-central-1.amazonaws.com/0/ingress.fifo",
}

func TestWrongSettings(t *testing.T) {
	for _, tt := range []struct {
		f    wiring.Function
		env  string
		want string // "" is fine
	}{
		{wiring.Connect, "BLINDPOST_TABEL=x", "BLINDPOST_TABEL: there is no such setting; the nearest is BLINDPOST_TABLE"},
		{wiring.Connect, "BLINDPOST_TABLE=", "BLINDPOST_TABLE: it is missing"},
		{wiring.Sweeper, "BLINDPOST_JOBS_QUEUE_URL=", "BLINDPOST_JOBS_QUEUE_URL: it is missing"},
		{wiring.Disconnect, "BLINDPOST_TABLE= BLINDPOST_JOBS_QUEUE_URL=", ""},
		{wiring.Disconnect, "BLINDPOST_TABLE= BLINDPOST_INGRESS_QUEUE_URL=", "BLINDPOST_TABLE: it is missing"},
		{wiring.Message, "BLINDPOST_INGRESS_QUEUE_URL=", ""},
		{wiring.Message, "BLINDPOST_INGRESS_QUEUE_URL=https://sqs.example/0/jobs", `BLINDPOST_INGRESS_QUEUE_URL "https://sqs.example/0/jobs": it must be the URL of a FIFO queue`},
		{wiring.Message, "BLINDPOST_JOBS_QUEUE_URL=https://sqs.example/0/jobs.fifo", "a FIFO queue cannot delay a job"},
		{wiring.Message, "BLINDPOST_JOBS_QUEUE_URL=arn:aws:sqs:x", `BLINDPOST_JOBS_QUEUE_URL "arn:aws:sqs:x": it must be the URL`},
		{wiring.Message, "BLINDPOST_FRONTS=http://127.0.0.1:8444", `BLINDPOST_FRONTS "http://127.0.0.1:8444": it needs BLINDPOST_FRONT_SECRET_ARN or BLINDPOST_FRONT_SECRET_FILE`},
		{wiring.Message, "BLINDPOST_FRONTS=http://front.example BLINDPOST_FRONT_SECRET_FILE=/x", `BLINDPOST_FRONTS "http://front.example": callback address is not https`},
		{wiring.Message, "BLINDPOST_FRONTS=https://front.example/ BLINDPOST_FRONT_SECRET_FILE=/x", "no slash at their ends"},
		{wiring.Message, "BLINDPOST_FRONTS=https://front.example,http://host.docker.internal:8444 BLINDPOST_FRONT_SECRET_FILE=/x", ""},
		{wiring.Message, "BLINDPOST_FRONT_SECRET_ARN=the-secret-itself", "it must be the ARN of a secret"},
		{wiring.Message, "BLINDPOST_INGRESS_ATTEMPTS=0", `BLINDPOST_INGRESS_ATTEMPTS "0": it must be from 1 to 1000`},
		{wiring.Message, "BLINDPOST_INGRESS_ATTEMPTS=many", `BLINDPOST_INGRESS_ATTEMPTS "many": it must be a whole number, 0 or more`},
		{wiring.Message, "BLINDPOST_API_CALLBACK_URL=wss://a.example", `BLINDPOST_API_CALLBACK_URL "wss://a.example": it must be a URL`},
		{wiring.Message, "BLINDPOST_API_CALLBACK_URL=https://a.example/s/", "no slash at its end"},
		{wiring.Connect, "BLINDPOST_ORIGIN_SECRET_ARN=swordfish", "BLINDPOST_ORIGIN_SECRET_ARN: it must be the ARN of a secret, not the secret itself"},
		{wiring.Connect, "BLINDPOST_AELOS_SECRET_ARN=swordfish", "BLINDPOST_AELOS_SECRET_ARN: it must be the ARN of a secret, not the secret itself"},
		{wiring.Connect, "BLINDPOST_AELOS_SECRET_ARN=arn:x BLINDPOST_AELOS_SECRET_FILE=y", "BLINDPOST_AELOS_SECRET_ARN: it excludes BLINDPOST_AELOS_SECRET_FILE"},
		{wiring.Connect, "BLINDPOST_AELOS_PATH=/v1/ws", `BLINDPOST_AELOS_PATH "/v1/ws": "/v1/ws" belongs to the relay`},
		{wiring.Connect, "BLINDPOST_AELOS_CONTROLLER=role=viewer", `BLINDPOST_AELOS_CONTROLLER "role=viewer": claim "role" has a meaning of its own`},
		{wiring.Connect, "BLINDPOST_AELOS_MAX_FRAME=128KiB", `BLINDPOST_AELOS_MAX_FRAME "128KiB": it must be at most 98304 on AWS`},
		{wiring.Connect, "BLINDPOST_AELOS_MAX_VIEWERS=0", "BLINDPOST_AELOS_MAX_VIEWERS"},
		{wiring.Connect, "BLINDPOST_AGENTKNOCK_ATTESTATION=yes", `BLINDPOST_AGENTKNOCK_ATTESTATION "yes": it must be off, check or require`},
		{wiring.Connect, "BLINDPOST_AGENTKNOCK_ATTESTATION=check", `BLINDPOST_AGENTKNOCK_ATTESTATION "check": it needs a file with the roots`},
		{wiring.Connect, "BLINDPOST_AGENTKNOCK_ATTESTATION=require", `BLINDPOST_AGENTKNOCK_ATTESTATION "require": it needs a file with the roots`},
		{wiring.Connect, "BLINDPOST_AGENTKNOCK_ATTESTATION_ROOTS=/r.pem", "BLINDPOST_AGENTKNOCK_ATTESTATION: roots are named"},
		{wiring.Connect, "BLINDPOST_AGENTKNOCK_ATTESTATION=off", ""},
		{wiring.Connect, "BLINDPOST_AGENTKNOCK_ATTESTATION=require BLINDPOST_AGENTKNOCK_ATTESTATION_ROOTS=/r.pem", ""},
		{wiring.Connect, "BLINDPOST_ORIGIN_SECRET_HEADER=x-forwarded-for", "BLINDPOST_ORIGIN_SECRET_HEADER"},
		{wiring.Connect, "BLINDPOST_ORIGIN_SECRET_HEADER=a_b", "BLINDPOST_ORIGIN_SECRET_HEADER"},
		{wiring.Connect, "BLINDPOST_DEFAULT_PATH=v1/ws", "BLINDPOST_DEFAULT_PATH"},
		{wiring.Sweeper, "BLINDPOST_SNS_IOS_ARN=" + androidApp, "it must be an ARN of a platform application for APNS"},
		{wiring.Sweeper, "BLINDPOST_SNS_ANDROID_ARN=x", "BLINDPOST_SNS_ANDROID_ARN"},
		{wiring.Sweeper, "BLINDPOST_PUSH_TITLE=" + strings.Repeat("x", 257), "it must be a line of at most 256 bytes"},
		{wiring.Connect, "BLINDPOST_CONN_RECORD_TTL=1h", `BLINDPOST_CONN_RECORD_TTL "1h": it must be from 2h`},
		{wiring.Connect, "BLINDPOST_LOG_LEVEL=loud", "it must be debug, info, warn or error"},
		{wiring.Connect, "BLINDPOST_MAX_FRAME=64KB", "it must be a number of bytes, such as 65536, 64KiB or 4MiB"},
		{wiring.Connect, "BLINDPOST_MAX_FRAME=1KiB", `BLINDPOST_MAX_FRAME "1KiB": it must be from 4KiB`},
		{wiring.Connect, "BLINDPOST_MAX_FRAME=9999999999GiB", "it must be a number of bytes"},
		{wiring.Connect, "BLINDPOST_MAX_LIVE_FRAME=32KiB", "BLINDPOST_MAX_LIVE_FRAME \"32KiB\": it is smaller than BLINDPOST_MAX_FRAME"},
		{wiring.Connect, "BLINDPOST_MESSAGE_TTL=7", "it must be a time with its unit"},
		{wiring.Connect, "BLINDPOST_MESSAGE_TTL=-7s", "it must be a time with its unit"},
		{wiring.Connect, "BLINDPOST_CHALLENGE_TIMEOUT=0s", "BLINDPOST_CHALLENGE_TIMEOUT"},
		{wiring.Connect, "BLINDPOST_PAIRING_TTL=700s", "BLINDPOST_PAIRING_TTL \"700s\": it is longer than BLINDPOST_PAIRING_TTL_MAX"},
		{wiring.Connect, "BLINDPOST_PAIRING_TTL=1500ms", "it must be whole seconds"},
	} {
		env := append(slices.Clone(minimal), strings.Split(tt.env, " ")...)
		// The last one of a name counts, as in a process.
		last := map[string]string{}
		for _, kv := range env {
			name, _, _ := strings.Cut(kv, "=")
			last[name] = kv
		}
		env = env[:0]
		for _, kv := range last {
			env = append(env, kv)
		}
		_, err := wiring.Load(env, tt.f)
		if (tt.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s, %s: %v", tt.f, tt.env, err)
		}
	}
	// All that is wrong is said at once.
	_, err := wiring.Load([]string{"BLINDPOST_MAILBOX_CAP=x", "BLINDPOST_NONE=1"}, wiring.Connect)
	for _, want := range []string{"MAILBOX_CAP", "NONE", "TABLE", "JOBS_QUEUE_URL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing about %s: %v", want, err)
		}
	}
}

// AWS connects to nothing: the clients can be made without credentials and
// network.
func TestAWSIsLazy(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_CONFIG_FILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	c, err := wiring.Load(minimal, wiring.Message)
	if err != nil {
		t.Fatal(err)
	}
	b := wiring.AWS(c)
	first, err := b.SQS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := b.SQS(t.Context()); second != first {
		t.Error("a second client was made")
	}
	if x, err := b.Table(t.Context()); err != nil || x == nil {
		t.Error(x, err)
	}
	if x, err := b.SNS(t.Context()); err != nil || x == nil {
		t.Error(x, err)
	}
	if x, err := b.Connections(t.Context(), "https://a.example/s"); err != nil || x == nil {
		t.Error(x, err)
	}
	ids := map[string]bool{b.NewID(): true, b.NewID(): true, wiring.AWS(c).NewID(): true}
	if len(ids) != 3 {
		t.Error("ids are not unique")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := b.Secret(ctx, "arn:aws:secretsmanager:eu-central-1:000000000000:secret:x"); err == nil {
		t.Errorf("a secret came from nowhere: %d bytes", len(s))
	}
}

// edge is an App whose secret can be changed.
type edge struct {
	secret string
	err    error
	reads  int
	calls  int
	now    time.Time
	log    bytes.Buffer
	table  *mem.Table
}

func (e *edge) connect(t *testing.T, app *wiring.App, word string) (address string) {
	t.Helper()
	payload, err := os.ReadFile("../../connect/testdata/connect-edge.json")
	if err != nil {
		t.Fatal(err)
	}
	// Another connection each time, so that it is counted.
	e.calls++
	payload = bytes.ReplaceAll(payload, []byte("eXu0Zd5KliACJbg="), fmt.Appendf(nil, "edge%d=", e.calls))
	if _, err := app.Invoke(t.Context(), wiring.Connect, bytes.ReplaceAll(payload, []byte(edgeSecret), []byte(word))); err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{"2001:db8:7::/64", "130.176.0.1"} {
		k := table.Key{Partition: "ip/" + a, Sort: "n"}
		if _, err := e.table.Get(t.Context(), k); err == nil {
			address = a
			if _, err := e.table.Write(t.Context(), table.Op{Action: table.Delete, Key: k}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return address
}

// A secret is read once and again after five minutes; both values of a rotation
// count; and when it cannot be read again, the last one still counts.
func TestOriginSecret(t *testing.T) {
	e := &edge{secret: "old", now: sampleTime}
	e.table = mem.New(func() time.Time { return e.now })
	server := sqstest.NewServer(1)
	jobs, ingress := server.Create(sqstest.Queue{Name: "jobs"}), server.Create(sqstest.Queue{Name: "ingress.fifo"})
	c, err := wiring.Load([]string{
		"BLINDPOST_TABLE=t", "BLINDPOST_JOBS_QUEUE_URL=" + jobs, "BLINDPOST_INGRESS_QUEUE_URL=" + ingress, "BLINDPOST_ORIGIN_SECRET_ARN=" + secretARN,
	}, wiring.Connect)
	if err != nil {
		t.Fatal(err)
	}
	ids := 0
	app := wiring.New(c, wiring.Backend{
		Table:       func(context.Context) (table.Table, error) { return e.table, nil },
		SQS:         func(context.Context) (sqs.API, error) { return server, nil },
		Connections: func(context.Context, string) (apigw.API, error) { return nil, errors.New("not here") },
		Secret:      func(context.Context, string) (string, error) { e.reads++; return e.secret, e.err },
		Log:         slog.New(slog.NewTextHandler(&e.log, nil)),
		Now:         func() time.Time { return e.now },
		Random:      strings.NewReader(strings.Repeat("x", 10_000)),
		NewID:       func() string { ids++; return fmt.Sprint("id", ids) },
	})
	const client, cloudFront = "2001:db8:7::/64", "130.176.0.1"
	for _, step := range []struct {
		after  time.Duration
		secret string
		err    error
		word   string
		want   string
		reads  int
	}{
		{0, "old", nil, "old", client, 1},
		{time.Minute, "old\n new ", nil, "new", cloudFront, 1},
		{5 * time.Minute, "old\n new ", nil, "new", client, 2},
		{0, "old\n new ", nil, "old", client, 2},
		{5 * time.Minute, "new", nil, "old", cloudFront, 3},
		{5 * time.Minute, "", errors.New("no secrets today"), "new", client, 4},
		{time.Minute, "", errors.New("no secrets today"), "new", client, 4},
		{5 * time.Minute, "  ", nil, "new", cloudFront, 5},
	} {
		e.now, e.secret, e.err = e.now.Add(step.after), step.secret, step.err
		if got := e.connect(t, app, step.word); got != step.want || e.reads != step.reads {
			t.Errorf("%+v: taken for %s after %d reads", step, got, e.reads)
		}
	}
	for _, word := range []string{"old", "new"} {
		if strings.Contains(e.log.String(), word+" ") || strings.Contains(e.log.String(), "\""+word) {
			t.Errorf("logged %s", e.log.String())
		}
	}
}
