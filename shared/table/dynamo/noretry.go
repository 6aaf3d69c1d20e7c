package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"blindpost/shared/awsclient"
)

// withoutRetries has the client send a request once, and hear the answer out.
func withoutRetries(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = awsclient.WithoutWriteTo(o.HTTPClient)
}
