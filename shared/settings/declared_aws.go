package settings

// Settings of the CDK app.
var (
	StackName      = declare(places, shaped("stack name", `[A-Za-z][A-Za-z0-9-]{0,127}`), "stack-name", "Blindpost", "name of the stack; a second relay in a region needs another")
	Edge           = declare(places, boolean, "edge", "false", "CloudFront in front: one host name, the paths of all dialects, the HTTP endpoints of Agentknock. Without it there is one dialect, that of default-path, at the address of the API")
	DefaultPath    = declare(places, path, "default-path", "/v1/ws", "path, and so the protocol, of clients that connect without one; the default is that of Skald", readBy(Connect|Stack))
	Domain         = declare(places, domain, "domain", "", "your own host name: that of CloudFront with edge, else that of API Gateway (which then also takes default-path, but no other path)")
	CertificateARN = declare(places, certificate, "certificate-arn", "", "its certificate in ACM: in us-east-1 with edge, else in the region of the stack. Without edge, and with a hosted zone, one is made")
	HostedZoneID   = declare(places, shaped("id of a hosted zone", `Z[A-Z0-9]+`), "hosted-zone-id", "", "hosted zone of Route 53 that gets records for domain and binary-domain; without it, the outputs say what a CNAME has to name")
	HostedZoneName = declare(places, domain, "hosted-zone-name", "", "name of that zone")

	DeletionProtection  = declare(keeping, boolean, "deletion-protection", "true", "the table cannot be deleted, and stays when the stack goes. It is turned on when all else has been made")
	PointInTimeRecovery = declare(keeping, boolean, "point-in-time-recovery", "true", "the table can be restored to any second of the last 35 days")
	TableInUse          = declare(keeping, shaped("name of a table", `[A-Za-z0-9_.-]{3,255}`), "table-name", "", "existing table to use instead of that of the stack, such as one restored from a backup")
	LogRetention        = declare(keeping, word("1", "3", "5", "7", "14", "30", "60", "90", "120", "150", "180", "365"), "log-retention-days", "14", "how long logs are kept: the times that CloudWatch offers")
	AccessLog           = declare(keeping, boolean, "access-log", "true", "a line for each connect, frame and disconnect, without paths, queries and addresses")
	APILoggingRole      = declare(keeping, boolean, "api-logging-role", "true", "set the role by which API Gateway writes logs. It is one for all APIs of a region: false where there is one already. It stays when the stack goes, not when its first deployment fails")

	ThrottleRate  = declare(loads, count, "throttle-rate", "500", "connects, frames and disconnects a second, for the whole relay; the HTTP endpoints take that many requests besides", within("1", "10000"))
	ThrottleBurst = declare(loads, count, "throttle-burst", "1000", "how many of these may come at once", within("1", "5000"))
	// Reserved and MaxConcurrency are by function; 0 if not set.
	Reserved = map[string]Key[int64]{
		"connect":    reserved("connect", "reserved concurrency of functions/connect, which is also its maximum; without it, the function shares that of the account. A new account has 10 in all, and can reserve none"),
		"message":    reserved("message", "reserved concurrency of functions/message, which is also its maximum"),
		"disconnect": reserved("disconnect", "reserved concurrency of functions/disconnect, which is also its maximum"),
		"sweeper":    reserved("sweeper", "reserved concurrency of functions/sweeper, which is also its maximum"),
	}
	MaxConcurrency = map[string]Key[int64]{
		"message": declare(loads, count, "max-concurrency-message", "", "how many calls of functions/message the queue of frames makes at a time", within("2", "1000")),
		"sweeper": declare(loads, count, "max-concurrency-sweeper", "", "how many calls of functions/sweeper the queue of jobs makes at a time", within("2", "1000")),
	}

	SNSIOS     = declare(pushes, platform("APNS|APNS_SANDBOX", "APNS"), "sns-ios-arn", "", "platform application for APNs. CloudFormation cannot make one: it is made by hand, once. Without it, pushes for iOS are only logged", readBy(Sweeper|Stack))
	SNSAndroid = declare(pushes, platform("GCM", "GCM"), "sns-android-arn", "", "platform application for FCM", readBy(Sweeper|Stack))

	Alarms        = declare(alarms, word("none", "few", "all"), "alarms", "few", "few: 8 alarms on the 10 metrics that are free in an account; all: 13 on 15, with edge 14 on 16; none. The binary front adds one")
	Dashboard     = declare(alarms, boolean, "dashboard", "true", "make a dashboard")
	AlarmEmail    = declare(alarms, shaped("mail address", `[^@\s]+@[^@\s]+`), "alarm-email", "", "address to which alarms are sent. AWS first sends it a mail to confirm")
	AlarmTopicARN = declare(alarms, shaped("ARN of a topic", `arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]+`), "alarm-topic-arn", "", "existing topic to which alarms are sent, instead of alarm-email. Its policy must allow cloudwatch.amazonaws.com to publish")

	Fronts               = declare(binaryFront, fronts, "fronts", "", "callback addresses of binary fronts that run elsewhere: the functions call these too, and no other address but API Gateway", readBy(Handlers|Stack))
	BinaryFront          = declare(binaryFront, boolean, "binary-front", "false", "a task on Fargate (arm64) behind a load balancer. Building its image needs Docker, and it costs about $35 a month, used or not")
	BinaryDomain         = declare(binaryFront, domain, "binary-domain", "", "its host name, another one than domain: clients may connect to it, and the functions reach it there")
	BinaryCertificateARN = declare(binaryFront, certificate, "binary-certificate-arn", "", "its certificate in ACM, in the region of the stack; without it, and with a hosted zone, one is made")
	BinaryPaths          = declare(binaryFront, word("aelos", "all"), "binary-paths", "aelos", "what CloudFront sends there: the paths of Aelos, or all upgrades")
	BinaryCPU            = declare(binaryFront, count, "binary-cpu", "256", "processor of the task: 256, 512, 1024, 2048 or 4096, which is 4 processors", within("256", "16384"))
	BinaryMemory         = declare(binaryFront, count, "binary-memory", "512", "memory of the task, in MB, as Fargate has it for that much of a processor", within("512", "122880"))
)

// Settings of the functions whose values the stack knows.
var (
	Table              = declare(told, text, "table", "", "name or ARN of the DynamoDB table")
	JobsQueueURL       = declare(told, standard, "jobs-queue-url", "", "standard queue for jobs")
	IngressQueueURL    = declare(told, fifo, "ingress-queue-url", "", "FIFO queue for frames, the ends of connections, and their jobs; without it the front keeps the order of frames itself and calls the functions message and disconnect", readBy(Functions))
	IngressAttempts    = declare(told, count, "ingress-attempts", "5", "maxReceiveCount of the FIFO queue", within("1", "1000"), readBy(Message))
	APICallbackURL     = declare(told, endpoint, "api-callback-url", "", "address for @connections: https://{api}.execute-api.{region}.amazonaws.com/{stage}; without it, that of each event, which is wrong with a custom domain", readBy(Functions))
	FrontSecretARN     = declare(told, secretARN, "front-secret-arn", "", "secret that the functions send to fronts", secret)
	FrontSecretFile    = declare(told, file, "front-secret-file", "", "file with that secret, where there is no Secrets Manager; front-secret-arn wins", secret)
	OriginSecretARN    = declare(told, secretARN, "origin-secret-arn", "", "secret that CloudFront sends in a header; X-Forwarded-For is trusted only with it", secret, readBy(Connect))
	OriginSecretHeader = declare(told, header, "origin-secret-header", "X-Origin-Secret", "header in which CloudFront sends it", readBy(Connect))
	PathParameter      = declare(told, filled, "path-parameter", "p", "query parameter in which CloudFront puts the path", readBy(Connect))
)

var (
	certificate = shaped("ARN of a certificate", `arn:[a-z-]+:acm:[a-z0-9-]+:\d{12}:certificate/[A-Za-z0-9-]+`)
	fronts      = listOf("URLS", "URLs such as https://front.example.org, with no more than a host and a path, and no slash at their ends, separated by commas", endpoint.read)
)

// shaped is text that a pattern matches.
func shaped(what, pattern string) kind[string] {
	article := "a"
	if what[0] == 'A' || what[0] == 'i' {
		article = "an"
	}
	return textOf("TEXT", article+" "+what, matches(pattern))
}

func platform(services, name string) kind[string] {
	return shaped("ARN of a platform application for "+name, `arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:app/(?:`+services+`)/[A-Za-z0-9_.-]+`)
}

func reserved(function, help string) Key[int64] {
	return declare(loads, count, "reserved-"+function, "", help, within("1", "10000"))
}
