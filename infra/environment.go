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

// addresses are the resources of the stack that the functions are told of; "" if the
// stack does not make one.
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

// readers are the functions as readers of settings, by their names.
var readers = map[string]declared.Readers{
	"connect": declared.Connect, "message": declared.Message, "disconnect": declared.Disconnect, "sweeper": declared.Sweeper,
}

// told are the settings of one function: those that were chosen, and those that the stack
// knows itself. A function is told only what it reads; it has the defaults itself. No
// value is a secret: secrets are named by their ARN.
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
