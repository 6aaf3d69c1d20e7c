package skald_test

import (
	"context"
	"fmt"
	"log"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

// An agent that pairs one phone, answers what it asks, and stays connected.
func Example_agent() {
	ctx := context.Background()
	store, err := skaldclient.OpenFileStore("/var/lib/skald/agent.json")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	var agent *skaldclient.Agent
	agent, err = skaldclient.NewAgent(skaldclient.AgentConfig{
		URL:    "wss://relay.example",
		Policy: skaldclient.AutoApprove,
		Config: skaldclient.Config{
			Store: store,
			OnEvent: func(ctx context.Context, e skaldclient.Event) {
				m, ok := e.(skaldclient.Message)
				if !ok || m.Payload.Kind != skaldclient.KindInboxRequest {
					return
				}
				update, err := agent.NewPayload(skaldclient.KindInboxUpdate, map[string]any{"badge": 0})
				if err == nil {
					err = agent.Send(ctx, m.From, update, true)
				}
				if err != nil {
					log.Print(err)
				}
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := agent.WaitConnected(ctx); err != nil {
			return
		}
		window, err := agent.StartPairing(ctx, 5*time.Minute)
		if err != nil {
			log.Print(err)
			return
		}
		doc, err := window.QR.Marshal()
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Printf("%s\n", doc) // show it as a QR code
	}()
	if err := agent.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// A phone without the rest of the library: one connection, one message.
func Example_conn() {
	ctx := context.Background()
	agent, err := skaldclient.NewIdentity(skaldclient.Seed{1})
	if err != nil {
		log.Fatal(err)
	}
	phone, err := skaldclient.NewIdentity(skaldclient.Seed{2})
	if err != nil {
		log.Fatal(err)
	}
	session, err := skaldclient.NewSession(phone, skaldclient.RoleClient, agent.PublicKey(), agent.ExchangeKey())
	if err != nil {
		log.Fatal(err)
	}
	conn, err := skaldclient.Dial(ctx, "wss://relay.example", skaldclient.DialOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	auth := skaldclient.ClientAuth(phone, agent.Namespace(), "", skaldclient.PlatformAndroid)
	if _, err := conn.Authenticate(ctx, auth); err != nil {
		log.Fatal(err)
	}
	sealed, err := session.Seal(1, []byte(`{"v":1}`))
	if err != nil {
		log.Fatal(err)
	}
	if err := conn.Send(ctx, skaldclient.MessageFrame(agent.PublicKey(), sealed, false)); err != nil {
		log.Fatal(err)
	}
}
