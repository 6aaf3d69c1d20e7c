package dynamo

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// once has the client send a request once, and hear the answer out.
func once(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = patient{o.HTTPClient}
}

// patient keeps net/http from losing answers that have arrived. The SDK (smithy-go
// 1.28) closes the body of a request as soon as the answer begins, and the body
// then answers io.EOF to WriteTo, which is an error there. When that happens before
// net/http has looked whether the body goes on, it takes the connection for broken
// and closes it under the reader of the answer: one request in some two thousand, on
// a busy machine with a server beside it. Without WriteTo the body is read, and
// io.EOF is no error.
type patient struct{ dynamodb.HTTPClient }

// Do implements dynamodb.HTTPClient.
func (c patient) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.HTTPClient.Do(r)
}
