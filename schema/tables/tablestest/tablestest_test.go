package tablestest_test

import (
	"testing"

	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func TestMain(m *testing.M) { tablestest.Main(m) }

// A test's schema holds the ledger's tables and the test's own, and Dump shows
// nulls and wide characters aligned.
func TestNew(t *testing.T) {
	db := tablestest.New(t)
	db.Exec("create table account (id int, owner text); insert into account values (1, 'Ödön'), (22, null)")
	want := "id  owner\n1   Ödön\n22  null\n"
	if got := db.Dump("select * from account order by id"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := db.Value("select count(*) from consumer_offset"); got != "0" {
		t.Errorf("consumer_offset has %s rows", got)
	}
	if got := db.Value("select current_schema"); got != db.Schema {
		t.Errorf("schema is %s, want %s", got, db.Schema)
	}
}
