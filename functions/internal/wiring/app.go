package wiring

import (
	"context"
	"net/http"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/push"
	"blindpost/shared/push/sns"
	"blindpost/shared/queue/sqs"
	"blindpost/shared/relay"
	"blindpost/shared/settings"
	"blindpost/shared/settings/secret"
	"blindpost/shared/table"
)

// App is the relay of one process of a function.
type App struct {
	values  settings.Values
	backend Backend
	queue   *sqs.Queue
	// core makes the relay, with its storage, at the first use: functions/disconnect
	// may never need it.
	core    func(context.Context) (*core, error)
	ingress *sqs.Consumer
	jobs    *sqs.Consumer
}

// core is the relay with its adapter.
type core struct {
	relay   *relay.Relay
	adapter *apigw.Adapter
	// http serves requests other than WebSocket upgrades.
	http http.Handler
	// run runs the jobs of both queues.
	run func(context.Context, sqs.Message) error
}

// New makes an App. It connects to nothing.
func New(v settings.Values, backend Backend) *App {
	a := &App{values: v, backend: backend}
	a.queue = sqs.New(backend.SQS, sqs.Options{
		Standard: settings.JobsQueueURL.Of(v), FIFO: settings.IngressQueueURL.Of(v),
		GroupID: apigw.GroupID, Now: backend.Now, NewID: backend.NewID,
	})
	a.ingress = sqs.NewConsumer(backend.SQS, sqs.ConsumerOptions{
		QueueURL: settings.IngressQueueURL.Of(v), MaxAttempts: int(settings.IngressAttempts.Of(v)), Log: backend.Log,
	})
	a.jobs = sqs.NewConsumer(backend.SQS, sqs.ConsumerOptions{QueueURL: settings.JobsQueueURL.Of(v), Log: backend.Log})
	a.core = memoize(func(ctx context.Context) (*core, error) {
		t, err := backend.Table(ctx)
		if err != nil {
			return nil, err
		}
		return a.newCore(t)
	})
	return a
}

func (a *App) newCore(t table.Table) (*core, error) {
	pusher, err := sns.New(a.backend.SNS, sns.Options{
		IOS: settings.SNSIOS.Of(a.values), Android: settings.SNSAndroid.Of(a.values),
		Fallback: push.NewLogSender(a.backend.Log), Log: a.backend.Log,
	})
	if err != nil {
		return nil, err
	}
	front := apigw.NewFront(apigw.FrontOptions{
		NewClient: a.backend.Connections, Allowed: apigw.AllowEndpoints(settings.APICallbackURL.Of(a.values)),
		Fronts: settings.Fronts.Of(a.values), NewRemote: a.frontClients(),
	})
	r := relay.New(relay.Options{
		Table: t, Queue: a.queue, Front: front, Pusher: pusher, Log: a.backend.Log,
		Now: a.backend.Now, Random: a.backend.Random, NewID: a.backend.NewID,
		Limits: relay.LimitsFrom(a.values), ConnRecordTTL: settings.ConnRecordTTL.Of(a.values), Distributed: true,
	})
	knock, err := a.useDialects(r, pusher)
	if err != nil {
		return nil, err
	}
	c := &core{relay: r, adapter: apigw.New(a.adapterOptions(r, front)), http: knock}
	c.run = a.queue.Run(c.adapter.Job(r.Job))
	return c, nil
}

func (a *App) adapterOptions(r *relay.Relay, front gateway.Front) apigw.Options {
	o := apigw.Options{
		Handler: r, Front: front, Queue: a.queue, Log: a.backend.Log, Now: a.backend.Now,
		Fronts: settings.Fronts.Of(a.values), Callback: settings.APICallbackURL.Of(a.values),
		DefaultPath: settings.DefaultPath.Of(a.values), PathParameter: settings.PathParameter.Of(a.values),
		MaxFrame: a.maxFrame(),
		FirstWanted: func(ctx context.Context, id gateway.Conn) (bool, error) {
			c, err := r.LoadConn(ctx, id)
			return c != nil && !c.Joined(), err
		},
	}
	if arn := settings.OriginSecretARN.Of(a.values); arn != "" {
		origin := secret.New(secret.Options{
			Read: func(ctx context.Context) (string, error) { return a.backend.Secret(ctx, arn) },
			Now:  a.backend.Now, Log: a.backend.Log,
		})
		o.OriginHeader, o.Origin = settings.OriginSecretHeader.Of(a.values), origin.Check
	}
	return o
}
