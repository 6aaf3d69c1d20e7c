package settings

// The groups, in the order in which they are listed.
var (
	general      = &Group{Title: "General", reader: Binary}
	certificates = &Group{Title: "TLS (without any of these: a certificate for localhost, signed by itself)", reader: Binary}
	limits       = &Group{Title: "Limits", reader: Binary | Handlers | Stack, reload: true}
	pushes       = &Group{Title: "Push", reader: Binary | Sweeper | Stack}
	aelos        = &Group{Title: "Aelos (spoken at /v1/aelos if there is a secret)", reader: Binary | Handlers | Stack}
	transport    = &Group{Title: "Limits of the transport", More: true, reader: Binary}
	knock        = &Group{Title: "Agentknock", More: true, reader: Binary | Connect | Stack}
	knockLimits  = &Group{Title: "Limits of Agentknock", More: true, reader: Binary | Handlers | Stack, reload: true}
	aelosLimits  = &Group{Title: "Limits of Aelos", More: true, reader: Binary | Handlers | Stack, reload: true}
	lambda       = &Group{Title: "Front of the AWS functions (the limits are then theirs, but for max-live-frame and those of the transport)", More: true, reader: Binary}
	places       = &Group{Title: "Where clients connect to the stack", reader: Stack}
	keeping      = &Group{Title: "What the stack keeps", reader: Stack}
	loads        = &Group{Title: "How much the stack takes", reader: Stack}
	alarms       = &Group{Title: "Alarms of the stack", reader: Stack}
	binaryFront  = &Group{Title: "Binary front of the stack: what API Gateway cannot carry", reader: Stack}
	told         = &Group{Title: "What the stack tells its functions", reader: Handlers}

	groups = []*Group{general, certificates, limits, pushes, aelos, transport, knock, knockLimits, aelosLimits, lambda, places, keeping, loads, alarms, binaryFront, told}
)

// Bounds. A frame below the smallest might not hold an Auth with a long push token; above the largest it would not fit into
// a table item with what the relay notes about it. The longest time is far from where times overflow.
const (
	smallFrame, largeFrame, anyFrame = "4KiB", "392KiB", "64MiB"
	moment, forever                  = "1ms", "36500d"
)

var (
	Config         = declare(general, file, "config", "", "YAML file with settings: a line \"name: value\" for each")
	Listen         = declare(general, listener, "listen", ":8443", "where clients connect")
	DataDir        = declare(general, filled, "data-dir", "blindpost-data", "folder for the database and certificates")
	MetricsListen  = declare(general, off, "metrics-listen", "127.0.0.1:9464", "where Prometheus reads metrics, or off")
	Pprof          = declare(general, boolean, "pprof", "false", "profiles of the process under /debug/pprof/ there")
	LogLevel       = declare(general, level, "log-level", "info", "debug, info, warn or error", readBy(Everybody))
	LogFormat      = declare(general, word("text", "json"), "log-format", "json", "text or json")
	ShutdownSpread = declare(general, duration, "shutdown-spread", "5s", "a shutdown spreads its closes over it", within("0s", "1h"))
)

var (
	TLSCert     = declare(certificates, file, "tls-cert", "", "PEM file with the chain; read again when it changes")
	TLSKey      = declare(certificates, file, "tls-key", "", "PEM file with the private key")
	ACMEDomains = declare(certificates, domains, "acme-domain", "", "get certificates from Let's Encrypt, by port 443")
	ACMEEmail   = declare(certificates, text, "acme-email", "", "mail address that Let's Encrypt may write to")
	BehindProxy = declare(certificates, networks, "behind-proxy", "", "proxies whose X-Forwarded-For and -Proto are believed; alone, it means plain HTTP")
)

var (
	MaxFrame          = declare(limits, size, "max-frame", "64KiB", "largest frame, live messages apart", within(smallFrame, largeFrame), readBy(Everybody&^Disconnect))
	MaxLiveFrame      = declare(limits, size, "max-live-frame", "512KiB", "largest frame of a live message; 96KiB where API Gateway is the only front", within(smallFrame, anyFrame))
	ChallengeTimeout  = declare(limits, duration, "challenge-timeout", "30s", "to authenticate", within(moment, forever))
	MailboxCap        = declare(limits, count, "mailbox-cap", "200", "messages that wait for one recipient; 0: no limit")
	MessageTTL        = declare(limits, duration, "message-ttl", "7d", "a message waits that long before it is dropped", within(moment, forever))
	NamespaceTTL      = declare(limits, duration, "namespace-ttl", "7d", "a namespace lives that long without any connection; 0s: for ever", within("0s", forever))
	ConnectionsPerIP  = declare(limits, count, "connections-per-ip", "30", "a minute, IPv6 by /64; 0: no limit")
	MessagesPerMinute = declare(limits, count, "messages-per-minute", "60", "on one connection; 0: no limit")
	ControlPerMinute  = declare(limits, count, "control-frames-per-minute", "60", "other frames on one connection; 0: no limit")
	PairingTTL        = declare(limits, duration, "pairing-ttl", "5m", "a pairing window is open that long if the agent does not say", within("1s", forever))
	PairingTTLMax     = declare(limits, duration, "pairing-ttl-max", "10m", "longest pairing window", within("1s", forever))
	ConnRecordTTL     = declare(limits, duration, "conn-record-ttl", "2h10m", "the record of a connection whose end was never told is forgotten then; API Gateway ends one after 2h", within("2h", forever), readBy(Handlers|Stack), once)
)

var (
	PushTitle = declare(pushes, pushed, "push-title", "Skald", "title of every push; it must not depend on content")
	PushBody  = declare(pushes, pushed, "push-body", "Action required", "text of every push")
)

var (
	AelosSecretFile = declare(aelos, file, "aelos-secret-file", "", "secret that admission tokens are signed with; during a rotation two, separated by white space; read again every 5m and on SIGHUP", readBy(Binary|Handlers))
	AelosSecretARN  = declare(aelos, secretARN, "aelos-secret-arn", "", "the same in Secrets Manager", readBy(Handlers|Stack), secret)
	AelosPath       = declare(aelos, path, "aelos-path", "", "one more path to speak it at")
	AelosController = declare(aelos, line, "aelos-controller", "ctl=true", "claim=value by which a token says that a viewer may send commands")
)

var (
	IdleTimeout    = declare(transport, duration, "idle-timeout", "2m", "silence after which a connection is closed", within(moment, forever))
	PingInterval   = declare(transport, duration, "ping-interval", "30s", "between two pings", within(moment, forever))
	SendBuffer     = declare(transport, size, "send-buffer", "4MiB", "what waits for one slow reader before it is closed", within(smallFrame, "1GiB"))
	WriteTimeout   = declare(transport, duration, "write-timeout", "10s", "that a reader may take for 64 KiB", within(moment, forever))
	MaxConnections = declare(transport, count, "max-connections", "0", "open WebSocket connections; 0: no limit", within("0", "1073741824"))
)

var (
	KnockAttestation = declare(knock, word("off", "check", "require"), "agentknock-attestation", "off", "what is wanted of the Android key attestation of a device that claims its id: nothing, that one that is given is good, or a good one")
	KnockRoots       = declare(knock, file, "agentknock-attestation-roots", "", "PEM file with the root certificates that attestations have to lead to")

	KnockClientExchangesPerMinute = declare(knockLimits, count, "agentknock-client-exchanges-per-minute", "60", "new exchanges of one client; 0: no limit")
	KnockDeviceExchangesPerMinute = declare(knockLimits, count, "agentknock-device-exchanges-per-minute", "240", "new exchanges of all clients of one device; 0: no limit")
	KnockClientOpenExchanges      = declare(knockLimits, count, "agentknock-client-open-exchanges", "64", "open exchanges of one client; 0: no limit")
	KnockDeviceOpenExchanges      = declare(knockLimits, count, "agentknock-device-open-exchanges", "256", "open exchanges of one device; 0: no limit")
	KnockClientStoredBytes        = declare(knockLimits, size, "agentknock-client-stored-bytes", "8MiB", "what waits for delivery, of one client; 0: no limit")
	KnockDeviceStoredBytes        = declare(knockLimits, size, "agentknock-device-stored-bytes", "32MiB", "what waits for delivery, of one device; 0: no limit")
	KnockFramesPerMinute          = declare(knockLimits, count, "agentknock-frames-per-minute", "1200", "on one connection; 0: no limit")
	KnockExchangeTTL              = declare(knockLimits, duration, "agentknock-exchange-ttl", "24h", "an exchange stays open that long without any activity", within(moment, forever))
	KnockRecoveryTTL              = declare(knockLimits, duration, "agentknock-recovery-ttl", "24h", "the state of an exchange can be asked for that long after its end", within("0s", forever))
	KnockPairingTTL               = declare(knockLimits, duration, "agentknock-pairing-ttl", "1h", "an admitted pairing attempt can be taken up again that long", within(moment, forever))
	KnockWakeInterval             = declare(knockLimits, duration, "agentknock-wake-interval", "30s", "shortest between two pushes to one device", within("0s", forever))
)

// A smaller frame might not hold a hello; above the largest number of viewers their list would not fit into a table item.
var (
	AelosMaxFrame         = declare(aelosLimits, size, "aelos-max-frame", "64KiB", "largest frame; at most 96KiB on AWS", within("2KiB", "1MiB"))
	AelosMaxViewers       = declare(aelosLimits, count, "aelos-max-viewers", "8", "of one boat at a time", within("1", "1000"))
	AelosHelloTimeout     = declare(aelosLimits, duration, "aelos-hello-timeout", "5s", "to say hello", within(moment, forever))
	AelosClockLeeway      = declare(aelosLimits, duration, "aelos-clock-leeway", "0s", "by which the clock of the token minter may differ", within("0s", forever))
	AelosBoatFrames       = declare(aelosLimits, count, "aelos-boat-frames-per-minute", "1500", "of one boat; 0: no limit")
	AelosViewerFrames     = declare(aelosLimits, count, "aelos-viewer-frames-per-minute", "120", "of one viewer, commands apart; 0: no limit")
	AelosCommands         = declare(aelosLimits, count, "aelos-commands-per-minute", "60", "of one viewer; 0: no limit")
	AelosCommandBytes     = declare(aelosLimits, size, "aelos-command-bytes-per-minute", "256KiB", "commands of one user; 0: no limit")
	AelosMaxHandshake     = declare(aelosLimits, size, "aelos-max-handshake", "4KiB", "largest hs1 or hs2, 512 or more; 0: as any frame")
	AelosHandshakes       = declare(aelosLimits, count, "aelos-handshakes-per-minute", "120", "with one boat, a quarter of them of one user; 0: no limit")
	AelosMaxViewersPerSub = declare(aelosLimits, count, "aelos-max-viewers-per-user", "0", "viewers of one boat that may be of one user; 0: no limit")
	AelosMaxTokenLife     = declare(aelosLimits, duration, "aelos-max-token-life", "0s", "that a token may last from now on; 0s: no limit", within("0s", forever))
)

// The names of the functions are those in the stack, by which `sam local start-lambda` knows them as well.
var (
	Lambda              = declare(lambda, link, "lambda", "", "the Lambda API, https://lambda.REGION.amazonaws.com; to sam local start-lambda or another stand-in requests go unsigned")
	LambdaRegion        = declare(lambda, text, "lambda-region", "", "without it, that of the address")
	LambdaConnect       = declare(lambda, filled, "lambda-connect", "Connect", "name or ARN of the function connect; those of the stack are among its outputs")
	LambdaMessage       = declare(lambda, filled, "lambda-message", "Message", "name or ARN of the function message")
	LambdaDisconnect    = declare(lambda, filled, "lambda-disconnect", "Disconnect", "name or ARN of the function disconnect")
	LambdaIngress       = declare(lambda, fifo, "lambda-ingress", "", "ingress queue to put frames in, instead of calling the function message")
	LambdaTimeout       = declare(lambda, duration, "lambda-timeout", "29s", "that a call of a function may take, with its tries", within(moment, forever))
	LambdaPathParameter = declare(lambda, filled, "lambda-path-parameter", "p", "query parameter in which the functions look for the path")
	CallbackListen      = declare(lambda, listener, "callback-listen", "127.0.0.1:8444", "where the functions call about connections")
	CallbackURL         = declare(lambda, endpoint, "callback-url", "", "where the functions reach this process, one of their BLINDPOST_FRONTS; without it, callback-listen")
	CallbackTLSCert     = declare(lambda, file, "callback-tls-cert", "", "PEM file with the chain for those calls; without it they are plain HTTP")
	CallbackTLSKey      = declare(lambda, file, "callback-tls-key", "", "PEM file with its private key")
	CallbackSecretFile  = declare(lambda, file, "callback-secret-file", "", "secret that the functions have to show; without it, callback-secret in data-dir, which is made")
	CallbackSecretARN   = declare(lambda, secretARN, "callback-secret-arn", "", "that secret in Secrets Manager, instead of a file", secret)
)
