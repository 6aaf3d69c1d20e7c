package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"blindpost/shared/base/awsclient"
)

// withoutRetries makes the client send a request once and read the whole response.
func withoutRetries(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = awsclient.WithoutWriteTo(o.HTTPClient)
}
