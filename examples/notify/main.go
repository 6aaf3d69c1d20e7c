// Command notify sends each line of its input to the phones that are paired with it,
// sealed, and prints what they send: tail -F app.log | notify wss://relay.example notify.json
// The first time it prints a code, which a Skald app or `blindpost client` pairs by.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"sync"

	"blindpost/shared/client/skald"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: notify RELAY-URL STATE-FILE")
	}
	ctx := context.Background()
	store, err := skald.OpenFileStore(os.Args[2]) // identity, paired phones, counters
	check(err)
	paired := make(chan struct{})
	first := sync.OnceFunc(func() { close(paired) })
	agent, err := skald.NewAgent(skald.AgentConfig{URL: os.Args[1], Policy: skald.AutoApprove, Config: skald.Config{
		Store: store,
		OnEvent: func(_ context.Context, e skald.Event) {
			switch e := e.(type) {
			case skald.Message:
				fmt.Printf("%s %s\n", e.Payload.Kind, e.Payload.Body)
			case skald.Declared:
				if e.Clients > 0 {
					first()
				}
			case skald.Disconnected:
				log.Print("disconnected: ", e.Err)
			}
		},
	}})
	check(err)
	go func() { log.Fatal(agent.Run(ctx)) }()
	check(agent.WaitConnected(ctx))
	if len(agent.Peers()) == 0 {
		window, err := agent.StartPairing(ctx, skald.DefaultPairingTTL)
		check(err)
		code, err := window.QR.Marshal()
		check(err)
		fmt.Printf("%s\n", code)
	}
	<-paired
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		p, err := agent.NewPayload(skald.KindNotification, map[string]string{"title": "notify", "body": lines.Text()})
		check(err)
		check(agent.WaitConnected(ctx))
		for _, phone := range agent.Peers() {
			if phone.Status == skald.StatusAuthorized {
				check(agent.Send(ctx, phone.Key, p, false)) // the relay keeps it for a phone that sleeps
			}
		}
	}
	check(lines.Err())
	_, err = agent.Presence(ctx) // the relay answers in order: it has all of it
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
