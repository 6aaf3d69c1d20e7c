package settings

// The groups, in the order in which they are listed.
var (
	general      = &Group{Title: "General", reader: Binary}
	certificates = &Group{Title: "TLS (by default a self-signed certificate for localhost)", reader: Binary}
	limits       = &Group{Title: "Limits", reader: Binary | Handlers | Stack, reload: true}
	pushes       = &Group{Title: "Push", reader: Binary | Sweeper | Stack}
	aelos        = &Group{Title: "Aelos (spoken at /v1/aelos if there is a secret)", reader: Binary | Handlers | Stack}
	transport    = &Group{Title: "Limits of the transport", More: true, reader: Binary}
	knock        = &Group{Title: "Agentknock", More: true, reader: Binary | Connect | Stack}
	knockLimits  = &Group{Title: "Limits of Agentknock", More: true, reader: Binary | Handlers | Stack, reload: true}
	aelosLimits  = &Group{Title: "Limits of Aelos", More: true, reader: Binary | Handlers | Stack, reload: true}
	lambda       = &Group{Title: "Front of the AWS functions (the functions then have the limits, except max-live-frame and those of the transport)", More: true, reader: Binary}
	places       = &Group{Title: "Where clients connect to the stack", reader: Stack}
	keeping      = &Group{Title: "What the stack keeps", reader: Stack}
	loads        = &Group{Title: "How much the stack takes", reader: Stack}
	alarms       = &Group{Title: "Alarms of the stack", reader: Stack}
	binaryFront  = &Group{Title: "Binary front of the stack: what API Gateway cannot carry", reader: Stack}
	told         = &Group{Title: "What the stack tells its functions", reader: Handlers}

	groups = []*Group{general, certificates, limits, pushes, aelos, transport, knock, knockLimits, aelosLimits, lambda, places, keeping, loads, alarms, binaryFront, told}
)

// Bounds. A smaller frame might not hold an Auth with a long push token; a larger one would not fit into a table item with
// what the relay notes about it. The longest time is far below the overflow of a time.Duration.
const (
	smallFrame, largeFrame, anyFrame = "4KiB", "392KiB", "64MiB"
	moment, forever                  = "1ms", "36500d"
)

var (
	Config         = declare(general, file, "config", "", "YAML file with settings, one \"name: value\" a line")
	Listen         = declare(general, listener, "listen", ":8443", "address for clients")
	DataDir        = declare(general, folder, "data-dir", "blindpost-data", "folder for the database and certificates")
	MetricsListen  = declare(general, off, "metrics-listen", "127.0.0.1:9464", "address of the metrics for Prometheus, or off")
	Pprof          = declare(general, boolean, "pprof", "false", "serve profiles under /debug/pprof/ on metrics-listen")
	LogLevel       = declare(general, level, "log-level", "info", "what is logged: debug, info, warn or error", readBy(AllReaders))
	LogFormat      = declare(general, word("text", "json"), "log-format", "json", "how the log is written: text or json")
	ShutdownSpread = declare(general, duration, "shutdown-spread", "5s", "time over which a shutdown closes connections", within("0s", "1h"))
)

var (
	TLSCert     = declare(certificates, file, "tls-cert", "", "PEM file with the certificate chain; read again when it changes")
	TLSKey      = declare(certificates, file, "tls-key", "", "PEM file with the private key")
	ACMEDomains = declare(certificates, domains, "acme-domain", "", "get certificates from Let's Encrypt; needs port 443")
	ACMEEmail   = declare(certificates, text, "acme-email", "", "mail address that Let's Encrypt may write to")
	BehindProxy = declare(certificates, networks, "behind-proxy", "", "proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted; without a certificate the relay then takes plain HTTP from them")
)

var (
	MaxFrame          = declare(limits, size, "max-frame", "64KiB", "largest frame, except live messages", within(smallFrame, largeFrame), readBy(AllReaders&^Disconnect))
	MaxLiveFrame      = declare(limits, size, "max-live-frame", "512KiB", "largest frame of a live message; 96KiB where API Gateway is the only front", within(smallFrame, anyFrame))
	ChallengeTimeout  = declare(limits, duration, "challenge-timeout", "30s", "time to authenticate", within(moment, forever))
	MailboxCap        = declare(limits, count, "mailbox-cap", "200", "messages that wait for one recipient; 0: no limit")
	MessageTTL        = declare(limits, duration, "message-ttl", "7d", "time that a message waits before it is dropped", within(moment, forever))
	NamespaceTTL      = declare(limits, duration, "namespace-ttl", "7d", "time that a namespace lives without any connection; 0s: for ever", within("0s", forever))
	ConnectionsPerIP  = declare(limits, count, "connections-per-ip", "30", "connections a minute from one address (IPv6: one /64); 0: no limit")
	MessagesPerMinute = declare(limits, count, "messages-per-minute", "60", "messages a minute on one connection; 0: no limit")
	ControlPerMinute  = declare(limits, count, "control-frames-per-minute", "60", "other frames a minute on one connection; 0: no limit")
	PairingTTL        = declare(limits, duration, "pairing-ttl", "5m", "time that a pairing window is open unless the agent asks for another", within("1s", forever))
	PairingTTLMax     = declare(limits, duration, "pairing-ttl-max", "10m", "longest time that a pairing window is open", within("1s", forever))
	ConnRecordTTL     = declare(limits, duration, "conn-record-ttl", "2h10m", "time after which the record of a connection is deleted if its end was never reported; API Gateway ends a connection after 2h", within("2h", forever), readBy(Handlers|Stack), once)
)

var (
	PushTitle = declare(pushes, pushed, "push-title", "Skald", "title of every push; it must not depend on content")
	PushBody  = declare(pushes, pushed, "push-body", "Action required", "text of every push")
)

var (
	AelosSecretFile = declare(aelos, file, "aelos-secret-file", "", "file with the secret that signs admission tokens; two during a rotation, separated by white space; read again every 5m and on SIGHUP", readBy(Binary|Handlers), secret)
	AelosSecretARN  = declare(aelos, secretARN, "aelos-secret-arn", "", "that secret in Secrets Manager, instead of a file", readBy(Handlers|Stack), secret)
	AelosPath       = declare(aelos, path, "aelos-path", "", "another path for Aelos, besides /v1/aelos")
	AelosController = declare(aelos, line, "aelos-controller", "ctl=true", "claim=value of a token whose viewer may send commands")
)

var (
	IdleTimeout    = declare(transport, duration, "idle-timeout", "2m", "time of silence after which a connection is closed", within(moment, forever))
	PingInterval   = declare(transport, duration, "ping-interval", "30s", "time between two pings", within(moment, forever))
	SendBuffer     = declare(transport, size, "send-buffer", "4MiB", "bytes that wait for one slow reader before it is closed", within(smallFrame, "1GiB"))
	WriteTimeout   = declare(transport, duration, "write-timeout", "10s", "time that a reader may take for 64 KiB", within(moment, forever))
	MaxConnections = declare(transport, count, "max-connections", "0", "open WebSocket connections; 0: no limit", within("0", "1073741824"))
)

var (
	KnockAttestation = declare(knock, word("off", "check", "require"), "agentknock-attestation", "off", "Android key attestation of a device that claims its id: off ignores it, check refuses a bad one, require demands a good one")
	KnockRoots       = declare(knock, file, "agentknock-attestation-roots", "", "PEM file with the root certificates that attestations must chain to")

	KnockClientExchangesPerMinute = declare(knockLimits, count, "agentknock-client-exchanges-per-minute", "60", "new exchanges a minute of one client; 0: no limit")
	KnockDeviceExchangesPerMinute = declare(knockLimits, count, "agentknock-device-exchanges-per-minute", "240", "new exchanges a minute of all clients of one device; 0: no limit")
	KnockClientOpenExchanges      = declare(knockLimits, count, "agentknock-client-open-exchanges", "64", "open exchanges of one client; 0: no limit")
	KnockDeviceOpenExchanges      = declare(knockLimits, count, "agentknock-device-open-exchanges", "256", "open exchanges of one device; 0: no limit")
	KnockClientStoredBytes        = declare(knockLimits, size, "agentknock-client-stored-bytes", "8MiB", "bytes that wait for delivery, of one client; 0: no limit")
	KnockDeviceStoredBytes        = declare(knockLimits, size, "agentknock-device-stored-bytes", "32MiB", "bytes that wait for delivery, of one device; 0: no limit")
	KnockFramesPerMinute          = declare(knockLimits, count, "agentknock-frames-per-minute", "1200", "frames a minute on one connection; 0: no limit")
	KnockExchangeTTL              = declare(knockLimits, duration, "agentknock-exchange-ttl", "24h", "time that an exchange stays open without any activity", within(moment, forever))
	KnockRecoveryTTL              = declare(knockLimits, duration, "agentknock-recovery-ttl", "24h", "time that the state of an exchange can be asked for after its end", within("0s", forever))
	KnockPairingTTL               = declare(knockLimits, duration, "agentknock-pairing-ttl", "1h", "time that an admitted pairing attempt can be resumed", within(moment, forever))
	KnockWakeInterval             = declare(knockLimits, duration, "agentknock-wake-interval", "30s", "shortest time between two pushes to one device", within("0s", forever))
)

// A smaller frame might not hold a hello; above the largest number of viewers their list would not fit into a table item.
var (
	AelosMaxFrame         = declare(aelosLimits, size, "aelos-max-frame", "64KiB", "largest frame; at most 96KiB on AWS", within("2KiB", "1MiB"))
	AelosMaxViewers       = declare(aelosLimits, count, "aelos-max-viewers", "8", "viewers of one boat at a time", within("1", "1000"))
	AelosHelloTimeout     = declare(aelosLimits, duration, "aelos-hello-timeout", "5s", "time to say hello", within(moment, forever))
	AelosClockLeeway      = declare(aelosLimits, duration, "aelos-clock-leeway", "0s", "time by which the clock of the token minter may differ", within("0s", forever))
	AelosBoatFrames       = declare(aelosLimits, count, "aelos-boat-frames-per-minute", "1500", "frames a minute of one boat; 0: no limit")
	AelosViewerFrames     = declare(aelosLimits, count, "aelos-viewer-frames-per-minute", "120", "frames a minute of one viewer, except commands; 0: no limit")
	AelosCommands         = declare(aelosLimits, count, "aelos-commands-per-minute", "60", "commands a minute of one viewer; 0: no limit")
	AelosCommandBytes     = declare(aelosLimits, size, "aelos-command-bytes-per-minute", "256KiB", "bytes of commands a minute of one user; 0: no limit")
	AelosMaxHandshake     = declare(aelosLimits, size, "aelos-max-handshake", "4KiB", "largest handshake frame (hs1, hs2), 512 or more; 0: aelos-max-frame")
	AelosHandshakes       = declare(aelosLimits, count, "aelos-handshakes-per-minute", "120", "handshakes a minute with one boat; one user may make a quarter of them; 0: no limit")
	AelosMaxViewersPerSub = declare(aelosLimits, count, "aelos-max-viewers-per-user", "0", "viewers of one boat by one user; 0: no limit")
	AelosMaxTokenLife     = declare(aelosLimits, duration, "aelos-max-token-life", "0s", "longest remaining life of a token; 0s: no limit", within("0s", forever))
)

// The names of the functions are those in the stack, by which `sam local start-lambda` knows them as well.
var (
	Lambda              = declare(lambda, link, "lambda", "", "URL of the Lambda API, https://lambda.REGION.amazonaws.com; requests to a stand-in such as sam local start-lambda are not signed")
	LambdaRegion        = declare(lambda, text, "lambda-region", "", "region of the Lambda API; by default that in its URL")
	LambdaConnect       = declare(lambda, filled, "lambda-connect", "Connect", "name or ARN of the function connect, which is an output of the stack")
	LambdaMessage       = declare(lambda, filled, "lambda-message", "Message", "name or ARN of the function message")
	LambdaDisconnect    = declare(lambda, filled, "lambda-disconnect", "Disconnect", "name or ARN of the function disconnect")
	LambdaIngress       = declare(lambda, fifo, "lambda-ingress", "", "ingress queue to put frames in, instead of calling the function message")
	LambdaTimeout       = declare(lambda, duration, "lambda-timeout", "29s", "time that a call of a function may take, retries included", within(moment, forever))
	LambdaPathParameter = declare(lambda, filled, "lambda-path-parameter", "p", "query parameter in which the functions look for the path")
	CallbackListen      = declare(lambda, listener, "callback-listen", "127.0.0.1:8444", "address for callbacks: calls by which the functions act on connections")
	CallbackURL         = declare(lambda, endpoint, "callback-url", "", "URL at which the functions reach this process, one of their fronts; by default that of callback-listen")
	CallbackTLSCert     = declare(lambda, file, "callback-tls-cert", "", "PEM file with the certificate chain for callbacks; without it they are plain HTTP")
	CallbackTLSKey      = declare(lambda, file, "callback-tls-key", "", "PEM file with the private key of callback-tls-cert")
	CallbackSecretFile  = declare(lambda, file, "callback-secret-file", "", "file with the secret that the functions must send; by default callback-secret in data-dir, made at the first start", secret)
	CallbackSecretARN   = declare(lambda, secretARN, "callback-secret-arn", "", "that secret in Secrets Manager, instead of a file", secret)
)
