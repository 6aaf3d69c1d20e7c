package forms

import (
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration // negative: refused
	}{
		{"7d", 7 * 24 * time.Hour},
		{"1d12h30m", 36*time.Hour + 30*time.Minute},
		{"0d", 0},
		{"168h", 7 * 24 * time.Hour},
		{"90s", 90 * time.Second},
		{"106751d", 106751 * 24 * time.Hour},
		{"106751d23h47m", 106751*24*time.Hour + 23*time.Hour + 47*time.Minute},
		{"106752d", -1},     // more than a time.Duration holds
		{"106751d24h", -1},  //
		{"-1d", -1},         //
		{"1d-1h", -1},       //
		{"1.5d", -1},        //
		{"d", -1},           //
		{"1d1d", -1},        //
		{"12h1d", -1},       //
		{"7", -1},           // no unit
		{"", -1},            //
		{"4294967296d", -1}, //
	} {
		got, err := Duration(c.text)
		if c.want < 0 {
			if err == nil {
				t.Errorf("%q is taken for %v", c.text, got)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%q: got %v, %v, want %v", c.text, got, err, c.want)
		}
	}
}
