package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Invoke is the observer of the front that invokes the AWS functions (package
// gateway/remote/invoke). Its series exist only if it is made.
type Invoke struct {
	calls        *family[prometheus.Counter]
	seconds      *family[prometheus.Observer]
	callbacks    *family[prometheus.Counter]
	callbackTime *family[prometheus.Observer]
}

var (
	invoked         = newSet("connect", "message", "disconnect", "http", "ingress")
	invokeResults   = newSet("ok", "throttled", "function_error", "bad_answer", "timeout", "unreachable")
	callbackMethods = newSet("POST", "GET", "DELETE")
	callbackStatus  = newSet("200", "202", "204", "400", "403", "404", "405", "410", "411", "413", "429", "500")

	// invokeBuckets reach from a warm function in the same region to the timeout of API
	// Gateway.
	invokeBuckets = []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
)

// Invoke makes the observer. It must be called at most once.
func (m *Metrics) Invoke() *Invoke {
	r := m.registry
	return &Invoke{
		calls:        counters(r, "invocations_total", "Calls of the AWS functions and of the ingress queue.", []string{"function", "result"}, invoked, invokeResults),
		seconds:      newFamily(histogram(r, "invocation_seconds", "How long such a call took.", invokeBuckets, "function"), invoked),
		callbacks:    counters(r, "callbacks_total", "Calls of the functions about connections.", []string{"method", "status"}, callbackMethods, callbackStatus),
		callbackTime: newFamily(histogram(r, "callback_seconds", "How long answering such a call took.", workBuckets, "method"), callbackMethods),
	}
}

// Invoked counts a call of a function.
func (i *Invoke) Invoked(function, result string, took time.Duration) {
	i.calls.two(function, result).Inc()
	i.seconds.one(function).Observe(took.Seconds())
}

// Called counts a call of the functions.
func (i *Invoke) Called(method string, status int, took time.Duration) {
	i.callbacks.two(method, strconv.Itoa(status)).Inc()
	i.callbackTime.one(method).Observe(took.Seconds())
}
