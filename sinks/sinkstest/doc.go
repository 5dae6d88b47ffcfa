// Package sinkstest holds the tests that every sink must pass, for the sinks of
// package sinks and for those of users:
//
//	func TestMain(m *testing.M) { tablestest.Main(m) }
//
//	func TestMySink(t *testing.T) {
//		sinkstest.Run(t, sinkstest.Suite[Payment]{
//			New:     func() sinks.Sink[Payment] { return &MySink{} },
//			Setup:   `create table payment (id bigint primary key, amount numeric not null)`,
//			Effects: `select * from payment order by id`,
//			Message: func(i int) schema.Message[Payment] { … },
//		})
//	}
//
// The tests run against PostgreSQL, each in a schema of its own.
package sinkstest
