//go:build aws

package wiring_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/functions/internal/wiring"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/proof/agentknock/conformance"
	"blindpost/shared/proof/apigwtest"
)

// The conformance suite of the Agentknock dialect against the functions: WebSockets
// by the emulated API Gateway, which has no close codes and no binary messages, and
// the endpoints by an emulated HTTP API.
func TestAgentknockConformance(t *testing.T) {
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target {
		h := open(t, false, false, o.Environment()...)
		return conformance.Target{
			URL:        h.URL(),
			HTTP:       h.httpAPI().URL,
			TLS:        h.Client().Transport.(*http.Transport).TLSClientConfig.Clone(),
			MaxMessage: apigw.MaxMessage,
			Lacks: []string{
				// The front answers what is no POST, and all is text.
				"ClientUpgrade_426_UpgradeRequired", "DeviceHTTP_405_WrongMethod", "ClientClosure_1008_Binary",
				// 128 KiB.
				"ClientFrames_LargestFrame", "ClientClosure_1009_TooLarge", "Hostile_StalledDeviceHoldsUpNobody",
				// There are no files, and there is nothing to restart.
				"DeviceCredentials_OnlyAHashIsStored",
				"Restart_StateIsKept", "Kill_AckMeansStored", "Kill_InTheMiddleOfABurst", "Kill_WhatHTTPHasAnsweredHolds", "Kill_PeersAtWork",
			},
			Processes: true,
			Pushes: func() (all []conformance.Push) {
				for _, p := range h.sns.pushes() {
					all = append(all, conformance.Push{Token: p.token, Android: p.android, Payload: p.payload})
				}
				return all
			},
			Log: h.log.Bytes,
		}
	})
}

// httpAPI is an HTTP API of API Gateway behind CloudFront, with functions/connect
// behind it.
func (h *house) httpAPI() *httptest.Server {
	connect := h.function(wiring.Connect)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 6<<20))
		if err != nil {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		payload, err := json.Marshal(httpEvent(r, body))
		if err != nil {
			h.t.Error(err)
		}
		out, err := connect(r.Context(), payload)
		var res events.APIGatewayV2HTTPResponse
		if err != nil || json.Unmarshal(out, &res) != nil {
			h.t.Errorf("%s %s: the function fails: %v", r.Method, r.URL.Path, err)
			http.Error(w, `{"message":"Internal Server Error"}`, http.StatusInternalServerError)
			return
		}
		for name, value := range res.Headers {
			w.Header().Set(name, value)
		}
		w.WriteHeader(res.StatusCode)
		_, _ = io.WriteString(w, res.Body)
	}))
	h.t.Cleanup(s.Close)
	return s
}

// httpEvent is a request in payload format 2.0. What is no text comes as base64.
func httpEvent(r *http.Request, body []byte) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "$default", RawPath: r.URL.Path, RawQueryString: r.URL.RawQuery,
		Headers: map[string]string{"x-origin-secret": edgeSecret, "x-forwarded-for": "192.0.2.1, " + apigwtest.EdgeAddress},
		Body:    string(body),
	}
	for name, values := range r.Header {
		e.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	kind := strings.ToLower(r.Header.Get("Content-Type"))
	if !strings.HasPrefix(kind, "text/") && !strings.HasPrefix(kind, "application/json") {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	e.RequestContext.Stage = "$default"
	e.RequestContext.HTTP = events.APIGatewayV2HTTPRequestContextHTTPDescription{
		Method: r.Method, Path: r.URL.Path, Protocol: "HTTP/1.1", SourceIP: apigwtest.EdgeAddress, UserAgent: r.UserAgent(),
	}
	return e
}
