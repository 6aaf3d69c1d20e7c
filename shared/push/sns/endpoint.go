package sns

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/smithy-go"

	"blindpost/shared/base/awsclient"
	"blindpost/shared/push"
)

// withoutWriteTo makes the client read the whole response: a push that was published and
// seems to have failed would be published again.
func withoutWriteTo(o *awssns.Options) { o.HTTPClient = awsclient.WithoutWriteTo(o.HTTPClient) }

// delivery is one push on its way.
type delivery struct {
	*Sender
	api API
	app app
	key endpointKey
	in  *awssns.PublishInput
}

// run publishes the push. It creates the endpoint again at most once, if it was deleted,
// and repairs it at most once, if it was disabled.
func (d *delivery) run(ctx context.Context) error {
	recreated, repaired := false, false
	for {
		arn := d.known(d.key)
		if arn == "" {
			var err error
			if arn, err = d.endpoint(ctx); err != nil {
				return err
			}
			d.remember(d.key, arn)
		}
		d.in.TargetArn = &arn
		_, err := d.api.Publish(ctx, d.in, withoutWriteTo)
		switch code := codeOf(err); {
		case err == nil:
			return nil
		case code == "NotFound" && !recreated:
			recreated = true
			d.forget(d.key)
		case code == "EndpointDisabled" && !repaired:
			repaired = true
			if err := d.repair(ctx, arn); err != nil {
				return err
			}
		case code == "EndpointDisabled":
			d.forget(d.key)
			return push.ErrTokenGone
		default:
			return describe("Publish", err)
		}
	}
}

// endpoint finds or creates the endpoint of the token.
func (d *delivery) endpoint(ctx context.Context) (string, error) {
	out, err := d.api.CreatePlatformEndpoint(ctx, &awssns.CreatePlatformEndpointInput{
		PlatformApplicationArn: &d.app.arn, Token: &d.key.token,
	}, withoutWriteTo)
	if err == nil {
		if out.EndpointArn == nil || *out.EndpointArn == "" {
			return "", errors.New("SNS made an endpoint without an ARN")
		}
		return *out.EndpointArn, nil
	}
	if codeOf(err) != "InvalidParameter" {
		return "", describe("CreatePlatformEndpoint", err)
	}
	if arn := existing(err); arn != "" {
		// The token has an endpoint with other attributes: it is disabled, or another
		// program created it.
		return arn, d.repair(ctx, arn)
	}
	if strings.Contains(messageOf(err), "Token") {
		return "", push.ErrTokenGone // SNS says that it is malformed
	}
	return "", describe("CreatePlatformEndpoint", err)
}

// repair makes an endpoint usable for our token.
func (d *delivery) repair(ctx context.Context, arn string) error {
	out, err := d.api.GetEndpointAttributes(ctx, &awssns.GetEndpointAttributesInput{EndpointArn: &arn}, withoutWriteTo)
	if codeOf(err) == "NotFound" {
		return nil // Publish will fail with NotFound, and run creates it again
	}
	if err != nil {
		return describe("GetEndpointAttributes", err)
	}
	enabled := out.Attributes["Enabled"] == "true"
	if strings.EqualFold(out.Attributes["Token"], d.key.token) { // tokens of APNs are hex
		if enabled {
			return nil
		}
		d.forget(d.key)
		if _, err := d.api.DeleteEndpoint(ctx, &awssns.DeleteEndpointInput{EndpointArn: &arn}, withoutWriteTo); err != nil {
			d.log.WarnContext(ctx, "failed to delete the endpoint of a dead token", "error", describe("DeleteEndpoint", err))
		}
		return push.ErrTokenGone
	}
	_, err = d.api.SetEndpointAttributes(ctx, &awssns.SetEndpointAttributesInput{
		EndpointArn: &arn,
		Attributes:  map[string]string{"Token": d.key.token, "Enabled": "true"},
	}, withoutWriteTo)
	switch code := codeOf(err); {
	case err == nil, code == "NotFound":
		return nil
	case code == "InvalidParameter" && strings.Contains(messageOf(err), "Token"):
		return push.ErrTokenGone
	default:
		return describe("SetEndpointAttributes", err)
	}
}

var existingEndpoint = regexp.MustCompile(`Endpoint (arn:[^ ]+:endpoint/[^ ]+) already exists`)

// existing is the ARN in the error of CreatePlatformEndpoint for a token that already has
// an endpoint.
func existing(err error) string {
	if m := existingEndpoint.FindStringSubmatch(messageOf(err)); m != nil {
		return m[1]
	}
	return ""
}

// codeOf is the code of an error, "" without an answer. SNS and its client differ in the
// suffix.
func codeOf(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return strings.TrimSuffix(api.ErrorCode(), "Exception")
}

func messageOf(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return api.ErrorMessage()
}

// describe makes an error without the message of SNS, which may quote our request.
func describe(action string, err error) error {
	if code := codeOf(err); code != "" {
		return fmt.Errorf("SNS answered %s with %s", action, code)
	}
	return fmt.Errorf("no answer from SNS to %s: %w", action, err)
}
