//go:build cdk

package main

import (
	"maps"
	"strconv"
)

const (
	pathParameter      = "p"
	originSecretHeader = "X-Origin-Secret"
)

// environment is what one function is told. A function is told only what it
// reads; what is not set has its default there. No value is a secret: those are
// named by their ARN.
func (r *relay) environment(name string) map[string]string {
	s := r.settings
	env := map[string]string{
		"BLINDPOST_INGRESS_QUEUE_URL": *r.queues.ingress.QueueUrl(),
		"BLINDPOST_CALLBACK_URL":      r.callbackURL(),
		"BLINDPOST_LOG_LEVEL":         s.logLevel,
	}
	if name == "disconnect" {
		return env
	}
	env["BLINDPOST_TABLE"] = *r.table.TableName()
	env["BLINDPOST_JOBS_QUEUE_URL"] = *r.queues.jobs.QueueUrl()
	maps.Copy(env, s.limits)
	switch name {
	case "connect":
		if s.defaultPath != "" {
			env["BLINDPOST_DEFAULT_PATH"] = s.defaultPath
		}
		if r.origin != nil {
			env["BLINDPOST_ORIGIN_SECRET_ARN"] = *r.origin.SecretArn()
			env["BLINDPOST_ORIGIN_SECRET_HEADER"] = originSecretHeader
			env["BLINDPOST_PATH_PARAMETER"] = pathParameter
		}
	case "message":
		env["BLINDPOST_INGRESS_ATTEMPTS"] = strconv.Itoa(ingressAttempts)
	case "sweeper":
		for variable, value := range map[string]string{
			"BLINDPOST_SNS_IOS_ARN":     s.snsIOS,
			"BLINDPOST_SNS_ANDROID_ARN": s.snsAndroid,
			"BLINDPOST_PUSH_TITLE":      s.pushTitle,
			"BLINDPOST_PUSH_BODY":       s.pushBody,
		} {
			if value != "" {
				env[variable] = value
			}
		}
	}
	return env
}
