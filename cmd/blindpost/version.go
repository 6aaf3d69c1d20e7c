package main

import (
	"cmp"
	"runtime/debug"
)

// version is set by release builds: -ldflags "-X main.version=v1.2.3".
var version string

// Build describes this binary.
type Build struct {
	Version  string // "v1.2.3", or "devel" if none was set
	Revision string // commit, with "+dirty" if the tree had changes; "" if unknown
	Go       string
}

// String is the version with the commit, for people.
func (b Build) String() string {
	s := b.Version
	if b.Revision != "" {
		s += " (" + b.Revision + ")"
	}
	if b.Go != "" {
		s += " " + b.Go
	}
	return s
}

// buildInfo describes the running binary.
func buildInfo() Build {
	info, _ := debug.ReadBuildInfo()
	return describeBuild(version, info)
}

// describeBuild takes the version that the linker has set, else that of the module,
// which `go install` records.
func describeBuild(linked string, info *debug.BuildInfo) Build {
	b := Build{Version: cmp.Or(linked, "devel")}
	if info == nil {
		return b
	}
	b.Go = info.GoVersion
	if v := info.Main.Version; linked == "" && v != "" && v != "(devel)" {
		b.Version = v
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && b.Revision != "" {
		b.Revision += "+dirty"
	}
	return b
}
