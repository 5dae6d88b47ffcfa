package tables_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The tables, columns, constraints and indexes that the migrations leave are
// the ones in testdata, so that a change of the contract shows in review.
func TestCatalog(t *testing.T) {
	db := tablestest.New(t)
	got := db.Dump(`select c.relname as table, a.attname as column, format_type(atttypid, atttypmod) as type,
			case when attnotnull then 'not null' else '' end as "null",
			coalesce(nullif(attidentity::text, ''), pg_get_expr(adbin, adrelid), '') as "default"
		from pg_class c join pg_attribute a on attrelid = c.oid left join pg_attrdef d on adrelid = c.oid and adnum = attnum
		where relnamespace = current_schema::regnamespace and relkind = 'r' and attnum > 0 and not attisdropped
		order by 1, attnum`)
	got += "\n" + db.Dump(`select conrelid::regclass::text as table, conname as constraint, pg_get_constraintdef(oid) as definition
		from pg_constraint where connamespace = current_schema::regnamespace and contype <> 'n' order by 1, 2`)
	got += "\n" + db.Dump(`select replace(indexdef, current_schema || '.', '') as index
		from pg_indexes where schemaname = current_schema order by indexname`)
	got += "\n" + db.Dump(`select relname as table, array_to_string(reloptions, ', ') as options
		from pg_class where relnamespace = current_schema::regnamespace and reloptions is not null order by 1`)
	golden(t, "catalog.txt", got)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (write it anew with -update):\n%s", file, diff)
	}
}

// The first run reports each migration, the second finds nothing to do.
func TestMigrateTwice(t *testing.T) {
	db := tablestest.New(t, tablestest.Unmigrated())
	first, err := tables.Migrate(t.Context(), config(t, db), db.Schema)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) == 0 || first[0].Version != 1 || first[0].Name != "00001_ledger.sql" || first[0].Took <= 0 {
		t.Errorf("first run applied %v", first)
	}
	if last := first[len(first)-1].Version; last != tables.Version() {
		t.Errorf("first run ended at version %d, want %d", last, tables.Version())
	}
	second, err := tables.Migrate(t.Context(), config(t, db), db.Schema)
	if err != nil || len(second) > 0 {
		t.Errorf("second run applied %v, %v", second, err)
	}
}

// Programs that start at once, with no schema there, share the work: each
// migration is applied by one of them and all of them succeed.
func TestMigrateConcurrently(t *testing.T) {
	db := tablestest.New(t, tablestest.Unmigrated())
	db.Exec("drop schema " + db.Schema)
	const programs = 6
	var all [programs][]tables.Applied
	var g errgroup.Group
	for i := range programs {
		g.Go(func() (err error) {
			all[i], err = tables.Migrate(t.Context(), config(t, db), db.Schema)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	applied := map[int64]int{}
	for _, list := range all {
		for _, a := range list {
			applied[a.Version]++
		}
	}
	for v := int64(1); v <= tables.Version(); v++ {
		if applied[v] != 1 {
			t.Errorf("version %d was applied %d times", v, applied[v])
		}
	}
	if n := db.Value(advisory("true")); n != "0" {
		t.Errorf("%s locks are left", n)
	}
}

// A second program waits for the first, and goes on when that is cut off in the
// middle: the lock is of the transaction (case D10). What holds the first up is
// somebody who creates the schema, too.
func TestMigrateCutOff(t *testing.T) {
	db := tablestest.New(t, tablestest.Unmigrated())
	db.Exec("drop schema " + db.Schema)
	tx := begin(t, db)
	if _, err := tx.Exec(t.Context(), "create schema "+db.Schema); err != nil {
		t.Fatal(err)
	}
	ctx, cut := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	migrate := func(ctx context.Context, done chan<- error) {
		_, err := tables.Migrate(ctx, config(t, db), db.Schema)
		done <- err
	}
	go migrate(ctx, first)
	waitFor(t, db, advisory("granted"), "1")
	go migrate(t.Context(), second)
	waitFor(t, db, advisory("not granted"), "1")
	cut()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that was cut off returned %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Errorf("the one that waited: %v", err)
	}
	waitFor(t, db, advisory("true"), "0")
}

// advisory counts the locks of migrations in the test's database.
func advisory(which string) string {
	return "select count(*) from pg_locks where locktype = 'advisory' and " + which +
		" and database = (select oid from pg_database where datname = current_database())"
}

// A name that needs quotes works, and the tables of the search path that the
// session had before are left alone.
func TestMigrateQuotedSchema(t *testing.T) {
	db := tablestest.New(t, tablestest.Unmigrated())
	schema := db.Schema + `."Odd"`
	t.Cleanup(func() { db.Exec(`drop schema "` + strings.ReplaceAll(schema, `"`, `""`) + `" cascade`) })
	if _, err := tables.Migrate(t.Context(), config(t, db), schema); err != nil {
		t.Fatal(err)
	}
	if err := tables.Check(t.Context(), db.Pool, schema); err != nil {
		t.Error(err)
	}
	if n := db.Value("select count(*) from pg_tables where schemaname = $1", db.Schema); n != "0" {
		t.Errorf("%s tables went to the session's own schema", n)
	}
}

// A role without the right to create schemas can migrate one that is its own.
func TestMigrateWithoutCreate(t *testing.T) {
	db := tablestest.New(t, tablestest.Unmigrated())
	role := db.Schema
	db.Exec("create role " + role + " login; alter schema " + db.Schema + " owner to " + role)
	t.Cleanup(func() { db.Exec("drop owned by " + role + " cascade; drop role " + role) })
	cfg := config(t, db)
	cfg.User = role
	if _, err := tables.Migrate(t.Context(), cfg, db.Schema); err != nil {
		t.Error(err)
	}
}

// Check and Migrate refuse other versions and name both with the remedy; Check
// leaves a transaction usable.
func TestCheck(t *testing.T) {
	want := tables.Version()
	for _, tt := range []struct {
		name, change string
		have         int64
		remedy       string
	}{
		{"same", "select 1", want, ""},
		{"newer", "insert into schema_version (version_id, is_applied) values (99, true)", 99, "upgrade the binary"},
		{"older", "delete from schema_version where version_id > 0", 0, "oncestream migrate up"},
		{"missing", "drop table schema_version", 0, "oncestream migrate up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := tablestest.New(t)
			db.Exec(tt.change)
			tx := begin(t, db)
			for _, q := range []tables.Querier{db.Pool, tx, tx.Conn()} {
				checkVersion(t, tables.Check(t.Context(), q, db.Schema), tt.have, tt.remedy)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Errorf("Check spoilt the transaction: %v", err)
			}
			if tt.name == "newer" {
				_, err := tables.Migrate(t.Context(), config(t, db), db.Schema)
				checkVersion(t, err, tt.have, tt.remedy)
			}
		})
	}
}

func checkVersion(t *testing.T, err error, have int64, remedy string) {
	t.Helper()
	if remedy == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	v, ok := errors.AsType[*tables.VersionError](err)
	if !ok || v.Have != have || v.Want != tables.Version() || !strings.Contains(err.Error(), remedy) {
		t.Errorf("got %v, want version %d and %q", err, have, remedy)
	}
}

// Each of the three texts names both versions.
func TestVersionError(t *testing.T) {
	for _, tt := range []struct {
		have, want int64
		text       string
	}{
		{0, 2, `schema "s" has no oncestream tables (version 0) and this binary needs version 2: run "oncestream migrate up"`},
		{1, 2, `the tables in schema "s" are of version 1 and this binary needs version 2: run "oncestream migrate up"`},
		{3, 2, `the tables in schema "s" are of version 3 and this binary knows no version after 2: upgrade the binary`},
	} {
		err := &tables.VersionError{Schema: "s", Have: tt.have, Want: tt.want}
		if err.Error() != tt.text {
			t.Errorf("got %s", err)
		}
	}
}

// Status shows a missing schema as pending, an applied migration with the time
// of the database, and one that the program does not know without a name.
func TestStatus(t *testing.T) {
	db := tablestest.New(t)
	pending, err := tables.Status(t.Context(), db.Pool, "no such schema")
	if err != nil || len(pending) == 0 || !pending[0].Pending() || pending[0].Name != "00001_ledger.sql" {
		t.Errorf("of a missing schema: %v, %v", pending, err)
	}
	db.Exec("insert into schema_version (version_id, is_applied) values (99, true)")
	list, err := tables.Status(t.Context(), db.Pool, db.Schema)
	if err != nil || len(list) != len(pending)+1 {
		t.Fatalf("%v, %v", list, err)
	}
	if age := time.Since(list[0].AppliedAt); list[0].Pending() || age < -time.Minute || age > time.Hour {
		t.Errorf("applied %s ago", age)
	}
	if last := list[len(list)-1]; last.Version != 99 || last.Name != "" || last.Pending() {
		t.Errorf("the unknown one: %+v", last)
	}
}

// A ledger of the first version keeps its rows: its account begins with nothing
// set back and nothing left out, and its changes of before name no topic.
func TestMigrateSecond(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`alter table consumer_offset drop column rewound, drop column skipped;
		alter table offset_change drop column old_cluster_id, drop column old_topic_id, drop column new_cluster_id, drop column new_topic_id;
		drop table environment, environment_change;
		delete from schema_version where version_id > 1`)
	db.Exec(`insert into consumer_offset (consumer_group, topic, partition, cluster_id, topic_id, first_offset, next_offset, records)
			values ('g', 't', 0, 'c', '00000000-0000-0000-0000-000000000001', 5, 9, 4);
		insert into offset_change (consumer_group, topic, partition, action, old_offset, new_offset, epoch, reason) values ('g', 't', 0, 'skip', 4, 5, 2, 'by hand')`)
	applied, err := tables.Migrate(t.Context(), config(t, db), db.Schema)
	if err != nil || len(applied) == 0 || applied[0].Version != 2 {
		t.Fatalf("applied %v, %v", applied, err)
	}
	if got := db.Value(`select format('%s %s %s %s %s', first_offset, next_offset, records, rewound, skipped) from consumer_offset`); got != "5 9 4 0 0" {
		t.Errorf("the row is %s", got)
	}
	if got := db.Value(`select count(*) from offset_change where reason = 'by hand' and new_topic_id is null`); got != "1" {
		t.Errorf("%s changes are kept", got)
	}
}
