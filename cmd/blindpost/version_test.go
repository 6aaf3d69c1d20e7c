package main

import (
	"runtime/debug"
	"testing"
)

func TestDescribeBuild(t *testing.T) {
	info := func(module string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: module}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	dirty := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	clean := debug.BuildSetting{Key: "vcs.modified", Value: "false"}
	tests := []struct {
		name   string
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		{"nothing known", "", nil, "devel"},
		{"only the linker", "v1", nil, "v1"},
		{"go build", "", info("(devel)"), "devel go1.26"},
		{"go install", "", info("v1.2.3"), "v1.2.3 go1.26"},
		{"the linker wins", "v2", info("v1.2.3"), "v2 go1.26"},
		{"clean tree", "v2", info("", revision, clean), "v2 (0123456789ab) go1.26"},
		{"changed tree", "", info("(devel)", dirty, revision), "devel (0123456789ab+dirty) go1.26"},
		{"changed tree, no revision", "", info("", dirty), "devel go1.26"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := describeBuild(tt.linked, tt.info).String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if b := buildInfo(); b.Go == "" || b.Version == "" {
		t.Errorf("this test binary describes itself as %+v", b)
	}
}
