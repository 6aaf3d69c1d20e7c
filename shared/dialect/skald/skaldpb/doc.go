// Package skaldpb holds the frames of the Skald relay protocol v2, generated
// from relay.proto. `make generate` writes relay.pb.go again.
package skaldpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go_opt=Mrelay.proto=./skaldpb relay.proto
