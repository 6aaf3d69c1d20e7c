package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"blindpost/shared/metrics"
)

func TestInvoke(t *testing.T) {
	m := metrics.New(metrics.Options{})
	scrape := func() string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	if strings.Contains(scrape(), "blindpost_invocations_total") {
		t.Error("a relay that invokes nothing has series for it")
	}
	i := m.Invoke()
	i.Invoked("message", "throttled", 20*time.Millisecond)
	i.Invoked("whatever a caller says", "ok", time.Second)
	i.Called("POST", 410, time.Millisecond)
	i.Called("PROPFIND", 999, time.Millisecond)
	got := scrape()
	for _, want := range []string{
		`blindpost_invocations_total{function="message",result="throttled"} 1`,
		`blindpost_invocations_total{function="other",result="ok"} 1`,
		`blindpost_invocations_total{function="connect",result="ok"} 0`,
		`blindpost_invocation_seconds_count{function="message"} 1`,
		`blindpost_callbacks_total{method="POST",status="410"} 1`,
		`blindpost_callbacks_total{method="other",status="other"} 1`,
		`blindpost_callback_seconds_count{method="POST"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no series %s", want)
		}
	}
}
