//go:build aws

package dynamo

import (
	"testing"
	"time"

	"blindpost/shared/table"
	"blindpost/shared/table/tabletest"
)

// suiteChecks keeps the property test within a minute: every step is several requests.
const suiteChecks = 60

func TestConformance(t *testing.T) {
	tabletest.Run(t, func(t *testing.T, now func() time.Time) table.Table {
		return New(standin, Options{Table: freshTable(t), Now: now})
	}, tabletest.Checks(suiteChecks))
}
