//go:build cdk

package main

import (
	"maps"
	"strconv"
	"strings"
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

// environment is what one function is told. A function is told only what it
// reads; what is not set has its default there. No value is a secret: those are
// named by their ARN.
func (s *settings) environment(name string, a addresses) map[string]string {
	env := map[string]string{
		"BLINDPOST_INGRESS_QUEUE_URL": a.ingress,
		"BLINDPOST_CALLBACK_URL":      a.callback,
		"BLINDPOST_LOG_LEVEL":         s.logLevel,
	}
	if name == "disconnect" {
		return env
	}
	env["BLINDPOST_TABLE"] = a.table
	env["BLINDPOST_JOBS_QUEUE_URL"] = a.jobs
	maps.Copy(env, s.limits)
	setAll(env, map[string]string{
		// The front is asked for nothing, and called at no address, but by these.
		"BLINDPOST_FRONTS":           strings.Join(s.allFronts(), ","),
		"BLINDPOST_FRONT_SECRET_ARN": a.frontSecret,
		// Also where it is not read: with it the protocol is spoken.
		"BLINDPOST_AELOS_SECRET_ARN": s.aelosSecretARN,
		"BLINDPOST_AELOS_PATH":       s.aelosPath,
		"BLINDPOST_AELOS_CONTROLLER": s.aelosController,
	})
	switch name {
	case "connect":
		setAll(env, map[string]string{"BLINDPOST_DEFAULT_PATH": s.defaultPath})
		maps.Copy(env, s.attestationEnvironment())
		if a.originSecret != "" {
			env["BLINDPOST_ORIGIN_SECRET_ARN"] = a.originSecret
			env["BLINDPOST_ORIGIN_SECRET_HEADER"] = originSecretHeader
			env["BLINDPOST_PATH_PARAMETER"] = pathParameter
		}
	case "message":
		env["BLINDPOST_INGRESS_ATTEMPTS"] = strconv.Itoa(ingressAttempts)
	case "sweeper":
		setAll(env, map[string]string{
			"BLINDPOST_SNS_IOS_ARN":     s.snsIOS,
			"BLINDPOST_SNS_ANDROID_ARN": s.snsAndroid,
			"BLINDPOST_PUSH_TITLE":      s.pushTitle,
			"BLINDPOST_PUSH_BODY":       s.pushBody,
		})
	}
	return env
}

// setAll sets what has a value.
func setAll(env, values map[string]string) {
	for variable, value := range values {
		if value != "" {
			env[variable] = value
		}
	}
}
