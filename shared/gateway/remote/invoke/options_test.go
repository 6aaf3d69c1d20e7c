package invoke_test

import (
	"context"
	"strings"
	"testing"

	"blindpost/shared/gateway/remote/invoke"
)

func TestOptions(t *testing.T) {
	good := invoke.Options{
		Lambda: &rig{}, Functions: invoke.Functions{Connect: "c", Message: "m", Disconnect: "d"},
		Callback: "https://front.example/x", Check: shared(word).Check,
	}
	if _, err := invoke.New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*invoke.Options){
		"no Lambda":             func(o *invoke.Options) { o.Lambda = nil },
		"no secret":             func(o *invoke.Options) { o.Check = nil },
		"no name":               func(o *invoke.Options) { o.Functions.Message = "" },
		"queue without address": func(o *invoke.Options) { o.Ingress = &rig{} },
		"no callback":           func(o *invoke.Options) { o.Callback = "" },
		"callback in the clear": func(o *invoke.Options) { o.Callback = "http://front.example" },
		"too large to invoke":   func(o *invoke.Options) { o.Server.ReadLimit = 5 << 20 },
	} {
		o := good
		change(&o)
		if _, err := invoke.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestClients(t *testing.T) {
	for address, want := range map[string]struct{ aws, good bool }{
		"https://lambda.eu-central-1.amazonaws.com":               {true, true},
		"https://vpce-1-2.lambda.eu-central-1.vpce.amazonaws.com": {true, true},
		"https://lambda.cn-north-1.amazonaws.com.cn":              {true, true},
		"http://127.0.0.1:3001":                                   {false, true},
		"http://lambda.eu-central-1.amazonaws.com":                {false, true}, // never signed in the clear
		"https://amazonaws.com.example":                           {false, true},
		"lambda.eu-central-1.amazonaws.com":                       {false, false},
		"https://u:p@127.0.0.1":                                   {false, false},
		"":                                                        {false, false},
		"https://sqs.eu-central-1.amazonaws.com/123/ingress.fifo": {true, true},
	} {
		if got := invoke.IsAWS(address); got != want.aws {
			t.Errorf("%s: AWS %v", address, got)
		}
		if err := invoke.CheckAddress(address); (err == nil) != want.good {
			t.Errorf("%s: %v", address, err)
		}
	}
	ctx := context.Background()
	c, err := invoke.Clients{}.Lambda(ctx, "https://vpce-1-2.lambda.eu-west-3.vpce.amazonaws.com")
	if err != nil {
		t.Fatal(err)
	}
	if c.Options().Region != "eu-west-3" {
		t.Errorf("%v, %v", c.Options().Region, err)
	}
	if _, err := (invoke.Clients{}).Secret(ctx, "the secret itself"); err == nil || strings.Contains(err.Error(), "itself\"") {
		t.Errorf("%v", err)
	}
}
