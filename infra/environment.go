//go:build cdk

package main

import (
	"strconv"
	"strings"

	"blindpost/functions"
	declared "blindpost/shared/settings"
)

const (
	pathParameter      = "p"
	originSecretHeader = "X-Origin-Secret"
)

// addresses are what the functions are told of the stack itself. What is not made
// is "".
type addresses struct {
	table, ingress, jobs, callback string
	originSecret, frontSecret      string // ARNs
}

func (r *relay) addresses() addresses {
	a := addresses{
		table:    *r.table.TableName(),
		ingress:  *r.queues.ingress.QueueUrl(),
		jobs:     *r.queues.jobs.QueueUrl(),
		callback: r.callbackURL(),
	}
	if r.origin != nil {
		a.originSecret = *r.origin.SecretArn()
	}
	if r.frontSecret != nil {
		a.frontSecret = *r.frontSecret.SecretArn()
	}
	return a
}

// readers are the functions by their names, as settings know them.
var readers = map[string]declared.Readers{
	"connect": declared.Connect, "message": declared.Message, "disconnect": declared.Disconnect, "sweeper": declared.Sweeper,
}

// told is what one function is told, by the names of settings: what was chosen for it,
// and what the stack knows itself. A function is told only what it reads; what is not
// set has its default there. No value is a secret: those are named by their ARN.
func (s *settings) told(name string, a addresses) map[string]string {
	told := s.values.Told(readers[name])
	tell := func(n declared.Key[string], value string) {
		if value != "" && n.Readers&readers[name] != 0 {
			told[n.Name] = value
		}
	}
	tell(declared.Table, a.table)
	tell(declared.JobsQueueURL, a.jobs)
	tell(declared.IngressQueueURL, a.ingress)
	tell(declared.APICallbackURL, a.callback)
	tell(declared.FrontSecretARN, a.frontSecret)
	tell(declared.OriginSecretARN, a.originSecret)
	if a.originSecret != "" {
		tell(declared.OriginSecretHeader, originSecretHeader)
		tell(declared.PathParameter, pathParameter)
	}
	tell(declared.KnockRoots, s.attestationFile())
	if name == "disconnect" {
		return told
	}
	if name == "message" {
		told[declared.IngressAttempts.Name] = strconv.Itoa(ingressAttempts)
	}
	fronts := s.allFronts()
	if fronts != nil {
		told[declared.Fronts.Name] = strings.Join(fronts, ",")
	} else if !s.values.IsSet(declared.MaxLiveFrame) {
		told[declared.MaxLiveFrame.Name] = strconv.Itoa(functions.MaxFrame>>10) + "KiB" // the default is beyond API Gateway
	}
	return told
}

// environment are settings as variables.
func environment(told map[string]string) map[string]*string {
	env := map[string]*string{}
	for name, value := range told {
		env[declared.Variable(name)] = str(value)
	}
	return env
}
