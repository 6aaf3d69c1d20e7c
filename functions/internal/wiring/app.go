package wiring

import (
	"context"
	"net/http"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/push"
	"blindpost/shared/push/sns"
	"blindpost/shared/queue/sqs"
	"blindpost/shared/relay"
	"blindpost/shared/settings/secret"
	"blindpost/shared/table"
)

// App is the relay of one process of a function.
type App struct {
	cfg     Config
	backend Backend
	queue   *sqs.Queue
	// core makes the relay when it is first needed: the storage is opened then, and
	// functions/disconnect may never need it.
	core    func(context.Context) (*core, error)
	ingress *sqs.Consumer
	jobs    *sqs.Consumer
}

// core is the relay with its adapter.
type core struct {
	relay   *relay.Relay
	adapter *apigw.Adapter
	// http serves what is no WebSocket.
	http http.Handler
	// run runs the jobs of both queues.
	run func(context.Context, sqs.Message) error
}

// New makes an App. It connects to nothing.
func New(c Config, b Backend) *App {
	a := &App{cfg: c, backend: b}
	a.queue = sqs.New(b.SQS, sqs.Options{
		Standard: c.JobsQueueURL, FIFO: c.IngressQueueURL,
		GroupID: apigw.GroupID, Now: b.Now, NewID: b.NewID,
	})
	a.ingress = sqs.NewConsumer(b.SQS, sqs.ConsumerOptions{
		QueueURL: c.IngressQueueURL, MaxAttempts: int(c.IngressAttempts), Log: b.Log,
	})
	a.jobs = sqs.NewConsumer(b.SQS, sqs.ConsumerOptions{QueueURL: c.JobsQueueURL, Log: b.Log})
	a.core = memoize(func(ctx context.Context) (*core, error) {
		t, err := b.Table(ctx)
		if err != nil {
			return nil, err
		}
		return a.newCore(t)
	})
	return a
}

func (a *App) newCore(t table.Table) (*core, error) {
	pusher, err := sns.New(a.backend.SNS, sns.Options{
		IOS: a.cfg.SNSIOS, Android: a.cfg.SNSAndroid,
		Fallback: push.NewLogSender(a.backend.Log), Log: a.backend.Log,
	})
	if err != nil {
		return nil, err
	}
	front := apigw.NewFront(apigw.FrontOptions{
		NewClient: a.backend.Connections, Allowed: apigw.AllowEndpoints(a.cfg.CallbackURL),
		Fronts: a.cfg.Fronts, NewRemote: a.frontClients(),
	})
	r := relay.New(relay.Options{
		Table: t, Queue: a.queue, Front: front, Pusher: pusher, Log: a.backend.Log,
		Now: a.backend.Now, Random: a.backend.Random, NewID: a.backend.NewID,
		Limits: a.cfg.Relay, ConnRecordTTL: a.cfg.ConnRecordTTL, Distributed: true,
	})
	r.Use(skald.New(r, skald.Options{Limits: a.cfg.Skald, PushText: a.cfg.PushText}))
	knock, err := a.useAgentknock(r, pusher)
	if err != nil {
		return nil, err
	}
	if err := a.useAelos(r); err != nil {
		return nil, err
	}
	c := &core{relay: r, adapter: apigw.New(a.adapterOptions(r, front)), http: knock}
	c.run = a.queue.Run(c.adapter.Job(r.Job))
	return c, nil
}

func (a *App) adapterOptions(r *relay.Relay, front gateway.Front) apigw.Options {
	o := apigw.Options{
		Handler: r, Front: front, Queue: a.queue, Log: a.backend.Log, Now: a.backend.Now,
		Fronts: a.cfg.Fronts, Callback: a.cfg.CallbackURL, DefaultPath: a.cfg.DefaultPath, PathParameter: a.cfg.PathParameter,
		MaxFrame: a.cfg.maxFrame(),
		FirstWanted: func(ctx context.Context, id gateway.Conn) (bool, error) {
			c, err := r.LoadConn(ctx, id)
			return c != nil && !c.Joined(), err
		},
	}
	if arn := a.cfg.OriginSecretARN; arn != "" {
		words := secret.New(secret.Options{
			Read: func(ctx context.Context) (string, error) { return a.backend.Secret(ctx, arn) },
			Now:  a.backend.Now, Log: a.backend.Log,
		})
		o.OriginHeader, o.Origin = a.cfg.OriginSecretHeader, words.Check
	}
	return o
}
