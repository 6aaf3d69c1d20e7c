package mem_test

import (
	"testing"
	"time"

	"blindpost/shared/table"
	"blindpost/shared/table/mem"
	"blindpost/shared/table/tabletest"
)

func TestConformance(t *testing.T) {
	tabletest.Run(t, func(_ *testing.T, now func() time.Time) table.Table { return mem.New(now) }, tabletest.Checks(200))
}
