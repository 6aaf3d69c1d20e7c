package record

// The integration of the $default route. It is of type AWS, POST to
//
//	arn:PARTITION:apigateway:REGION:sqs:path/ACCOUNT/QUEUE_NAME
//
// with passthrough behaviour NEVER, the request parameter
//
//	integration.request.header.Content-Type: 'ContentType'  (in single quotes)
//
// the constant TemplateKey as template selection expression, and Template under
// that key. ContentHandlingStrategy stays unset.
const (
	ContentType = "application/x-www-form-urlencoded"
	TemplateKey = "frame"
)

// Template is the request template (VTL) of that integration: a SendMessage to a
// FIFO queue. The JSON around the values is written percent-encoded, so that
// nothing depends on how VTL treats quotes; every value goes through
// $util.urlEncode, because the ids end in '='. The text of the frame goes through
// base64 as well: $util.escapeJavaScript makes "\'" of an apostrophe, which is
// no JSON, and a queue refuses an empty body and most control characters.
//
// Each value is put into a string first, which Velocity does with any type, and is a
// string in the JSON: the functions of $util take strings, and Velocity copies a call
// with another type into the text unchanged. A body that is null is an empty frame.
//
// The group is the connection, so that its frames stay in order; the
// deduplication id is API Gateway's id of the frame.
const Template = "Action=SendMessage&Version=2012-11-05" +
	"&MessageGroupId=" + contextPrefix + "connectionId" + contextSuffix +
	"&MessageDeduplicationId=" + contextPrefix + "messageId" + contextSuffix +
	"&MessageBody=%7B%22event%22%3A%22" + Message + "%22" +
	"%2C%22connectionId%22%3A%22" + contextPrefix + "connectionId" + contextSuffix + "%22" +
	"%2C%22domainName%22%3A%22" + contextPrefix + "domainName" + contextSuffix + "%22" +
	"%2C%22stage%22%3A%22" + contextPrefix + "stage" + contextSuffix + "%22" +
	"%2C%22messageId%22%3A%22" + contextPrefix + "messageId" + contextSuffix + "%22" +
	"%2C%22requestTimeEpoch%22%3A%22" + contextPrefix + "requestTimeEpoch" + contextSuffix + "%22" +
	"%2C%22isBase64Encoded%22%3Afalse" +
	"%2C%22body%22%3A%22$util.urlEncode($util.base64Encode(\"$!input.body\"))%22%7D"

// The template text around the name of a context variable.
const (
	contextPrefix = "$util.urlEncode(\"$context."
	contextSuffix = "\")"
)
