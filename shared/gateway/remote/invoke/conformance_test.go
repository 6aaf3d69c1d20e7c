package invoke_test

import (
	"net/http"
	"testing"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/remote/invoke"
	"blindpost/shared/proof/gatewaytest"
)

// The front passes the suite of the gateway contract, in both ways in which it can give
// frames to the functions.
func TestConformance(t *testing.T) {
	for _, ingress := range []bool{false, true} {
		t.Run(map[bool]string{true: "by way of a queue", false: "direct"}[ingress], func(t *testing.T) {
			gatewaytest.Run(t, func(t *testing.T, h gateway.Handler) gatewaytest.Harness {
				r := open(t, h, ingress, func(o *invoke.Options) { o.Server.MaxBuffered = 4 << 20 })
				transport := &http.Transport{}
				t.Cleanup(transport.CloseIdleConnections)
				return gatewaytest.Harness{
					Front: r.actions, URL: r.url, Client: &http.Client{Transport: transport}, Header: header(),
					Paths: true, RefusalBody: true, CloseCodes: true, FirstByJob: true, ClosesOnError: true,
				}
			})
		})
	}
}
