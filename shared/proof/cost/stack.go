package cost

// How the stack is built, as far as it costs. A test compares this with infra/.
const (
	// pollsAMonth are the requests by which Lambda polls a queue, whether something
	// is in it or not: five pollers that wait for 20 seconds each. (With little
	// traffic Lambda may make do with two on a standard queue; it need not.)
	pollsAMonth = 650_000
	// alarmMetrics are what the alarms look at, those that are made by default.
	alarmMetrics = 10
	dashboards   = 1
	// logDays is how long logs are kept.
	logDays = 14
)

// memoryMB is what the functions get.
var memoryMB = map[string]float64{"connect": 256, "message": 256, "disconnect": 128, "sweeper": 256}

const (
	daysAMonth = 365.0 / 12
	gigabyte   = 1 << 30
	// secretReads is how often functions/connect reads the secret of the edge a month:
	// every five minutes, in a process that is never idle.
	secretReads = 8760
	// upgradeBytes is what an upgrade answers.
	upgradeBytes = 500
)
