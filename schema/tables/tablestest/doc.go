// Package tablestest gives each test the ledger's tables in a schema of its
// own, on a real PostgreSQL server.
//
//	func TestTransfer(t *testing.T) {
//		db := tablestest.New(t)
//		db.Exec("create table account (id bigint primary key, cents bigint not null)")
//		...
//		if got := db.Value("select sum(cents) from account"); got != "0" {
//			t.Errorf("sum is %s", got)
//		}
//	}
//
// The server is the one that the environment names in
// ONCESTREAM_TEST_DATABASE_URL; else package embedded starts one for the test
// program at the first use. It ends with the test program, however that ends;
// with [Main] it ends in order before.
//
// A test that stops or kills a server takes one of its own from [Server].
package tablestest
