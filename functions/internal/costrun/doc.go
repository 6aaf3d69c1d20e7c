// Package costrun counts what a day on AWS takes. The functions serve real peers for a
// whole day, on stand-ins that count what AWS charges for. The day takes seconds, because
// it runs in a testing/synctest bubble; the stand-ins take as long to answer as AWS does
// (see assumed_test.go), so the time that is charged for functions is counted too.
//
// Package cost keeps the counts and prices them; the test of this package compares them
// with a new run.
package costrun
